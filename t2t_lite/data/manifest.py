"""What a data_dir holds for a problem: `<problem>.manifest.json`, written last by the generator.

A folder without it is unfinished. It records what the data were made from (problem, options,
versions, raw files with their hashes), what was kept and what was dropped and why, every file with
its size and hash, and the histogram of lengths from which the pipeline chooses its buckets.
"""

import collections
import dataclasses
import itertools
import json
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from t2t_lite import errors
from t2t_lite.data import problem as problems
from t2t_lite.data import shards
from t2t_lite.text import any_vocabulary, text_files

FORMAT = 1
_T2T_SAMPLE = 50_000  # pairs whose lengths stand for all of a T2T corpus


class Text(NamedTuple):
    """The raw lines of a dev or test split, in their order."""

    sources: list[str]
    references: list[str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of a manifest file; `data_dir` is where it lies."""

    problem: str  # the base name: toy_ende for toy_ende_rev
    data_dir: pathlib.Path
    options: dict[str, Any]
    versions: dict[str, Any]
    raw_files: list[dict[str, Any]]  # name, bytes, sha256
    vocabulary: dict[str, Any]  # file, size and the figures of its fit
    splits: dict[str, dict[str, Any]]  # counts, and the shards with records, bytes and sha256

    @property
    def vocabulary_path(self) -> pathlib.Path:
        """The vocabulary file that the shards were encoded with."""
        return self.data_dir / self.vocabulary["file"]

    def shards(self, split: str) -> list[pathlib.Path]:
        """Return a split's shards; raise UserError for an unknown split."""
        return [self.data_dir / shard["name"] for shard in self._split(split)["shards"]]

    def pairs(self, split: str) -> int:
        """Return the number of examples in a split."""
        return self._split(split)["pairs"]

    def lengths(self, split: str, *, is_reversed: bool = False) -> np.ndarray:
        """Return the rows (source length, target length, pairs), lengths with EOS.

        Long lengths are rounded up (`round_length`), so no example exceeds its row.
        """
        table = np.array(self._split(split)["lengths"], np.int64).reshape(-1, 3)
        return table[:, [1, 0, 2]] if is_reversed else table

    def check_files(self, *, hashes: bool = False) -> None:
        """Raise UserError where a file is missing or has another size than the manifest says.

        With `hashes` its contents are compared too; those of the vocabulary, without which no id
        means anything, always are.
        """
        for entry in self.files():
            what = difference(self.data_dir, entry, hashes=hashes or "file" in entry)
            if what:
                raise errors.UserError(
                    f"{self.data_dir} {what}, against {file_name(self.problem)}: generate the data "
                    "again with --overwrite"
                )

    def files(self) -> list[dict[str, Any]]:
        """Return every file that the manifest speaks for: name, bytes, sha256."""
        entries = [{**self.vocabulary, "name": self.vocabulary["file"]}]
        for split in self.splits.values():
            entries += split["shards"] + split.get("text", [])
        return entries

    def _split(self, name: str) -> dict[str, Any]:
        if name not in self.splits:
            raise errors.UserError(
                f"{self.data_dir} has no split {name!r} of {self.problem}; "
                f"it has {', '.join(self.splits)}"
            )
        return self.splits[name]


def file_name(base_name: str) -> str:
    """Return the manifest's file name, e.g. "toy_ende.manifest.json"."""
    return f"{base_name}.manifest.json"


def load(data_dir: str | os.PathLike[str], problem: problems.Problem) -> Manifest:
    """Read a problem's manifest; raise UserError where data_dir holds none or another problem's.

    A data_dir that tensor2tensor's t2t-datagen wrote has no manifest: one is made from what lies
    there, the problem's shards and the vocabulary (see `_t2t_vocabulary`).
    """
    data_dir = pathlib.Path(data_dir)
    path = data_dir / file_name(problem.base_name)
    try:
        fields = json.loads(path.read_bytes())
    except FileNotFoundError:
        of_t2t = _of_t2t(data_dir, problem)
        if of_t2t is None:
            raise _absent(data_dir, problem) from None
        return of_t2t
    except (ValueError, RecursionError) as error:
        raise errors.UserError(f"{path} is not a manifest: {error}") from error
    if isinstance(fields, dict) and fields.pop("format", None) != FORMAT:
        raise errors.UserError(
            f"{path} was written by another version of t2t-lite; generate the data again"
        )
    fault = _fault(fields, _SHAPE, "it")
    if not fault and any(len(row) != 3 for s in fields["splits"].values() for row in s["lengths"]):
        fault = "a row of 'lengths' has not 3 numbers"
    if fault:
        raise errors.UserError(f"{path} is not a manifest: {fault}; generate the data again")
    loaded = Manifest(data_dir=data_dir, **{name: fields[name] for name in _SHAPE})
    for entry in loaded.files():
        if pathlib.PurePath(entry["name"]).name != entry["name"] or not entry["name"].isprintable():
            raise errors.UserError(
                f"{path} is not a manifest: {entry['name']!r:.60} is no file's name; generate the "
                "data again"
            )
    return loaded


def save(manifest: Manifest) -> None:
    """Write the manifest into its data_dir, one line for each small thing."""
    fields = dataclasses.asdict(manifest)
    del fields["data_dir"]
    text = json.dumps({"format": FORMAT, **fields}, indent=1, ensure_ascii=False)
    # numbers of one list, e.g. a row of the histogram, on one line
    text = re.sub(r"\[[\s\d,]+\]", lambda row: re.sub(r"\s+", "", row.group()), text)
    with text_files.replacing(manifest.data_dir / file_name(manifest.problem)) as file:
        file.write(text.encode("utf-8") + b"\n")


def text_names(base_name: str, split: str) -> tuple[str, str]:
    """Return the names of a split's raw text files, e.g. "toy_ende-dev.inputs.txt"."""
    return f"{base_name}-{split}.inputs.txt", f"{base_name}-{split}.targets.txt"


def problem_text(data_dir: str | os.PathLike[str], problem: problems.Problem, split: str) -> Text:
    """Return the raw source lines and references of "dev", "test" or a named test set.

    They are as the problem reads them (`_rev` swaps the sides), uncleaned, one for each example.
    """
    loaded = load(data_dir, problem)
    split = problem.split(split)
    if split not in loaded.splits or "text" not in loaded.splits[split]:
        known = ", ".join(name for name, entry in loaded.splits.items() if "text" in entry)
        raise errors.UserError(
            f"{data_dir} has no text of split {split!r} of {problem.name}; it has {known or 'none'}"
        )
    loaded.check_files()
    if loaded.splits[split]["text"]:
        names = text_names(problem.base_name, split)
        inputs, targets = (list(text_files.read_lines(loaded.data_dir / name)) for name in names)
    else:  # T2T's
        inputs, targets = _decoded(loaded, split)
    return Text(targets, inputs) if problem.is_reversed else Text(inputs, targets)


def file_entries(paths: Sequence[pathlib.Path]) -> list[dict[str, Any]]:
    """Return the entries of files, each under a name of its own.

    Files that share a name have their path below the folder that all files have in common:
    02/a.mrg and 03/a.mrg, but b.mrg.
    """
    if not paths:
        return []
    times = collections.Counter(path.name for path in set(paths))
    folder = os.path.commonpath([path.parent for path in paths])
    return [
        file_entry(path, None if times[path.name] == 1 else path.relative_to(folder).as_posix())
        for path in paths
    ]


def file_entry(path: pathlib.Path, name: str | None = None) -> dict[str, Any]:
    """Return a file's name, size and SHA-256 for the manifest."""
    digest = text_files.sha256(path)
    return {"name": name or path.name, "bytes": path.stat().st_size, "sha256": digest}


def difference(data_dir: pathlib.Path, entry: dict[str, Any], *, hashes: bool) -> str:
    """Return how a file differs from its entry, "" if it does not; T2T's files have no hash."""
    path = data_dir / entry["name"]
    if not path.is_file():
        return f"lacks {path.name}"
    size = path.stat().st_size
    if size != entry["bytes"]:
        return f"has {size} bytes in {path.name}, not {entry['bytes']}"
    if hashes and "sha256" in entry and text_files.sha256(path) != entry["sha256"]:
        return f"has other contents in {path.name}"
    return ""


def histogram(sources: np.ndarray, targets: np.ndarray) -> list[list[int]]:
    """Return rows [source length, target length, pairs], lengths rounded up."""
    cells = np.stack([round_length(sources), round_length(targets)], axis=1)
    lengths, counts = np.unique(cells, axis=0, return_counts=True)
    return np.concatenate([lengths, counts[:, None]], axis=1).tolist()


def round_length(lengths: np.ndarray) -> np.ndarray:
    """Round lengths up, so that a histogram stays small: exact to 128, then 64 steps an octave.

    >>> round_length(np.array([7, 128, 129, 257])).tolist()
    [7, 128, 130, 260]
    """
    octave = np.ceil(np.log2(np.maximum(lengths, 128))).astype(np.int64)
    step = np.maximum(1, 1 << np.maximum(octave - 7, 0))
    return (lengths + step - 1) // step * step


_FILE = {"name": str, "bytes": int}
# What a manifest must hold: a type, [of each item], {key: ...} with "?" behind a key that may be
# absent, and {"*": of each value}.
_SHAPE = {
    "problem": str,
    "options": {"vocab_size": int},
    "versions": dict,
    "raw_files": [_FILE],
    "vocabulary": {
        "file": str,
        "bytes": int,
        "source_size?": int,
        "size": int,
        "subwords_per_word": float,
        "byte_subwords_share": float,
    },
    "splits": {
        "*": {
            "pairs": int,
            "source_tokens": int,
            "target_tokens": int,
            "shards": [_FILE],
            "text?": [_FILE],
            "lengths": [[int]],
        }
    },
}


def _fault(value: Any, shape: Any, where: str) -> str:
    """Return what about a value from a file is not as its shape says, "" if all is."""
    kind = shape if isinstance(shape, type) else type(shape)
    kinds: Any = {float: (int, float)}.get(kind, kind)  # JSON has one kind of number
    if not isinstance(value, kinds) or (kind is int and not 0 <= value < 2**63):
        return f"{where} is {json.dumps(value)[:40]}, expected {kind.__name__}"
    if isinstance(shape, type):
        return ""
    if isinstance(shape, list):
        parts = [(one, shape[0], f"an item of {where}") for one in value]
    else:
        shapes = dict.fromkeys(value, shape["*"]) if "*" in shape else shape
        missing = [key for key in shapes if not key.endswith("?") and key not in value]
        if missing:
            return f"{where} has no {missing[0]!r}"
        names = {key.removesuffix("?"): of for key, of in shapes.items()}
        parts = [(value[key], of, repr(key)) for key, of in names.items() if key in value]
    return next(filter(None, (_fault(*part) for part in parts)), "")


def _of_t2t(data_dir: pathlib.Path, problem: problems.Problem) -> Manifest | None:
    """Return a manifest of what T2T left there, None if that is nothing."""
    name = problem.base_name
    paths = {split: shards.find(data_dir, name, split) for split in ("train", "dev", "test")}
    vocab_path = _t2t_vocabulary(data_dir, problem) if paths["train"] else None
    if vocab_path is None:
        return None
    return Manifest(
        problem=name,
        data_dir=data_dir,
        options={},
        versions={},
        raw_files=[],
        vocabulary={
            "file": vocab_path.name,
            "bytes": vocab_path.stat().st_size,
            "size": any_vocabulary.load(vocab_path).size,
        },
        splits={split: _t2t_split(split, files) for split, files in paths.items() if files},
    )


def _t2t_vocabulary(data_dir: pathlib.Path, problem: problems.Problem) -> pathlib.Path | None:
    """Return the vocabulary of T2T's data: the problem's own, or else the only one that is there.

    Its own has the problem's name, or the one that its `vocabulary_file()` gives.
    """
    vocabularies = [path for path in sorted(data_dir.glob("vocab.*")) if path.suffix != ".model"]
    for own in (f"vocab.{problem.base_name}.", problem.vocabulary_file()):
        named = [path for path in vocabularies if path.name.startswith(own)]
        if len(named) == 1:
            return named[0]
    if len(vocabularies) > 1:
        raise errors.UserError(
            f"{data_dir} has several vocabularies, {', '.join(path.name for path in vocabularies)}"
            f": leave that of {problem.base_name}, or name it in the class's vocabulary_file()"
        )
    return vocabularies[0] if vocabularies else None


def _t2t_split(split: str, paths: list[pathlib.Path]) -> dict[str, Any]:
    """Return the entry of a T2T split; of train, lengths are those of the first shard's start."""
    counts = {path.name.rpartition("-")[2] for path in paths}
    if {len(paths)} != set(map(int, counts)):
        raise errors.UserError(
            f"{paths[0].parent} has {len(paths)} {split} shards of {' and of '.join(counts)}: "
            "expected as many as their names say; copy all of them, and only one generation's"
        )
    limit = _T2T_SAMPLE if split == "train" else None
    examples = list(itertools.islice(shards.read_examples(paths), limit))
    for one in examples:
        if not {"inputs", "targets"} <= one.keys() or "inputs_segmentation" in one:
            raise errors.UserError(
                f"{paths[0]}: expected examples of inputs and targets, a pair each, got "
                f"{', '.join(one) or 'nothing'}; packed data are not read: generate them unpacked"
            )
    lengths = [[len(one[key]) for one in examples] for key in ("inputs", "targets")]
    entry = {
        "shards": [{"name": path.name, "bytes": path.stat().st_size} for path in paths],
        "lengths": histogram(*(np.array(side, np.int64) for side in lengths)),
        "lengths_sampled": len(examples) == limit,
        "pairs": len(examples),
    }
    return entry if split == "train" else {**entry, "text": []}


def _decoded(loaded: Manifest, split: str) -> list[list[str]]:
    """Return the text of a split's shards, which T2T's subwords spell exactly."""
    vocab = any_vocabulary.load(loaded.vocabulary_path)
    examples = list(shards.read_examples(loaded.shards(split)))
    return [[vocab.decode(one[key]) for one in examples] for key in ("inputs", "targets")]


def _absent(data_dir: pathlib.Path, problem: problems.Problem) -> errors.UserError:
    suffix = file_name("")
    others = sorted(p.name.removesuffix(suffix) for p in data_dir.glob("*" + suffix))
    if others:
        return errors.UserError(
            f"{data_dir} was made for {', '.join(others)}, not for {problem.name}; give its own "
            f"--data_dir or run t2t-lite-datagen --problem={problem.name} --data_dir={data_dir}"
        )
    return errors.UserError(
        f"{data_dir} holds no (finished) data of {problem.name}: "
        f"run t2t-lite-datagen --problem={problem.name} --data_dir={data_dir} first"
    )
