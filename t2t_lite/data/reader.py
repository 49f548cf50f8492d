"""A problem's training text in chunks, one after the other or each by itself."""

import collections
import functools
import json
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from t2t_lite import errors
from t2t_lite.data import problem as problems
from t2t_lite.text import bitexts, text_files

_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: no file can hold it

# Of a chunk, both sides together: 20,000 pairs of 28 words have 7 million. What is encoded takes up
# to some 40 bytes for each.
_MAX_CHARACTERS = 1 << 24


class Chunk(NamedTuple):
    """Pairs number `first`, first + 1, ... of the corpus, counted from 0.

    `files` has how many of them are from each file, in their order.
    """

    first: int
    inputs: list[str]
    targets: list[str]
    files: dict[str, int]


class Reader:
    """Reads a problem's splits; `chunk_pairs` is how many pairs a chunk of the training text has,
    where they are not very long.

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
        self.languages = problem.told_languages(raw_dir)

    def samples(self, split: str) -> Iterator[problems.Sample]:
        """Yield a split's samples in their order; UserError where one is not text."""
        samples = self.problem.samples(split, raw_dir=self._raw_dir, tmp_dir=self._tmp_dir)
        for number, sample in enumerate(samples, start=1):
            texts: Any = {"inputs": None, "targets": None, **sample}
            for key, text in texts.items():
                if not isinstance(text, str):
                    raise errors.UserError(
                        f"{self.problem.base_name}: {key!r} of {split} sample {number} is "
                        f"{repr(text)[:40]}, expected a str"
                    )
                texts[key] = _SURROGATE.sub(text_files.REPLACEMENT, text)
            yield texts

    def chunks(self) -> Iterator[Chunk]:
        """Yield the training text chunk by chunk."""
        first = 0
        for samples in text_files.windows(
            self.samples("train"),
            self.chunk_pairs,
            length=lambda sample: len(sample["inputs"]) + len(sample["targets"]),
            max_length=_MAX_CHARACTERS,
        ):
            inputs, targets = ([one[side] for one in samples] for side in ("inputs", "targets"))
            yield Chunk(first, inputs, targets, file_counts(samples))
            first += len(samples)

    @functools.cached_property
    def ranges(self) -> list[bitexts.Range] | None:
        """Where each chunk lies in the raw files; None where chunks cannot be read alone."""
        ranges = self.problem.ranges("train", self.chunk_pairs, raw_dir=self._raw_dir)
        are_small = all(place.size < _MAX_CHARACTERS for place in ranges or ())
        return ranges if are_small else None


def file_counts(samples: Iterable[problems.Sample]) -> dict[str, int]:
    """Return how many samples are from each file, without those that are from none."""
    return dict(collections.Counter(one["file"] for one in samples if "file" in one))


class Unpacked(NamedTuple):
    """A file of one chunk, whose first pair has this number, and about its size in bytes."""

    first: int
    path: str
    size: int


Place = bitexts.Range | Unpacked


def unpack(read: Reader, folder: pathlib.Path) -> list[Unpacked]:
    """Write the training text into a folder, a file a chunk, so that each can be read alone."""
    places = []
    for number, chunk in enumerate(read.chunks()):
        path = folder / f"text-{number:05d}.json"
        text_files.write_json(path, chunk)
        size = sum(len(text) for side in (chunk.inputs, chunk.targets) for text in side)
        places.append(Unpacked(chunk.first, str(path), size))
    text_files.write_json(_unpacked_places(folder), places)
    return places


def unpacked(folder: pathlib.Path) -> list[Unpacked] | None:
    """Return what an earlier call of `unpack` has left, if it came to its end."""
    path = _unpacked_places(folder)
    return [Unpacked(*one) for one in json.loads(path.read_bytes())] if path.exists() else None


def read(place: Place) -> Chunk:
    """Return the chunk that lies there."""
    if isinstance(place, Unpacked):
        return Chunk(*json.loads(pathlib.Path(place.path).read_bytes()))
    inputs, targets = bitexts.read_range(place)
    return Chunk(place.first, inputs, targets, {place.name: len(inputs)})


def _unpacked_places(folder: pathlib.Path) -> pathlib.Path:
    return folder / "texts.json"
