"""Checkpoints of TensorFlow, whoever wrote them."""

import pathlib
import re
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from t2t_lite import errors

# What TensorFlow raises for a truncated, corrupt or foreign checkpoint.
_DAMAGE = (tf.errors.OpError, AssertionError, ValueError, IndexError, RuntimeError, OSError)


def prefix(path: pathlib.Path) -> pathlib.Path:
    """Return the checkpoint's prefix that a path means; of a folder the newest one's.

    Raises UserError where there is none.
    """
    plain = re.sub(r"\.(index|meta|data-\d{5}-of-\d{5})$", "", path.name)
    if path.with_name(f"{plain}.index").is_file():
        return path.with_name(plain)
    if not path.is_dir():
        raise errors.UserError(f"there is no checkpoint {path}: it has no file {plain}.index")
    prefixes = [index.with_suffix("") for index in path.glob("*.index")]
    if not prefixes:
        raise errors.UserError(f"{path} holds no checkpoint: expected a file *ckpt-*.index")
    return max(prefixes, key=lambda prefix: (number(prefix), prefix.name))


def number(prefix: pathlib.Path) -> int:
    """Return the step in a checkpoint's name, 0 where there is none."""
    match = re.search(r"-(\d{1,15})$", prefix.name)
    return int(match[1]) if match else 0


def tensors(prefix: pathlib.Path, is_wanted: Callable[[str], object]) -> dict[str, np.ndarray]:
    """Return the tensors that are wanted; UserError where the checkpoint is damaged."""
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        wanted = sorted(filter(is_wanted, reader.get_variable_to_shape_map()))
        return {name: reader.get_tensor(name) for name in wanted}
    except _DAMAGE as error:
        reason = str(error).partition("\n")[0]
        raise errors.UserError(f"cannot read the checkpoint {prefix}: {reason}") from error


def floats(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return values as float32; UserError where one is of another kind."""
    for name, value in values.items():
        if value.dtype.kind not in "fV":  # V: bfloat16
            raise errors.UserError(f"the model cannot be imported: {name} holds no floats")
    return {name: np.asarray(value).astype(np.float32) for name, value in values.items()}
