"""Numbers that tensor2tensor 1.15.7 computed (tests/golden), as fixtures' raw material."""

import dataclasses
import json
import pathlib
import tempfile
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from t2t_lite.imports import tensor2tensor
from t2t_lite.model import transformer

DIRECTORY = pathlib.Path(__file__).parent / "golden"
# 61 subtokens, as many as the models have ids: those without which nothing can be spelt, and Greek.
_PIECES = ["<pad>", "<EOS>", "_", *"\\u;0123456789<>pdaEOS", *map(chr, range(945, 982))]
VOCABULARY = "\n".join(f"'{piece}'" for piece in _PIECES)


@dataclasses.dataclass(frozen=True)
class Golden:
    """One of the original's small models: arrays, notes, and our model with its weights."""

    arrays: Mapping[str, np.ndarray]
    notes: dict
    model: transformer.Transformer

    def group(self, prefix: str) -> dict[str, np.ndarray]:
        """Return the arrays below `prefix` under our variable names."""
        return tensor2tensor.convert(_below(self.arrays, prefix))


def load(name: str) -> Golden:
    """Load model "t2t_paper" or "t2t_prenorm", imported from a checkpoint of its weights."""
    arrays = np.load(DIRECTORY / f"{name}.npz")
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(pathlib.Path(folder), name)
        read = tensor2tensor.read(folder)
    model = transformer.Transformer(read.hparams, read.vocab_size)
    assign(model, read.weights)
    return Golden(arrays, json.loads((DIRECTORY / f"{name}.json").read_text()), model)


def write_checkpoint(folder: pathlib.Path, name: str, **others: np.ndarray) -> pathlib.Path:
    """Write what the original left of a model, and `others` as further variables; return its
    prefix."""
    arrays = np.load(DIRECTORY / f"{name}.npz")
    tensors = {**_below(arrays, "weights"), "global_step": np.int64(3), **others}
    write_tensors(folder / "model.ckpt-3", tensors)
    notes = json.loads((DIRECTORY / f"{name}.json").read_text())
    (folder / "hparams.json").write_text(json.dumps(notes["hparams"]))
    (folder / "flags.txt").write_text("--problem=translate_ende_wmt8k\n--model=transformer\n")
    (folder / "vocab.golden.subwords").write_text(VOCABULARY)
    return folder / "model.ckpt-3"


def write_tensors(prefix: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Write a checkpoint as TensorFlow 1 does: each tensor under its plain name."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(value) for value in tensors.values()],
    )


def assign(model: transformer.Transformer, values: Mapping[str, np.ndarray]) -> None:
    """Set every variable of the model; the names must match exactly."""
    variables = model.named_variables()
    assert variables.keys() == values.keys()
    for name, variable in variables.items():
        variable.assign(values[name])


def _below(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    names = [name for name in arrays if name.startswith(f"{prefix}/transformer/")]
    return {name.removeprefix(f"{prefix}/"): arrays[name] for name in names}
