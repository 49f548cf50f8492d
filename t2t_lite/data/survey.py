"""The first pass over the training text: counts, and a sample to learn the vocabulary from.

A pair is in the sample if its hash is below a limit. Whenever the sample becomes too large the
limit is halved, which keeps about half of it, still spread evenly. The last limit is the largest
possible one, so the sample is the same whatever the order and parts in which the corpus is read.
"""

import dataclasses
import itertools
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np

from t2t_lite import errors
from t2t_lite.data import spill
from t2t_lite.text import cleaning, text_files

# The vocabulary's sample, both sides together. With 40 million characters 37,000 subwords would cut
# texts into 0.2 % fewer pieces, and learning them would take 5 s instead of 2, whatever the corpus.
_SAMPLE_CHARACTERS = 16_000_000
_ALL = 2**64 - 1
# How many times the sample is first drawn where a corpus's size is known in advance: its bytes are
# up to four a character, and of some pairs nothing is drawn.
_MARGIN = 4


@dataclasses.dataclass
class Survey:
    """Counts and sample of the chunks that were added, in any order.

    All tokens of symbolic targets are collected in `symbols`; the sample leaves them out.
    """

    seed: int
    symbolic_targets: bool
    pairs: int = 0
    chunks: int = 0
    # number of the first pair of each file, and how many are from it
    files: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    has_text: bool = False  # whether any pair has it on both sides
    broken: int = 0  # pairs with bytes that are not UTF-8
    symbols: set[str] = dataclasses.field(default_factory=set)
    limit: int = _ALL  # of the hash: pairs above it are not in the sample
    # number in the corpus, hash, inputs and targets of each pair
    sample: list[tuple[int, int, str, str]] = dataclasses.field(default_factory=list)
    size: int = 0  # characters of the sample

    def add(
        self,
        first: int,
        inputs: Sequence[str],
        targets: Sequence[str],
        files: Mapping[str, int] = types.MappingProxyType({}),
    ) -> None:
        """Take in a chunk: the pairs number `first`, first + 1, ... of the corpus."""
        self.pairs += len(inputs)
        self.chunks += 1
        starts = itertools.accumulate(files.values(), initial=first)
        self._add_files({name: (start, files[name]) for name, start in zip(files, starts)})
        self.has_text |= any(a.strip() and b.strip() for a, b in zip(inputs, targets))
        self.broken += sum(text_files.REPLACEMENT in a + b for a, b in zip(inputs, targets))
        overlong = set(
            itertools.compress(itertools.count(), map(cleaning.is_overlong, inputs, targets))
        )
        if self.symbolic_targets:
            tokens = (token for target in targets for token in target.split(" "))
            self.symbols.update(f" {token}" for token in tokens if token)
            targets = [""] * len(inputs)
        keys = spill.hash_keys(self.seed, first, len(inputs))
        drawn = np.flatnonzero(keys <= np.uint64(self.limit)).tolist()
        self._extend(
            (first + i, int(keys[i]), inputs[i], targets[i]) for i in drawn if i not in overlong
        )

    def sparse(self, size: int) -> Self:
        """Return a copy whose first limit suits a corpus of about `size` characters.

        So the survey of a part does not hold all its text. `may_lack_pairs` tells whether the limit
        was too low.
        """
        halvings = max(size // (_MARGIN * _SAMPLE_CHARACTERS), 1).bit_length() - 1
        return dataclasses.replace(self, limit=self.limit >> halvings)

    def may_lack_pairs(self, sparse: "Survey") -> bool:
        """Return whether the limit of `sparse`, with which this survey began, was too low."""
        return self.limit == sparse.limit < _ALL

    def merge(self, other: "Survey") -> None:
        """Add the survey of another part of the same corpus."""
        self.pairs += other.pairs
        self.chunks += other.chunks
        self._add_files(other.files)
        self.has_text |= other.has_text
        self.broken += other.broken
        self.symbols |= other.symbols
        self._lower(min(self.limit, other.limit))
        self._extend(one for one in other.sample if one[1] <= self.limit)

    def sentences(self) -> list[str]:
        """Return the sample's sentences in the order of the corpus."""
        return [text for _, _, *sides in sorted(self.sample) for text in sides]

    def in_order(self) -> list[tuple[str, int, int]]:
        """Return each file with the number of its first pair and how many it has, in order."""
        return sorted(
            ((name, *place) for name, place in self.files.items()), key=lambda one: one[1]
        )

    def check(self, name: str) -> None:
        """Raise UserError if there is nothing to learn from or the text is not UTF-8."""
        if not self.pairs:
            raise errors.UserError(f"{name} has no training text")
        if not self.has_text:
            raise errors.UserError(
                f"{name} has no train pair with text on both sides: expected at least one"
            )
        refuse_not_utf8(name, "training", self.broken, self.pairs)

    def _add_files(self, files: Mapping[str, tuple[int, int]]) -> None:
        for name, (first, count) in files.items():
            old_first, old_count = self.files.get(name, (first, 0))
            self.files[name] = min(first, old_first), old_count + count

    def _extend(self, pairs: Iterable[tuple[int, int, str, str]]) -> None:
        for pair in pairs:
            self.sample.append(pair)
            self.size += _characters(pair)
        while self.size > _SAMPLE_CHARACTERS and len(self.sample) > 1:
            self._lower(self.limit // 2)

    def _lower(self, limit: int) -> None:
        if limit < self.limit:
            self.limit = limit
            self.sample = [pair for pair in self.sample if pair[1] <= limit]
            self.size = sum(map(_characters, self.sample))


def refuse_not_utf8(name: str, split: str, broken: int, pairs: int) -> None:
    """Raise UserError where more than half of a split's pairs are not UTF-8."""
    if 2 * broken > pairs:
        raise errors.UserError(
            f"{broken:,} of {pairs:,} {split} pairs of {name} are not UTF-8: convert the text, as "
            "with iconv -f LATIN1 -t UTF-8"
        )


def _characters(pair: tuple[int, int, str, str]) -> int:
    _, _, inputs, targets = pair
    return len(inputs) + len(targets)
