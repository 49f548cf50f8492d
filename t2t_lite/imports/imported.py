"""A model that was read from another framework's files, and the output_dir that is made of it."""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.model import transformer
from t2t_lite.run import checkpoint, finished
from t2t_lite.run import output_dir as output_dirs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Imported:
    """A model as this package has it.

    Attributes:
      hparams: of the model, and of its training as far as they are known.
      weights: float32 arrays under the names of `Transformer.named_variables`.
      vocabulary_name: the file's name in the output_dir.
      vocabulary: the file's content, which `text.any_vocabulary.load` reads.
      vocab_size: how many ids it has.
      problem: what it has learnt.
      hparams_set: what the other framework calls its settings.
      step: updates that it was trained for.
      revision: the name and revision of a model that came from a hub.
      remarks: what the user should know, such as settings that no file tells and what they are
        taken to be.
    """

    hparams: config.HParams
    weights: Mapping[str, np.ndarray]
    vocabulary_name: str
    vocabulary: bytes
    vocab_size: int
    problem: str
    hparams_set: str
    step: int
    revision: str | None = None
    remarks: Sequence[str] = ()


def write(imported: Imported, output_dir: str | os.PathLike[str]) -> str:
    """Write an output_dir and return its checkpoint's prefix; see `finished.write`.

    Raises UserError where the weights are not all those of the model, too.
    """
    finished.check_new(output_dir)
    _check(imported)
    run = output_dirs.Run(
        problem=imported.problem,
        task="translation",
        data_dir="",
        vocabulary=imported.vocabulary_name,
        vocab_size=imported.vocab_size,
        hparams_set=imported.hparams_set,
        precision="float32",
        random_seed=0,
        imported_from=imported.revision,
    )
    return finished.write(
        output_dir,
        hparams=imported.hparams,
        run=run,
        vocabulary=imported.vocabulary,
        weights=imported.weights,
        step=imported.step,
    )


def num_layers(weights: Mapping[str, np.ndarray], side: str) -> int:
    """Return how many layers the encoder or the decoder has."""
    return len({name.partition("/")[0] for name in weights if re.match(rf"{side}_\d+/", name)})


def is_allowed(name: str, value: Any) -> bool:
    """Return whether HParams may have this number, of a setting of the training."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        config.override(config.HParams(), f"{name}={value}")
    except errors.UserError:
        return False
    return True


def _check(imported: Imported) -> None:
    """Raise UserError for weights that are missing, too many, of other shapes or no numbers."""
    with tf.device("CPU"):
        model = transformer.Transformer(imported.hparams, imported.vocab_size)
    if reason := checkpoint.misfit(imported.weights, model.named_variables()):
        raise errors.UserError(f"the model cannot be imported: it {reason}")
    for name, weights in imported.weights.items():
        if not np.isfinite(weights).all():
            raise errors.UserError(f"the model cannot be imported: {name} is not all finite")
