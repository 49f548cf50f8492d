"""A problem's finished data, read once from a data_dir and handed on.

data = data_dir.read("data", registry.problem("toy_ende"))
data.pairs("train"), data.lengths("dev"), data.text("test").sources[0], data.vocabulary.size
"""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from t2t_lite import errors
from t2t_lite.data import buckets, lengths, manifest, shards, t2t_folder
from t2t_lite.data import problem as problems
from t2t_lite.text import any_vocabulary, text_files
from t2t_lite.text import vocabulary as vocabularies

_FIELDS = ("options", "versions", "raw_files", "vocabulary_file", "splits")  # of the manifest


class Text(NamedTuple):
    """The raw lines of a dev or test split, in their order."""

    sources: list[str]
    references: list[str]

    def remarks(self, split: str) -> list[str]:
        """Return a line about references that no output can equal: they were not in UTF-8."""
        lossy = sum(text_files.REPLACEMENT in line for line in self.references)
        what = f"{lossy:,} of {len(self.references):,} references of {split}"
        return [f"{what} have U+FFFD in place of bytes that are not UTF-8"] if lossy else []


@dataclasses.dataclass(frozen=True, kw_only=True)
class Data:
    """What a manifest holds. Its methods give sources and targets as `problem` reads them.

    Attributes:
      options: vocab_size, random_seed and the settings of cleaning.
      versions: of the format and of SentencePiece.
      raw_files: name, bytes and sha256 of each.
      vocabulary_file: the same, its size and the figures of its fit.
      splits: of each its counts, lengths, text files, and shards with records, bytes and sha256.
    """

    problem: problems.Problem = dataclasses.field(compare=False)
    folder: pathlib.Path
    options: dict[str, Any]
    versions: dict[str, Any]
    raw_files: list[dict[str, Any]]
    vocabulary_file: dict[str, Any]
    splits: dict[str, dict[str, Any]]
    _sizes: dict[tuple[int, int], list[tuple[int, int]]] = dataclasses.field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def vocabulary_path(self) -> pathlib.Path:
        """The vocabulary file that the shards were encoded with."""
        return self.folder / self.vocabulary_file["name"]

    @property
    def target_language(self) -> str:
        """The targets' language: the problem's, else by the raw files' names; "" if unknown."""
        languages = self.splits.get("train", {}).get("languages", ("", ""))
        told = languages[0 if self.problem.is_reversed else 1]
        return self.problem.target_language or told.partition("_")[0]

    @functools.cached_property
    def vocabulary(self) -> vocabularies.Vocabulary:
        """The vocabulary; that of the targets is its `targets`."""
        return any_vocabulary.load(self.vocabulary_path)

    def shards(self, split: str) -> list[pathlib.Path]:
        """Return a split's shards; raise UserError for an unknown split."""
        return [self.folder / shard["name"] for shard in self._split(split)["shards"]]

    def pairs(self, split: str) -> int:
        """Return the number of pairs in a split."""
        return self._split(split)["pairs"]

    def lengths(self, split: str) -> np.ndarray:
        """Return the rows (source length, target length, pairs); see `lengths`."""
        table = np.array(self._split(split)["lengths"], np.int64).reshape(-1, 3)
        return table[:, [1, 0, 2]] if self.problem.is_reversed else table

    def train_lengths(self, max_length: int) -> np.ndarray:
        """Return the lengths of the training pairs that have at most `max_length` tokens a side."""
        table = self.lengths("train")
        is_certain = (table[:, :2] <= max_length).all(axis=1).any()  # the others are rounded
        if self.splits["train"].get("lengths_sampled"):
            table = np.concatenate([table, [[max_length, max_length, 1]]])
        table = table[~lengths.is_too_long(table, max_length)]
        table[:, :2] = np.minimum(table[:, :2], max_length)
        if not len(table) or not (is_certain or self._has_pair(max_length)):
            raise errors.UserError(
                f"{self.folder}: no training pair of {self.problem.name} has at most "
                f"max_length={max_length} tokens a side"
            )
        return table

    def _has_pair(self, max_length: int) -> bool:
        """Return whether any training pair has at most `max_length` tokens a side, exactly."""
        pairs = shards.read_examples(self.shards("train"))
        return any(max(map(len, pair.values())) <= max_length for pair in pairs)

    def bucket_sizes(self, *, max_length: int, max_buckets: int) -> list[tuple[int, int]]:
        """Return the (source, target) lengths of the training's buckets, chosen once."""
        key = max_length, max_buckets
        if key not in self._sizes:
            self._sizes[key] = buckets.choose(
                self.train_lengths(max_length), max_buckets=max_buckets
            )
        return self._sizes[key]

    def text(self, split: str) -> Text:
        """Return the raw source lines and references of "dev", "test" or a named test set.

        They are uncleaned, one for each pair.
        """
        split = self.problem.split(split)
        if "text" not in self.splits.get(split, {}):
            known = ", ".join(name for name, entry in self.splits.items() if "text" in entry)
            raise errors.UserError(
                f"{self.folder} has no text of split {split!r} of {self.problem.name}; "
                f"it has {known or 'none'}"
            )
        self.check_files()
        if self.splits[split]["text"]:
            names = manifest.text_names(self.problem.base_name, split)
            inputs, targets = (list(text_files.read_lines(self.folder / name)) for name in names)
        else:  # T2T's subwords spell the text exactly
            pairs = list(shards.read_examples(self.shards(split)))
            inputs, targets = (
                [self.vocabulary.decode(pair[side]) for pair in pairs]
                for side in ("inputs", "targets")
            )
        return Text(targets, inputs) if self.problem.is_reversed else Text(inputs, targets)

    def content_hash(self, split: str) -> str:
        """Return a SHA-256 of what a split holds: of the hashes of the vocabulary and its shards.

        tensor2tensor's files have no hashes in a manifest: their names and sizes stand for them.
        """
        files = [
            (entry["name"], entry["bytes"], entry.get("sha256"))
            for entry in [self.vocabulary_file, *self._split(split)["shards"]]
        ]
        return hashlib.sha256(json.dumps(sorted(files)).encode("utf-8")).hexdigest()

    def files(self) -> list[dict[str, Any]]:
        """Return every file of the data: name, bytes, sha256."""
        entries = [self.vocabulary_file]
        for split in self.splits.values():
            entries += split["shards"] + split.get("text", [])
        return entries

    def check_files(self, *, hashes: bool = False) -> None:
        """Raise UserError where a file is missing or has another size than the manifest says.

        With `hashes` its contents are compared too; those of the vocabulary, without which no id
        means anything, always are.
        """
        for entry in self.files():
            is_vocabulary = entry is self.vocabulary_file
            what = manifest.difference(self.folder, entry, hashes=hashes or is_vocabulary)
            if what:
                raise errors.UserError(
                    f"{self.folder} {what}, against {manifest.file_name(self.problem.base_name)}: "
                    "generate the data again with --overwrite"
                )

    def save(self) -> None:
        """Write the manifest into the folder."""
        fields = {name: getattr(self, name) for name in _FIELDS}
        path = self.folder / manifest.file_name(self.problem.base_name)
        manifest.write(path, {"problem": self.problem.base_name, **fields})

    def _split(self, name: str) -> dict[str, Any]:
        if name not in self.splits:
            raise errors.UserError(
                f"{self.folder} has no split {name!r} of {self.problem.base_name}; "
                f"it has {', '.join(self.splits)}"
            )
        return self.splits[name]


def read(folder: str | os.PathLike[str], problem: problems.Problem) -> Data:
    """Read a problem's manifest; raise UserError where the folder holds none or another problem's.

    A folder that tensor2tensor's t2t-datagen wrote has none: what lies there tells the same.
    """
    folder = pathlib.Path(folder)
    path = folder / manifest.file_name(problem.base_name)
    fields = manifest.read(path) if path.exists() else t2t_folder.survey(folder, problem)
    if fields is not None:
        return Data(problem=problem, folder=folder, **{name: fields[name] for name in _FIELDS})
    suffix = manifest.file_name("")
    others = sorted(path.name.removesuffix(suffix) for path in folder.glob("*" + suffix))
    if others:
        raise errors.UserError(
            f"{folder} was made for {', '.join(others)}, not for {problem.name}; give its own "
            f"--data_dir or run t2t-lite-datagen --problem={problem.name} --data_dir={folder}"
        )
    raise errors.UserError(
        f"{folder} holds no (finished) data of {problem.name}: "
        f"run t2t-lite-datagen --problem={problem.name} --data_dir={folder} first"
    )
