"""A problem's training text in chunks, one after the other or each by itself."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from t2t_lite.data import problem as problems
from t2t_lite.text import bitexts


class Chunk(NamedTuple):
    """Pairs number `first`, first + 1, ... of the corpus, counted from 0."""

    first: int
    inputs: list[str]
    targets: list[str]


class Reader:
    """Reads a problem's splits; `chunk_pairs` is how many pairs a chunk of the training text has.

    `tmp_dir` is where the problem unpacks or downloads files.
    """

    def __init__(
        self,
        problem: problems.Problem,
        *,
        raw_dir: problems.Directory,
        tmp_dir: problems.Directory,
        chunk_pairs: int,
    ):
        self.problem = problem
        self.chunk_pairs = chunk_pairs
        self._raw_dir, self._tmp_dir = raw_dir, tmp_dir
        self.splits = problem.splits(raw_dir)

    def samples(self, split: str) -> Iterator[problems.Sample]:
        """Yield a split's samples in their order."""
        return self.problem.samples(split, raw_dir=self._raw_dir, tmp_dir=self._tmp_dir)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the training text chunk by chunk."""
        samples = self.samples("train")
        for first in itertools.count(step=self.chunk_pairs):
            chunk = list(itertools.islice(samples, self.chunk_pairs))
            if not chunk:
                return
            yield Chunk(first, [one["inputs"] for one in chunk], [one["targets"] for one in chunk])

    def ranges(self) -> list[bitexts.Range] | None:
        """Return where each chunk lies in the raw files; None where chunks cannot be read alone."""
        return self.problem.ranges("train", self.chunk_pairs, raw_dir=self._raw_dir)


def read(place: bitexts.Range) -> Chunk:
    """Return the chunk that lies there."""
    return Chunk(place.first, *bitexts.read_range(place))
