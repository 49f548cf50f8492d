"""Constituency parsing (Section 6.3): the Penn Treebank's WSJ, its free sample, and CRAFT.

Files of trees lie in --raw_dir in any form that `treebanks` knows, at any depth. What belongs to
which split follows from a file's own name, so that one folder may hold several treebanks.
"""

import functools
import itertools
import pathlib
import re
from collections.abc import Iterator, Mapping

from t2t_lite import errors, registry
from t2t_lite.data import problem
from t2t_lite.parsing import treebanks, trees
from t2t_lite.text import corpora, weights

_AUTOMATIC = "automatic"  # folder of the semi-supervised corpora
_GOLD = "wsj"  # the WSJ's own name there


class TreebankProblem(problem.ParsingProblem):
    """Splits the files of trees in raw_dir by their names; subclasses give `parts`."""

    # how the files are called, for a message
    expected: str

    def parts(self, raw_dir: pathlib.Path) -> dict[str, list[treebanks.File]]:
        """Return each split's files in the order in which they are read."""
        raise NotImplementedError

    def split_files(self, raw_dir: problem.Directory) -> dict[str, list[treebanks.File]]:
        """Return `parts`; UserError where a split has no file, or has one twice."""
        if raw_dir is None:
            raise errors.UserError(
                f"{self.base_name} reads its trees from --raw_dir: give a folder with "
                f"{self.expected}"
            )
        if not pathlib.Path(raw_dir).is_dir():
            raise errors.UserError(f"--raw_dir={raw_dir} is not a folder")
        parts = self.parts(pathlib.Path(raw_dir))
        for split, files in parts.items():
            if not files:
                raise errors.UserError(
                    f"{self.base_name}: {raw_dir} has no trees for {split}; expected "
                    f"{self.expected}"
                )
        return parts

    def raw_files(self, raw_dir: problem.Directory = None) -> list[pathlib.Path]:
        """Return the files and archives of all splits, each once."""
        files = [file for part in self.split_files(raw_dir).values() for file in part]
        return list(dict.fromkeys(file.path for file in files))

    def trees(
        self, split: str, *, raw_dir: problem.Directory = None, tmp_dir: problem.Directory = None
    ) -> Iterator[trees.Tree | None]:
        """Yield the trees of the split's files."""
        yield from treebanks.read(self.split_files(raw_dir)[split], tmp_dir=tmp_dir)


@registry.register_problem
class Treebank(TreebankProblem):
    """Your own bracketed trees: train.trees (.mrg, .txt), dev.trees and perhaps test.trees.

    The files are in any form that `treebanks` knows, any number for each split.
    """

    vocabulary_size = 16_000
    expected = "files of bracketed trees, train.mrg, dev.mrg and test.mrg, or in folders train, ..."

    def splits(self, raw_dir: problem.Directory = None) -> tuple[str, ...]:
        """Return the splits but for a test split that raw_dir lacks."""
        return tuple(self.split_files(raw_dir)) if raw_dir else super().splits()

    def parts(self, raw_dir: pathlib.Path) -> dict[str, list[treebanks.File]]:
        """Return the files that are called as a split or lie in its folder."""
        corpora.refuse_strays(raw_dir, super().splits())
        found = {split: corpora.files(raw_dir, split) for split in super().splits()}
        return {
            split: [file for path in paths for file in _tree_files(path)]
            for split, paths in found.items()
            if paths or split != "test"
        }


@registry.register_problem
class TreebankTags(Treebank):
    """treebank with part-of-speech tags in the targets, not XX."""

    with_tags = True


@registry.register_problem
class WsjParsing(TreebankProblem):
    """Penn Treebank, WSJ: sections 02-21, 22 and 23 as .mrg files (.gz, .tgz) in --raw_dir.

    A file belongs to the section that its name tells (wsj_0201.mrg), otherwise to that of its
    folder (02/anything.mrg); 02.mrg in a folder of another kind holds all of a section, and
    02-21.10way.clean all of several.
    """

    vocabulary_size = 16_000
    expected = "wsj_0201.mrg ... wsj_2399.mrg, plain or .gz, in folders or .tgz"
    sections: Mapping[str, range] = {
        "train": range(2, 22),
        "dev": range(22, 23),
        "test": range(23, 24),
    }

    def parts(self, raw_dir: pathlib.Path) -> dict[str, list[treebanks.File]]:
        """Return the files of each split's sections; UserError that names the missing ones."""
        by_section: dict[int, list[treebanks.File]] = {}
        for file in treebanks.find(raw_dir):
            held = _sections(file) if self._is_gold(file, raw_dir) else range(0)
            if len(held) > 1 and not any(set(held) <= set(of) for of in self.sections.values()):
                raise errors.UserError(f"{file} holds sections of several splits: divide it")
            for section in held:
                by_section.setdefault(section, []).append(file)
        wanted = [number for numbers in self.sections.values() for number in numbers]
        missing = [f"{number:02d}" for number in wanted if number not in by_section]
        if missing:
            raise errors.UserError(
                f"{self.base_name}: {raw_dir} lacks section {', '.join(missing)}; "
                f"expected {self.expected}"
            )
        return {
            split: list(
                dict.fromkeys(file for number in numbers for file in _distinct(by_section[number]))
            )
            for split, numbers in self.sections.items()
        }

    def _is_gold(self, file: treebanks.File, raw_dir: pathlib.Path) -> bool:
        return bool(_sections(file))


@registry.register_problem
class WsjParsingSemisupervised(WsjParsing):
    """wsj_parsing, and in training all parsed trees in --raw_dir/automatic (.mrg, .txt).

    Each file or archive in `automatic/` (one tree a line or broken into lines) is a corpus, called
    as the file is. `weights.tsv` in --raw_dir may give corpora a weight, a line each, `wsj` for the
    WSJ itself; without one a corpus weighs 1:

        wsj<TAB>4
        high-confidence.txt.gz<TAB>1.5

    Of a corpus of weight 1.5 all trees are read once, and half of them, drawn with a fixed seed, a
    second time.
    """

    vocabulary_size = 32_000
    expected = f"{WsjParsing.expected}; and {_AUTOMATIC}/ with files of parsed trees"

    def raw_files(self, raw_dir: problem.Directory = None) -> list[pathlib.Path]:
        """Return the WSJ's files, the automatic ones and the weights."""
        files = super().raw_files(raw_dir)
        folder = pathlib.Path(raw_dir or "")
        self._weights(folder)
        return [*files, *_automatic(folder).values(), *weights.file(folder)]

    def trees(
        self, split: str, *, raw_dir: problem.Directory = None, tmp_dir: problem.Directory = None
    ) -> Iterator[trees.Tree | None]:
        """Yield the trees of the WSJ and in training those of each corpus by its weight."""
        gold = self.split_files(raw_dir)[split]
        if split != "train":
            yield from treebanks.read(gold, tmp_dir=tmp_dir)
            return
        folder = pathlib.Path(raw_dir or "")
        files_of = {name: treebanks.files_of(path) for name, path in _automatic(folder).items()}
        for name, weight in self._weights(folder).items():
            read = functools.partial(
                treebanks.read, gold if name == _GOLD else files_of[name], tmp_dir=tmp_dir
            )
            yield from weights.repeat(read, weight, name)

    def _is_gold(self, file: treebanks.File, raw_dir: pathlib.Path) -> bool:
        is_automatic = file.path.relative_to(raw_dir).parts[0] == _AUTOMATIC
        return not is_automatic and super()._is_gold(file, raw_dir)

    def _weights(self, raw_dir: pathlib.Path) -> dict[str, float]:
        """Return the weight of each corpus, the WSJ first."""
        return weights.read(raw_dir, [_GOLD, *_automatic(raw_dir)])


# The real corpora that are free are small, and so are the models that learn them on a processor's
# two cores: an embedding of 4,000 does not outweigh the layers, and each subword is seen often.
_SMALL_VOCABULARY = 4_000


@registry.register_problem
class WsjSampleParsing(TreebankProblem):
    """The WSJ's free sample, combined.tgz in --raw_dir: 0001-0159 train, 0160-0179 dev, then test.

    It is in --raw_dir as wsj_NNNN.mrg or as an archive (combined.tgz) of them.
    """

    vocabulary_size = _SMALL_VOCABULARY
    expected = "the sample's wsj_0001.mrg ... wsj_0199.mrg or an archive of them"
    numbers: Mapping[str, range] = {
        "train": range(1, 160),
        "dev": range(160, 180),
        "test": range(180, 200),
    }

    def parts(self, raw_dir: pathlib.Path) -> dict[str, list[treebanks.File]]:
        """Return the files whose numbers are the split's."""
        files = _distinct([file for file in treebanks.find(raw_dir) if _number(file) > 0])
        return {
            split: [file for file in files if _number(file) in numbers]
            for split, numbers in self.numbers.items()
        }


@registry.register_problem
class CraftParsing(TreebankProblem):
    """CRAFT, penn.tgz in --raw_dir: articles with numbers ..8 are dev, ..9 test.

    They are in --raw_dir as <PubMed number>.tree or as an archive (penn.tgz) of them. Dev and test
    have 10 articles each, 3,345 and 2,772 of 30,830 trees.
    """

    vocabulary_size = _SMALL_VOCABULARY
    expected = "CRAFT's articles, 11319941.tree ..., or an archive of them"
    last_digits: Mapping[str, str] = {"train": "01234567", "dev": "8", "test": "9"}

    def parts(self, raw_dir: pathlib.Path) -> dict[str, list[treebanks.File]]:
        """Return the articles whose number ends in one of the split's digits."""
        articles = treebanks.find(raw_dir)
        files = _distinct([file for file in articles if re.fullmatch(r"\d{5,}", file.stem)])
        return {
            split: [file for file in files if file.stem[-1] in digits]
            for split, digits in self.last_digits.items()
        }


@registry.register_problem
class WsjSampleCraftParsing(TreebankProblem):
    """wsj_sample_parsing and craft_parsing, both files in --raw_dir: one model, scored on each.

    Train is that of both; dev and test are the sample's, craft_dev and craft_test CRAFT's.
    """

    vocabulary_size = _SMALL_VOCABULARY
    expected = f"{WsjSampleParsing.expected}; and {CraftParsing.expected}"

    def splits(self, raw_dir: problem.Directory = None) -> tuple[str, ...]:
        """Return both corpora's splits."""
        return ("train", "dev", "test", "craft_dev", "craft_test")

    def parts(self, raw_dir: pathlib.Path) -> dict[str, list[treebanks.File]]:
        """Return the parts of both corpora."""
        sample = WsjSampleParsing().split_files(raw_dir)
        craft = CraftParsing().split_files(raw_dir)
        return {
            "train": sample["train"] + craft["train"],
            "dev": sample["dev"],
            "test": sample["test"],
            "craft_dev": craft["dev"],
            "craft_test": craft["test"],
        }


# With tags for XX the model has to know, word by word, which one it is at. The trees are scored in
# the same way.


@registry.register_problem
class WsjSampleParsingTags(WsjSampleParsing):
    """wsj_sample_parsing with part-of-speech tags in the targets, not XX."""

    with_tags = True


@registry.register_problem
class CraftParsingTags(CraftParsing):
    """craft_parsing with part-of-speech tags in the targets, not XX."""

    with_tags = True


@registry.register_problem
class WsjSampleCraftParsingTags(WsjSampleCraftParsing):
    """wsj_sample_craft_parsing with part-of-speech tags in the targets, not XX."""

    with_tags = True


def _sections(file: treebanks.File) -> range:
    """Return the WSJ sections that a file's name or its folder tells: 2 to 21 for 02-21.10way.

    UserError where the two differ, but that 22.mrg in 02/ is but the 22nd file there.
    """
    named = re.fullmatch(r"(?:wsj_)?(\d\d)(?:\d\d|-(\d\d))?(?:\.\w+)?", file.stem, re.IGNORECASE)
    folder = re.fullmatch(r"(\d\d)", file.folder)
    if named and folder and len(file.stem) > 2 and named[1] != folder[1]:
        raise errors.UserError(
            f"{file} is of section {named[1]} by its name and of {folder[1]} by its folder: "
            "rename or move it"
        )
    if folder or not named:
        return range(int(folder[1]), int(folder[1]) + 1) if folder else range(0)
    return range(int(named[1]), int(named[2] or named[1]) + 1)


def _number(file: treebanks.File) -> int:
    """Return 201 for wsj_0201, -1 for another name."""
    named = re.fullmatch(r"wsj_(\d{4})", file.stem, re.IGNORECASE)
    return int(named[1]) if named else -1


def _distinct(files: list[treebanks.File]) -> list[treebanks.File]:
    """Return the files sorted by their names; UserError where two have the same."""
    files = sorted(files, key=lambda file: (file.stem.lower(), file))
    for first, second in itertools.pairwise(files):
        if first.stem.lower() == second.stem.lower():
            raise errors.UserError(
                f"{first.stem} is there twice, as {first} and as {second}: leave one of the two"
            )
    return files


def _automatic(raw_dir: pathlib.Path) -> dict[str, pathlib.Path]:
    """Return the automatically parsed corpora by their names."""
    folder = raw_dir / _AUTOMATIC
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    named = {path.name: path for path in paths if not path.name.startswith(".")}
    if not named:
        raise errors.UserError(
            f"{raw_dir} lacks {_AUTOMATIC}/ with files of automatically parsed trees"
        )
    for path in named.values():
        _tree_files(path)
    return named


def _tree_files(path: pathlib.Path) -> list[treebanks.File]:
    """Return the files of trees that a path is; UserError where it is none."""
    files = [] if path.is_dir() else treebanks.files_of(path)
    if not files:
        raise errors.UserError(
            f"{path} is not a file of trees or an archive of such: give it a name that ends in "
            f"{', '.join(treebanks.SUFFIXES)} (and .gz) or {', '.join(treebanks.ARCHIVES)}"
        )
    return files
