"""Checkpoints of an output_dir: ckpt-<step>.index and .data-*.

Weights are stored by name ("model/decoder_0/self_attention/qkv"), so that they can be averaged,
imported and read without the model's code; beside them is their `identity`. TensorFlow writes the
data file first and the index last, each under a temporary name: a checkpoint with an index is
complete. Dropout is a function of the step, so step and data position are all the random state.
"""

import contextlib
import hashlib
import pathlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from t2t_lite import errors
from t2t_lite.run import identity as identities
from t2t_lite.run import plain_paths
from t2t_lite.text import text_files

# TensorFlow's errors about a truncated, corrupt or foreign checkpoint file.
_DAMAGE = (tf.errors.OpError, AssertionError, ValueError, IndexError, RuntimeError)
_IDENTITY = "identity/.ATTRIBUTES/VARIABLE_VALUE"
_NAME = re.compile(r"ckpt-(\d+)$")
_POSITION = "batches"  # another name for each kind of iterator; before, "data" and "pairs"


class Checkpoints:
    """Writes and restores the checkpoints of one run.

    Args:
      directory: the output_dir.
      variables: weights by name.
      slots: optimizer moments by name.
      data: the iterator whose position is saved.
      identity: the weights' identity.
      keep: how many recent checkpoints to keep.
    """

    def __init__(
        self,
        directory: str | pathlib.Path,
        *,
        variables: Mapping[str, tf.Variable],
        slots: Mapping[str, tf.Variable],
        data: Any,
        identity: identities.Identity,
        keep: int,
    ):
        self._directory = pathlib.Path(directory)
        self._identity = identity
        self._keep = keep
        parts = {"model": dict(variables), "optimizer": dict(slots)}
        self._without_position = tf.train.Checkpoint(**parts)
        parts[_POSITION] = data
        # A checkpoint's identity is compared, not restored.
        self._restored = tf.train.Checkpoint(**parts)
        self._saved = tf.train.Checkpoint(**parts, identity=_text_variable(identity.to_text()))
        self.has_position = True

    def save(self, step: int, *, in_place_of: int | None = None) -> str:
        """Write ckpt-<step> and delete the oldest beyond `keep`; return its path prefix.

        Args:
          in_place_of: the step of a checkpoint that is deleted when this one is complete.

        Raises UserError where the disk is full; checkpoints written before stay as they are.
        """
        prefix = str(self._directory / f"ckpt-{step}")
        _write(self._saved, prefix)
        if in_place_of is not None:
            _remove(str(self._directory / f"ckpt-{in_place_of}"))
        # Newer ones, which were damaged when the training resumed, do not count.
        until_now = [old for at, old in list_checkpoints(self._directory) if at <= step]
        for old in until_now[: -self._keep]:
            _remove(old)
        return prefix

    def remove_leftovers(self) -> None:
        """Remove incomplete checkpoints of a killed process."""
        remove_half_written(self._directory)
        complete = {f"ckpt-{step}" for step, _ in list_checkpoints(self._directory)}
        for path in self._directory.glob("ckpt-*.data-*"):
            if path.stem not in complete:
                path.unlink()

    def restore_latest(self) -> tuple[int, Sequence[str]]:
        """Restore the newest checkpoint that can be read.

        Returns:
          Its step (0 where there is none) and the damaged ones that were skipped. If `has_position`
          is False afterwards, the data are still at their start: the checkpoint has another
          version's kind of position.
        """
        reasons: dict[str, str] = {}
        for step, prefix in reversed(list_checkpoints(self._directory)):
            try:
                with _as_tensorflow_takes(prefix) as path:
                    self._restore(path)
            except _DAMAGE as error:
                reasons[prefix] = str(error).strip().partition("\n")[0]
            else:
                check_identity(prefix, self._identity)
                return step, list(reasons)
        if reasons:
            newest, reason = next(iter(reasons.items()))
            checkpoints = errors.counted(len(reasons), "checkpoint")
            raise errors.UserError(
                f"none of {checkpoints} in {self._directory} can be resumed from; {newest}: "
                f"{reason}. If it was written by another version of t2t-lite, a new "
                f"--output_dir with --warm_start_from={newest} keeps its weights"
            )
        return 0, []

    def _restore(self, path: str) -> None:
        keys = tf.train.load_checkpoint(path).get_variable_to_shape_map()
        self.has_position = any(key.startswith(f"{_POSITION}/") for key in keys)
        parts = self._restored if self.has_position else self._without_position
        restored = parts.read(path).assert_existing_objects_matched()
        restored.expect_partial()  # the identity is compared, not restored


def list_checkpoints(directory: str | pathlib.Path) -> list[tuple[int, str]]:
    """Return (step, path prefix) of every complete checkpoint, oldest first.

    Copies under other names, such as keep-ckpt-5000, are left out.
    """
    prefixes = [path.with_suffix("") for path in pathlib.Path(directory).glob("ckpt-*.index")]
    return sorted(
        (step_of(prefix), str(prefix)) for prefix in prefixes if _NAME.fullmatch(prefix.name)
    )


def step_of(prefix: str | pathlib.Path) -> int:
    """Return 1000 for ".../ckpt-1000"; raise UserError for another kind of name."""
    match = _NAME.search(pathlib.Path(prefix).name)
    if match is None:
        raise errors.UserError(f"{prefix}: expected a checkpoint's path that ends in ckpt-<step>")
    return int(match[1])


def resolve(output_dir: str | pathlib.Path, checkpoint_path: str | None = None) -> str:
    """Return the prefix of the checkpoint to use; UserError where there is none.

    Args:
      output_dir: a folder whose newest checkpoint is the default.
      checkpoint_path: a prefix (".../ckpt-1000"), or another folder (".../averaged", ".../best").
    """
    if checkpoint_path is not None and pathlib.Path(f"{checkpoint_path}.index").exists():
        return str(checkpoint_path)
    directory = output_dir if checkpoint_path is None else checkpoint_path
    checkpoints = list_checkpoints(directory)
    if not checkpoints:
        raise errors.UserError(f"no checkpoint at {directory}: expected files ckpt-<step>.index")
    return checkpoints[-1][1]


def separate(checkpoint_paths: str) -> list[str]:
    """Return the paths between commas; an existing file or folder of the whole name is one path.

    >>> separate("run/best, run/averaged")
    ['run/best', 'run/averaged']
    """
    if any(pathlib.Path(f"{checkpoint_paths}{end}").exists() for end in ("", ".index")):
        return [checkpoint_paths]
    paths = [path.strip() for path in checkpoint_paths.split(",")]
    if "" in paths:
        raise errors.UserError(f"no checkpoint between commas: {checkpoint_paths!r}")
    return paths


def identity_of(prefix: str) -> identities.Identity:
    """Return what a checkpoint's weights mean; UserError where it does not say it."""
    found = tensors(prefix, lambda name: name == _IDENTITY)
    if not found:
        raise errors.UserError(
            f"{prefix} is not a checkpoint of t2t-lite (it has no identity); t2t-lite-import reads "
            "those of other frameworks"
        )
    return identities.from_text(found[_IDENTITY].decode("utf-8"))


def check_identity(prefix: str, expected: identities.Identity) -> None:
    """Raise UserError where a checkpoint's weights mean something else."""
    if difference := expected.difference(identity_of(prefix)):
        raise errors.UserError(
            f"{prefix} holds the weights of another model ({difference}); give a checkpoint of "
            "the same vocabulary and hparams"
        )


def restore_weights(
    prefix: str, variables: Mapping[str, tf.Variable], identity: identities.Identity
) -> None:
    """Set weights by name from a checkpoint; cast to the variables' own type.

    Raises UserError where one is missing, is too many, has another shape or cannot be read, and
    where the checkpoint's weights are not of this identity.
    """
    values = read_weights(prefix)
    if reason := misfit(values, variables):
        raise errors.UserError(f"{prefix} {reason}: it is of another model")
    check_identity(prefix, identity)
    for name, variable in variables.items():
        variable.assign(tf.cast(values[name], variable.dtype))


def misfit(values: Mapping[str, Any], variables: Mapping[str, tf.Variable]) -> str:
    """Return why arrays are not a model's weights, "" where they are: "lacks decoder_0/x"."""
    for names, verb in (
        (variables.keys() - values.keys(), "lacks"),
        (values.keys() - variables.keys(), "has beside the model's own"),
    ):
        if names:
            more = f" and {len(names) - 1} more weights" if len(names) > 1 else ""
            return f"{verb} {min(names)}{more}"
    for name, variable in variables.items():
        if values[name].shape != tuple(variable.shape):
            return f"does not fit: {name} has shape {values[name].shape}, expected {variable.shape}"
    return ""


def restore_fitting_weights(
    prefix: str, variables: Mapping[str, tf.Variable]
) -> tuple[list[str], list[str]]:
    """Set the weights whose names and shapes fit.

    Returns:
      The names of variables that were not set, and of weights that were not used.
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
    found = tensors(prefix, lambda key: key.startswith("model/"))
    return {_unescape(key): value for key, value in found.items()}


def tensors(prefix: str, is_wanted: Callable[[str], object]) -> dict[str, Any]:
    """Return the tensors that are wanted of any checkpoint of TensorFlow; UserError where it is
    damaged."""
    try:
        with _as_tensorflow_takes(prefix) as path:
            reader = tf.train.load_checkpoint(path)
            wanted = sorted(filter(is_wanted, reader.get_variable_to_shape_map()))
            return {name: reader.get_tensor(name) for name in wanted}
    except (*_DAMAGE, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise errors.UserError(f"cannot read the checkpoint {prefix}: {reason}") from error


def write_weights(prefix: str, weights: Mapping[str, Any], identity: identities.Identity) -> None:
    """Write weights alone as a checkpoint that `restore_weights` reads."""
    variables = {name: tf.Variable(value, trainable=False) for name, value in weights.items()}
    identity_text = _text_variable(identity.to_text())
    _write(tf.train.Checkpoint(model=variables, identity=identity_text), prefix)


def write_only(
    directory: pathlib.Path, step: int, weights: Mapping[str, Any], identity: identities.Identity
) -> str:
    """Write weights as ckpt-<step>, delete the other checkpoints there, and return the prefix."""
    directory.mkdir(parents=True, exist_ok=True)
    prefix = str(directory / f"ckpt-{step}")
    write_weights(prefix, weights, identity)
    remove_half_written(directory)
    for path in directory.glob("ckpt-*"):
        if not path.name.startswith(f"ckpt-{step}."):
            path.unlink(missing_ok=True)
    return prefix


def _write(parts: tf.train.Checkpoint, prefix: str) -> None:
    """Write a checkpoint so that it outlasts a power cut, after which older ones may be removed."""
    with _explain_failure(prefix), _as_tensorflow_takes(prefix) as path:
        parts.write(path)
        for file in _files(prefix):  # TensorFlow leaves them to the system's caches
            text_files.sync(file)


def _files(prefix: str) -> list[pathlib.Path]:
    """Return a checkpoint's files, its index first."""
    path = pathlib.Path(prefix)
    return [path.with_name(f"{path.name}.index"), *path.parent.glob(f"{path.name}.data-*")]


def _remove(prefix: str) -> None:
    """Remove a checkpoint, its index first: what has an index is complete."""
    for file in _files(prefix):
        file.unlink(missing_ok=True)


def remove_half_written(directory: pathlib.Path, step: str = "*") -> None:
    """Remove the folders in which TensorFlow writes a checkpoint before it renames the files."""
    for folder in directory.glob(f"ckpt-{step}_temp*"):
        shutil.rmtree(folder, ignore_errors=True)


def fingerprint(prefix: str) -> str:
    """Return a short text that tells a checkpoint's content from any other's.

    It is made from the index, which has a checksum of every tensor.
    """
    return hashlib.sha256(pathlib.Path(f"{prefix}.index").read_bytes()).hexdigest()[:16]


@contextlib.contextmanager
def _as_tensorflow_takes(prefix: str) -> Iterator[str]:
    """Yield a prefix of the same checkpoint in a folder that TensorFlow finds."""
    path = pathlib.Path(prefix)
    if not plain_paths.is_plain(path.name):
        raise errors.UserError(f"{prefix}: TensorFlow cannot read files of that name: rename them")
    with plain_paths.folder(path.parent) as folder:
        yield str(folder / path.name)


@contextlib.contextmanager
def _explain_failure(prefix: str) -> Iterator[None]:
    """Turn TensorFlow's error about a full disk into one line, and remove what is half written."""
    try:
        yield
    except (tf.errors.OpError, OSError) as error:
        step, directory = str(step_of(prefix)), pathlib.Path(prefix).parent
        remove_half_written(directory, step)
        # TensorFlow's message is "{{node ...}} file; reason [Op:SaveV2]".
        reason = str(error).partition("\n")[0].partition(" [Op:")[0].rpartition("; ")[2]
        raise errors.UserError(
            f"cannot write the checkpoint of step {step} to {directory}: {reason}; "
            "earlier checkpoints are intact: free space and start the same command again"
        ) from error


def _text_variable(text: str) -> tf.Variable:
    with tf.device("CPU"):
        return tf.Variable(text, trainable=False)


def _unescape(key: str) -> str:
    """Return the name in a checkpoint's key: "model/a.Sb/.ATTRIBUTES/VARIABLE_VALUE" -> "a/b"."""
    name = key.removeprefix("model/").removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")
    return name.replace(".S", "/").replace("..", ".")
