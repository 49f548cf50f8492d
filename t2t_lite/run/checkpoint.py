"""Checkpoints of an output_dir: ckpt-<step>.index and .data-*.

Weights are stored by name ("model/decoder_0/self_attention/qkv"), not by the shape of Python
objects, so that they can be averaged, imported and read without the model's code. TensorFlow
writes the data file first and the index last, each under a temporary name: what has an index is
complete. Dropout is a function of the step, so step and data position are all the random state.
"""

import hashlib
import pathlib
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from t2t_lite import errors

# What TensorFlow raises for a truncated, corrupt or foreign checkpoint file.
_DAMAGE = (tf.errors.OpError, AssertionError, ValueError, IndexError, RuntimeError)
_NAME = re.compile(r"ckpt-(\d+)$")


class Checkpoints:
    """Writes and restores the checkpoints of one run.

    Args:
      directory: the output_dir.
      variables: weights by name.
      slots: optimizer moments by name.
      data: the iterator whose position is saved.
      keep: how many checkpoints stay.
    """

    def __init__(
        self,
        directory: str | pathlib.Path,
        *,
        variables: Mapping[str, tf.Variable],
        slots: Mapping[str, tf.Variable],
        data: Any,
        keep: int,
    ):
        self._directory = pathlib.Path(directory)
        self._checkpoint = tf.train.Checkpoint(
            model=dict(variables), optimizer=dict(slots), data=data
        )
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, str(directory), max_to_keep=keep, checkpoint_name="ckpt"
        )

    def save(self, step: int) -> str:
        """Write ckpt-<step> and delete the oldest beyond `keep`; return its path prefix.

        Raises UserError where the disk is full; checkpoints written before stay as they are.
        """
        try:
            return self._manager.save(checkpoint_number=step)
        except (tf.errors.ResourceExhaustedError, tf.errors.UnknownError, OSError) as error:
            for half_written in self._directory.glob(f"ckpt-{step}_temp"):
                shutil.rmtree(half_written, ignore_errors=True)
            # TensorFlow's message is "{{node ...}} file; reason [Op:SaveV2]".
            reason = str(error).partition("\n")[0].partition(" [Op:")[0].rpartition("; ")[2]
            raise errors.UserError(
                f"cannot write the checkpoint of step {step} to {self._directory}: {reason}; "
                "earlier checkpoints are intact: free space and start the same command again"
            ) from error

    def restore_latest(self) -> tuple[int, Sequence[str]]:
        """Restore the newest checkpoint that can be read.

        Returns:
          Its step (0 where there is none) and the damaged ones that were passed over.
        """
        reasons: dict[str, str] = {}
        for step, prefix in reversed(list_checkpoints(self._directory)):
            try:
                self._checkpoint.restore(prefix).assert_existing_objects_matched()
                return step, list(reasons)
            except _DAMAGE as error:
                reasons[prefix] = str(error).strip().partition("\n")[0]
        if reasons:
            newest, reason = next(iter(reasons.items()))
            raise errors.UserError(
                f"none of {len(reasons)} checkpoints in {self._directory} can be continued from; "
                f"{newest}: {reason}. If it was written by another version of t2t-lite, a new "
                f"--output_dir with --warm_start_from={newest} keeps its weights"
            )
        return 0, []


def list_checkpoints(directory: str | pathlib.Path) -> list[tuple[int, str]]:
    """Return (step, path prefix) of every complete checkpoint, oldest first."""
    prefixes = [path.with_suffix("") for path in pathlib.Path(directory).glob("*.index")]
    return sorted(
        (step_of(prefix), str(prefix)) for prefix in prefixes if _NAME.search(prefix.name)
    )


def step_of(prefix: str | pathlib.Path) -> int:
    """Return 1000 for ".../ckpt-1000"; raise UserError for another kind of name."""
    match = _NAME.search(pathlib.Path(prefix).name)
    if match is None:
        raise errors.UserError(f"{prefix}: expected a checkpoint's path that ends in ckpt-<step>")
    return int(match[1])


def resolve(output_dir: str | pathlib.Path, checkpoint_path: str | None = None) -> str:
    """Return the prefix of the checkpoint to use.

    Args:
      output_dir: the newest one in it is the default.
      checkpoint_path: a prefix (".../ckpt-1000"), or a folder whose newest one is meant
        (".../averaged", ".../best").

    Raises:
      UserError: where there is none.
    """
    if checkpoint_path is not None and pathlib.Path(f"{checkpoint_path}.index").exists():
        return str(checkpoint_path)
    directory = output_dir if checkpoint_path is None else checkpoint_path
    checkpoints = list_checkpoints(directory)
    if not checkpoints:
        raise errors.UserError(f"no checkpoint at {directory}: expected files ckpt-<step>.index")
    return checkpoints[-1][1]


def restore_weights(prefix: str, variables: Mapping[str, tf.Variable]) -> None:
    """Set weights by name from a checkpoint; cast to the variables' own type.

    Raises UserError where one is missing, has another shape or cannot be read.
    """
    values = read_weights(prefix)
    missing = sorted(variables.keys() - values.keys())
    if missing:
        raise errors.UserError(f"{prefix} lacks {missing[0]} and {len(missing) - 1} more weights")
    for name, variable in variables.items():
        if values[name].shape != tuple(variable.shape):
            raise errors.UserError(
                f"{prefix}: {name} has shape {values[name].shape}, expected {variable.shape}"
            )
        variable.assign(tf.cast(values[name], variable.dtype))


def restore_fitting_weights(
    prefix: str, variables: Mapping[str, tf.Variable]
) -> tuple[list[str], list[str]]:
    """Set the weights whose names and shapes fit.

    Returns:
      The names of variables that stay as they are, and of weights that are not used.
    """
    values = read_weights(prefix)
    fitting = {
        name
        for name, variable in variables.items()
        if name in values and values[name].shape == tuple(variable.shape)
    }
    for name in fitting:
        variables[name].assign(values[name])
    return sorted(variables.keys() - fitting), sorted(values.keys() - fitting)


def read_weights(prefix: str) -> dict[str, Any]:
    """Return {name: array} of the weights in a checkpoint, without optimizer and data state."""
    try:
        reader = tf.train.load_checkpoint(prefix)
        return {
            _unescape(key): reader.get_tensor(key)
            for key in reader.get_variable_to_shape_map()
            if key.startswith("model/")
        }
    except _DAMAGE as error:
        reason = str(error).partition("\n")[0]
        raise errors.UserError(f"cannot read the checkpoint {prefix}: {reason}") from error


def write_weights(prefix: str, weights: Mapping[str, Any]) -> None:
    """Write weights alone as a checkpoint that `restore_weights` reads."""
    variables = {name: tf.Variable(value, trainable=False) for name, value in weights.items()}
    tf.train.Checkpoint(model=variables).write(prefix)


def write_only(directory: pathlib.Path, step: int, weights: Mapping[str, Any]) -> str:
    """Write weights as ckpt-<step>, delete the other checkpoints there, and return the prefix."""
    directory.mkdir(parents=True, exist_ok=True)
    prefix = str(directory / f"ckpt-{step}")
    write_weights(prefix, weights)
    for path in directory.glob("ckpt-*"):
        if not path.name.startswith(f"ckpt-{step}."):
            path.unlink()
    return prefix


def fingerprint(prefix: str) -> str:
    """Return a short text that tells a checkpoint's content from any other's.

    It is made from the index, which has a checksum of every tensor.
    """
    return hashlib.sha256(pathlib.Path(f"{prefix}.index").read_bytes()).hexdigest()[:16]


def _unescape(key: str) -> str:
    """Return the name in a checkpoint's key: "model/a.Sb/.ATTRIBUTES/VARIABLE_VALUE" -> "a/b"."""
    name = key.removeprefix("model/").removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")
    return name.replace(".S", "/").replace("..", ".")
