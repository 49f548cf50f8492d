"""The training of parallel heads on a model that stays as it is (see model/parallel_heads).

What the heads have to guess is what greedy decoding will choose, not what a corpus says. So in
every step the model translates the batch's sources, and its outputs take the targets' place.

Shapes: B batch, T target length, P heads, D d_model.
"""

import dataclasses
import pathlib
from collections.abc import Mapping

import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.decode import options, translator
from t2t_lite.model import parallel_heads, transformer
from t2t_lite.run import checkpoint
from t2t_lite.run import identity as identities
from t2t_lite.tasks import task as tasks
from t2t_lite.train import loss


def check(
    task: tasks.Task,
    directory: str | pathlib.Path,
    *,
    hparams: config.HParams,
    warm_start_from: str | None,
) -> None:
    """Raise UserError where there are heads to train and no model for them."""
    if not hparams.parallel_heads:
        return
    if task.grammar:
        raise errors.UserError(
            "parallel_heads do not go with outputs that are always trees: leave them out"
        )
    if not warm_start_from and not checkpoint.list_checkpoints(directory):
        raise errors.UserError(
            "parallel_heads alone are trained, on a model that is there: add "
            "--warm_start_from=<output_dir>, and --hparams_set=<output_dir> for its hyperparameters"
        )


def load_base(
    source: str, variables: Mapping[str, tf.Variable], identity: identities.Identity
) -> list[str]:
    """Take all weights but the heads' from a model without heads; return what to say of it.

    Raises UserError where the model is another one.
    """
    prefix = checkpoint.resolve(source)
    base = {k: v for k, v in variables.items() if not k.startswith(f"{parallel_heads.NAME}/")}
    without_heads = dataclasses.replace(identity, model={**identity.model, "parallel_heads": 0})
    checkpoint.restore_weights(prefix, base, without_heads)
    return [f"parallel heads alone are trained; the other {len(base)} weights are {prefix}'s"]


class Distillation:
    """Puts the model's own outputs in the place of a batch's targets.

    Args:
      model: whose weights, but for the heads, are final by the first call.
      task: its vocabulary's.
    """

    def __init__(self, model: transformer.Transformer, task: tasks.Task):
        greedy = options.for_model(model.hparams, beam_size=1)
        self._translator = translator.Translator(model, task, greedy, frozen=True)

    def __call__(self, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return the batch with other targets, of the same shape: longer outputs are cut."""
        width = batch["targets"].shape[1]
        ids = self._translator.translate_ids(batch["inputs"]).ids[:, 0, :width]
        targets = tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
        # A row of padding, which fills up a batch, has no output.
        is_used = tf.reduce_any(batch["inputs"] != 0, axis=1, keepdims=True)
        return {**batch, "targets": tf.where(is_used, targets, 0)}


def losses(
    model: transformer.Transformer, batch: Mapping[str, tf.Tensor], *, label_smoothing: float
) -> loss.TokenLosses:
    """Return the heads' mean losses on a batch of "inputs", "targets" and "weights".

    Head i learns from the state that predicted target t, and from that target, what target t + i
    is; in front of the first are the heads' start and PAD. No gradient goes further back than the
    heads.
    """
    targets, weights = (tf.pad(batch[name], [[0, 0], [1, 0]]) for name in ("targets", "weights"))
    encoded = model.encode(batch["inputs"])
    states, sources = (
        tf.stop_gradient(x) for x in (model.decode(batch["targets"], encoded), encoded.states)
    )
    heads = model.parallel_heads
    start = tf.cast(tf.convert_to_tensor(heads.start), states.dtype)
    start = tf.broadcast_to(start, tf.shape(states[:, :1]))
    keys, values = heads.cross_attention.keys_values(sources)
    memory = parallel_heads.Memory(keys, values, encoded.mask)
    guesses_BTPD = model.guesses(tf.concat([start, states], axis=1), targets, memory)
    num_heads = guesses_BTPD.shape[2]

    def following(x: tf.Tensor) -> tf.Tensor:
        """[[5, 6, 1]] --> [[[6, 1], [1, 0], [0, 0]]] where P = 2."""
        length = tf.shape(x)[1]
        padded = tf.pad(x, [[0, 0], [0, num_heads]])
        shifted = [padded[:, i : i + length] for i in range(1, num_heads + 1)]
        return tf.stack(shifted, axis=2)

    return loss.smoothed_cross_entropy(
        model.softmax_inputs(guesses_BTPD),
        model.softmax_matrix(),
        following(targets),
        following(weights) / num_heads,
        label_smoothing=label_smoothing,
        dtype=model.compute_dtype,
    )
