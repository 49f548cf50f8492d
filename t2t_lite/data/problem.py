"""What a problem is: raw text, splits, vocabulary size, evaluation. It knows no model.

A problem of one's own is a class:

    @registry.register_problem
    class MyEnde(problem.TranslationProblem):
        \"""My company's manuals.\"""

        languages = ("en", "de")

        def samples(self, split, *, raw_dir=None, tmp_dir=None):
            for english, german in my_pairs(split):
                yield {"inputs": english, "targets": german}
"""

import copy
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Literal, Self

from t2t_lite import errors, registry
from t2t_lite.data import bitexts, text_files

Directory = str | os.PathLike[str] | None
Sample = dict[str, str]  # {"inputs": ..., "targets": ...}


class Problem:
    """Turns input text into target text; subclasses give at least `samples`."""

    vocabulary_size: int = 32_000
    evaluation: Literal["bleu", "brackets"] = "bleu"
    # of inputs and targets
    languages: tuple[str, str] = ("en", "en")
    # strings that are always one id of their own, e.g. the brackets of a parse
    symbols: tuple[str, ...] = ()
    # other names of splits, e.g. {"newstest2014": "test"}
    split_names: Mapping[str, str] = {}
    # whether inputs and targets are read in each other's place
    is_reversed: bool = False

    @property
    def base_name(self) -> str:
        """The name that shards and vocabulary carry: "toy_ende" for `toy_ende_rev` too."""
        return registry.snake_case(type(self).__name__)

    @property
    def name(self) -> str:
        """The name under which the registry knows the problem."""
        return self.base_name + ("_rev" if self.is_reversed else "")

    @property
    def source_language(self) -> str:
        """The language of the inputs, as this problem is read."""
        return self.languages[1 if self.is_reversed else 0]

    @property
    def target_language(self) -> str:
        """The language of the targets, as this problem is read."""
        return self.languages[0 if self.is_reversed else 1]

    def splits(self, raw_dir: Directory = None) -> tuple[str, ...]:
        """Return the splits that the raw data hold: "train", "dev" and any test sets."""
        return ("train", "dev", "test")

    def split(self, name: str) -> str:
        """Return the split that a name means, e.g. "test" for "newstest2014"."""
        return self.split_names.get(name, name)

    def samples(
        self, split: str, *, raw_dir: Directory = None, tmp_dir: Directory = None
    ) -> Iterator[Sample]:
        """Yield the split's {"inputs", "targets"}, always read forward and in the same order.

        `raw_dir` holds files that the user has; `tmp_dir` is a folder for what is downloaded or
        unpacked. A reversed problem yields the same: the pipeline swaps the sides.
        """
        raise NotImplementedError

    def raw_files(self, raw_dir: Directory = None) -> list[pathlib.Path]:
        """Return the files in raw_dir that `samples` reads; the manifest records their contents.

        Raises UserError that names what is missing. Problems that read no file return [].
        """
        return []

    def vocabulary_file(self, size: int | None = None) -> str:
        """Return the vocabulary's file name, e.g. "vocab.wmt14_ende.37000.model"."""
        return f"vocab.{self.base_name}.{size or self.vocabulary_size}.model"


class TranslationProblem(Problem):
    """A problem that can be read both ways: also registered as `<name>_rev`."""

    languages = ("en", "de")

    def reversed_problem(self) -> Self:
        """Return the same problem with inputs and targets in each other's place."""
        other = copy.copy(self)
        other.is_reversed = not self.is_reversed
        return other


class ParallelTextProblem(TranslationProblem):
    """Reads what lies in raw_dir as parallel text, in any form that `bitexts` knows.

    For `stems = {"dev": ("val",)}` and `sides = ("en", "de")` the dev split is val.en and val.de,
    or val.tsv, ...; the first of several stems that is there counts.
    """

    sides: tuple[str, str] = ("en", "de")
    stems: Mapping[str, tuple[str, ...]] = {"train": ("train",), "dev": ("dev",), "test": ("test",)}
    optional_splits: tuple[str, ...] = ()

    def splits(self, raw_dir: Directory = None) -> tuple[str, ...]:
        """Return the splits but the optional ones that raw_dir lacks."""
        return tuple(
            split
            for split in self.stems
            if split not in self.optional_splits or self.find(split, raw_dir)
        )

    def raw_files(self, raw_dir: Directory = None) -> list[pathlib.Path]:
        """Return the files of all splits; raise UserError that names the missing ones."""
        forms = f"plain or {', '.join(text_files.SUFFIXES[1:])}; also .tsv, .tmx, .sgm"
        splits = self.splits(raw_dir)
        if raw_dir is None:
            raise errors.UserError(
                f"{self.base_name} reads its text from --raw_dir: give a folder with "
                f"{', '.join(map(self.expected, splits))} ({forms})"
            )
        if not pathlib.Path(raw_dir).is_dir():
            raise errors.UserError(f"--raw_dir={raw_dir} is not a folder")
        missing = [split for split in splits if not self.find(split, raw_dir)]
        if missing:
            raise errors.UserError(
                f"{self.base_name}: {raw_dir} lacks {', '.join(map(self.expected, missing))} "
                f"({forms})"
            )
        return [path for split in splits for path in self.find(split, raw_dir)]

    def samples(
        self, split: str, *, raw_dir: Directory = None, tmp_dir: Directory = None
    ) -> Iterator[Sample]:
        """Yield the pairs of the split's files."""
        self.raw_files(raw_dir)
        for source, target in bitexts.read(self.find(split, raw_dir), self.sides):
            yield {"inputs": source, "targets": target}

    def find(self, split: str, raw_dir: Directory) -> list[pathlib.Path]:
        """Return the one or two files of a split, [] where there are none."""
        if raw_dir is None:
            return []
        found = (bitexts.find(pathlib.Path(raw_dir), s, self.sides) for s in self.stems[split])
        return next(filter(None, found), [])

    def expected(self, split: str) -> str:
        """Return how the split's files are called, for a message."""
        return " and ".join(f"{self.stems[split][0]}.{side}" for side in self.sides)
