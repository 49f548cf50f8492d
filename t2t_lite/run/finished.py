"""An output_dir written at once, of weights that were not trained in it."""

import os
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.run import checkpoint, output_dir
from t2t_lite.run import identity as identities


def check_new(path: str | os.PathLike[str]) -> None:
    """Raise UserError where something is at `path` already; an empty folder may be."""
    folder = pathlib.Path(path)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise errors.UserError(f"--output_dir={folder} is there already: give a new one")


def write(
    path: str | os.PathLike[str],
    *,
    hparams: config.HParams,
    run: output_dir.Run,
    vocabulary: bytes,
    weights: Mapping[str, Any],
    step: int,
) -> str:
    """Write an output_dir and return its checkpoint's prefix; it appears when it is complete.

    Args:
      path: the new output_dir.
      hparams: of the model.
      run: what it records.
      vocabulary: the content of the file called `run.vocabulary`.
      weights: float32, under the names of `Transformer.named_variables`.
      step: updates that the weights were trained for.

    Raises UserError where something is there already.
    """
    check_new(path)
    folder = pathlib.Path(os.path.abspath(path))  # "." has no name
    temporary = folder.with_name(f".{folder.name}.incomplete-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    # Beside the run, so that the file may have the same name.
    vocabulary_path = temporary / "vocabulary" / run.vocabulary
    try:
        vocabulary_path.parent.mkdir(parents=True)
        vocabulary_path.write_bytes(vocabulary)
        written = output_dir.open_or_create(
            temporary, hparams=hparams, run=run, vocabulary_path=vocabulary_path
        )
        shutil.rmtree(vocabulary_path.parent)
        identity = identities.of(hparams, written.vocabulary_path)
        with tf.device("CPU"):
            checkpoint.write_weights(str(temporary / f"ckpt-{step}"), weights, identity)
        if not folder.exists():
            os.replace(temporary, folder)
        else:  # someone may be in it; without run.json, the last, it is not an output_dir
            for file in sorted(temporary.iterdir(), key=lambda f: f.name == output_dir.RUN_FILE):
                file.rename(folder / file.name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return str(pathlib.Path(path) / f"ckpt-{step}")
