"""What a problem is: raw text, splits, vocabulary size, and its task. It knows no model.

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
import functools
import os
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from t2t_lite import errors, registry
from t2t_lite.parsing import trees as tree_forms
from t2t_lite.text import bitexts, corpora, weights

Directory = str | os.PathLike[str] | None
# {"inputs": ..., "targets": ...}; "reference" where what is scored is not the targets' text, "file"
# where samples are counted by the files that they are from
Sample = dict[str, str]


class Problem:
    """Turns input text into target text; subclasses give at least `samples`."""

    vocabulary_size: int = 32_000
    # what decoding, evaluation and serving must know of it, by the name that `tasks` gives it
    task: str = "translation"
    # of inputs and targets, as codes such as "de"; "" is one that nobody knows
    languages: tuple[str, str] = ("", "")
    # whether each blank-separated token of the targets, with the space before it, is one id of its
    # own, e.g. the brackets of a parse
    symbolic_targets: bool = False
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
    def target_language(self) -> str:
        """The language of the targets, as this problem is read."""
        return self.languages[0 if self.is_reversed else 1]

    def splits(self, raw_dir: Directory = None) -> tuple[str, ...]:
        """Return the splits that the raw data hold: "train", "dev" and any test sets."""
        return ("train", "dev", "test")

    def told_languages(self, raw_dir: Directory = None) -> tuple[str, str]:
        """Return `languages`, or those that the names of the raw files tell."""
        return self.languages

    def split(self, name: str) -> str:
        """Return the split that a name means, e.g. "test" for "newstest2014"."""
        return self.split_names.get(name, name)

    def samples(
        self, split: str, *, raw_dir: Directory = None, tmp_dir: Directory = None
    ) -> Iterator[Sample]:
        """Yield the split's {"inputs", "targets"}, always read forward and in the same order.

        Where outputs are compared with something else than the targets' text, "reference" is that.
        A sample with `reference == ""` has nothing to compare with: it is dropped from dev and test
        splits, and counted. From train go the samples without text, unless cleaning keeps them.

        `raw_dir` holds files that the user has; `tmp_dir` is a folder for what is downloaded or
        unpacked. A reversed problem yields the same: the pipeline swaps the sides.
        """
        raise NotImplementedError

    def ranges(
        self, split: str, every: int, *, raw_dir: Directory = None
    ) -> list[bitexts.Range] | None:
        """Return where each `every` samples of a split lie; None where only all can be read."""
        return None

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

    def reversed_problem(self) -> Self:
        """Return the same problem with inputs and targets in each other's place."""
        other = copy.copy(self)
        other.is_reversed = not self.is_reversed
        return other


class ParsingProblem(Problem):
    """Turns words into the linear form of their tree; subclasses give at least `trees`.

    Of (S (NP (PRP It)) (VP (VBD rained)) (. .)) the sample is

        inputs      It rained .
        targets      (S (NP XX )NP (VP XX )VP XX )S
        reference   (S (NP (PRP It)) (VP (VBD rained)) (. .))

    The targets have a space before each symbol, the first one too, so that a symbol is the same id
    wherever it stands. The inputs are the words with one space between two, and a round bracket
    in them is written -LRB- or -RRB-, as in the trees.
    """

    task = "parsing"
    symbolic_targets = True
    # whether each word's tag stands in place of XX
    with_tags: bool = False

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "with_tags" in vars(cls):
            cls.task = "parsing_with_tags" if cls.with_tags else "parsing"

    def trees(
        self, split: str, *, raw_dir: Directory = None, tmp_dir: Directory = None
    ) -> Iterator[tree_forms.Tree | None]:
        """Yield the split's trees as `trees.clean` leaves them, None where that is not a tree."""
        raise NotImplementedError

    def samples(
        self, split: str, *, raw_dir: Directory = None, tmp_dir: Directory = None
    ) -> Iterator[Sample]:
        """Yield a sample for each tree; a tree without words gives one without text."""
        for tree in self.trees(split, raw_dir=raw_dir, tmp_dir=tmp_dir):
            if tree is None:
                yield {"inputs": "", "targets": "", "reference": ""}
            else:
                yield {
                    "inputs": " ".join(tree.words()),
                    "targets": " " + tree_forms.linearize(tree, with_tags=self.with_tags),
                    "reference": str(tree),
                }


class ParallelTextProblem(TranslationProblem):
    """Reads what lies in raw_dir as parallel text, in any form that `bitexts` knows.

    For `stems = {"dev": ("val",)}` and `sides = ("en", "de")` the dev split is all that is called
    val.* or lies in a folder val: val.en and val.de, val.news.tsv, val/x.tmx, ... Where a split has
    several stems one of them is there. A subclass that names its sides but no languages has the
    sides as languages where they are codes such as "de". weights.tsv may say how often a corpus of
    the training counts.
    """

    languages = ("en", "de")
    sides: tuple[str, str] = ("en", "de")
    stems: Mapping[str, tuple[str, ...]] = {"train": ("train",), "dev": ("dev",), "test": ("test",)}
    optional_splits: tuple[str, ...] = ()
    # numbers or names of source and target in tables of more columns
    columns: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if "sides" in vars(cls) and "languages" not in vars(cls):
            source, target = (s if re.fullmatch("[a-z]{2,3}", s) else "" for s in cls.sides)
            cls.languages = source, target

    def splits(self, raw_dir: Directory = None) -> tuple[str, ...]:
        """Return the splits but the optional ones that raw_dir lacks."""
        return tuple(
            split
            for split in self.stems
            if split not in self.optional_splits or self.find(split, raw_dir)
        )

    def raw_files(self, raw_dir: Directory = None) -> list[pathlib.Path]:
        """Return the files of all splits; raise UserError that names the missing ones."""
        if raw_dir is None:
            raise errors.UserError(
                f"{self.base_name} reads its text from --raw_dir: give a folder with "
                f"{', '.join(map(self.expected, self.splits()))}; a split is {corpora.FORMS}"
            )
        folder = pathlib.Path(raw_dir)
        if not folder.is_dir():
            raise errors.UserError(f"--raw_dir={raw_dir} is not a folder")
        corpora.refuse_strays(folder, self._all_stems())
        splits = self.splits(raw_dir)
        missing = [split for split in splits if not self.find(split, raw_dir)]
        if missing:
            raise errors.UserError(
                f"{self.base_name}: {raw_dir} lacks {', '.join(map(self.expected, missing))}; "
                f"a split is {corpora.FORMS}"
            )
        self._weights(folder)
        paths = [
            path for split in splits for one in self.find(split, raw_dir) for path in one.paths
        ]
        return [*paths, *weights.file(folder)]

    def samples(
        self, split: str, *, raw_dir: Directory = None, tmp_dir: Directory = None
    ) -> Iterator[Sample]:
        """Yield the pairs of the split's files."""
        self.raw_files(raw_dir)
        weight_of = self._weights(pathlib.Path(raw_dir or "")) if split == "train" else {}
        for corpus in self.find(split, raw_dir):
            read = functools.partial(bitexts.read, corpus, self.columns)
            weight = weight_of.get(corpus.names[0], 1)
            for source, target in weights.repeat(read, weight, corpus.name):
                yield {"inputs": source, "targets": target, "file": corpus.name}

    def ranges(
        self, split: str, every: int, *, raw_dir: Directory = None
    ) -> list[bitexts.Range] | None:
        """Return the ranges of one corpus of plain files; None for others, and where a subclass
        reads its own."""
        found = self.find(split, raw_dir)
        is_as_it_is = type(self).samples is ParallelTextProblem.samples
        if not is_as_it_is or len(found) != 1 or set(self._weights(raw_dir).values()) != {1}:
            return None
        return bitexts.ranges(found[0], every)

    def find(self, split: str, raw_dir: Directory) -> list[corpora.Corpus]:
        """Return the corpora of a split, [] where there are none."""
        if raw_dir is None or not os.path.isdir(raw_dir):
            return []
        folder = pathlib.Path(raw_dir)
        told = self._told(folder) if self.sides == corpora.GENERIC else None
        found = [corpora.find(folder, stem, self.sides, told) for stem in self.stems[split]]
        found = [one for one in found if one]
        if len(found) > 1:
            names = " and ".join(one[0].names[0] for one in found)
            raise errors.UserError(f"{raw_dir} has {split} several times, as {names}: leave one")
        return found[0] if found else []

    def told_languages(self, raw_dir: Directory = None) -> tuple[str, str]:
        """Return the languages of the sides, or where these are GENERIC those that names tell."""
        is_told = raw_dir is not None and self.sides == corpora.GENERIC
        return (is_told and self._told(pathlib.Path(raw_dir or ""))) or self.languages

    def _told(self, folder: pathlib.Path) -> corpora.Sides | None:
        return corpora.languages(folder, self._all_stems())

    def _all_stems(self) -> list[str]:
        return [stem for stems in self.stems.values() for stem in stems]

    def expected(self, split: str) -> str:
        """Return how the split's files are called, for a message."""
        return " and ".join(f"{self.stems[split][0]}.{side}" for side in self.sides)

    def _weights(self, raw_dir: Directory) -> dict[str, float]:
        names = [corpus.names[0] for corpus in self.find("train", raw_dir)]
        return weights.read(pathlib.Path(raw_dir or ""), names)
