"""A folder that tensor2tensor's t2t-datagen wrote: shards and a vocabulary, but no manifest."""

import itertools
import pathlib
from typing import Any

import numpy as np

from t2t_lite import errors
from t2t_lite.data import lengths, shards
from t2t_lite.data import problem as problems
from t2t_lite.text import any_vocabulary

_SAMPLE = 50_000  # pairs whose lengths stand for all of a training split


def survey(folder: pathlib.Path, problem: problems.Problem) -> dict[str, Any] | None:
    """Return what a manifest would hold of a problem's shards there, None if there are none."""
    name = problem.base_name
    paths = {split: shards.find(folder, name, split) for split in ("train", "dev", "test")}
    vocab_path = _vocabulary(folder, problem) if paths["train"] else None
    if vocab_path is None:
        return None
    size = any_vocabulary.load(vocab_path).size
    return {
        "options": {},
        "versions": {},
        "raw_files": [],
        "vocabulary_file": {**_entry(vocab_path), "size": size},
        "splits": {split: _split(split, files) for split, files in paths.items() if files},
    }


def _vocabulary(folder: pathlib.Path, problem: problems.Problem) -> pathlib.Path | None:
    """Return the vocabulary: the problem's own, or else the only one that is there.

    Its own has the problem's name, or the one that its `vocabulary_file()` gives.
    """
    paths = [path for path in sorted(folder.glob("vocab.*")) if path.suffix != ".model"]
    for own in (f"vocab.{problem.base_name}.", problem.vocabulary_file()):
        named = [path for path in paths if path.name.startswith(own)]
        if len(named) == 1:
            return named[0]
    if len(paths) > 1:
        raise errors.UserError(
            f"{folder} has several vocabularies, {', '.join(path.name for path in paths)}: leave "
            f"that of {problem.base_name}, or name it in the class's vocabulary_file()"
        )
    return paths[0] if paths else None


def _split(split: str, paths: list[pathlib.Path]) -> dict[str, Any]:
    """Return the entry of a split; of train, lengths are those of the first shard's start."""
    counts = {path.name.rpartition("-")[2] for path in paths}
    if {len(paths)} != set(map(int, counts)):
        raise errors.UserError(
            f"{paths[0].parent} has {len(paths)} {split} shards of {' and of '.join(counts)}: "
            "expected as many as their names say; copy all of them, and only one generation's"
        )
    limit = _SAMPLE if split == "train" else None
    examples = list(itertools.islice(shards.read_examples(paths), limit))
    for example in examples:
        if not {"inputs", "targets"} <= example.keys() or "inputs_segmentation" in example:
            raise errors.UserError(
                f"{paths[0]}: expected examples of inputs and targets, a pair each, got "
                f"{', '.join(example) or 'nothing'}; packed data are not read: generate them "
                "unpacked"
            )
    sides = [[len(example[key]) for example in examples] for key in ("inputs", "targets")]
    entry = {
        "shards": [_entry(path) for path in paths],
        "lengths": lengths.histogram(*(np.array(side, np.int64) for side in sides)),
        "lengths_sampled": len(examples) == limit,
        "pairs": len(examples),
    }
    return entry if split == "train" else {**entry, "text": []}


def _entry(path: pathlib.Path) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size}
