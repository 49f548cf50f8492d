"""One optimizer step, on one device or many (floor 3).

Shapes: B rows of the global batch, S and T source and target length.

The loss and its gradients are normalised by the target tokens of the *global* batch: each replica
weights its tokens by 1 / that number and replicas are summed, so neither their number nor an
uneven share of padding changes the result.

XLA, where it is on, compiles forward and backward pass inside the replica; the all-reduce and the
update stay outside, because compiled code cannot contain a collective under MirroredStrategy.
"""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from t2t_lite import config
from t2t_lite.model import dropout, transformer
from t2t_lite.train import loss, metrics, optimizer


class StepResult(NamedTuple):
    """Means over the global batch's target tokens, in nats, and the gradient's global norm."""

    loss: tf.Tensor
    likelihood: tf.Tensor
    gradient_norm: tf.Tensor


class TrainStep:
    """The compiled step; one trace for each shape of batch.

    Args:
      model: made inside the strategy's scope, as is `adam`.
      strategy: of which every replica gets an equal share of rows.
      xla: whether forward and backward pass are compiled.
      random_seed: of dropout.
    """

    def __init__(
        self,
        model: transformer.Transformer,
        adam: optimizer.Adam,
        *,
        hparams: config.HParams,
        strategy: tf.distribute.Strategy,
        xla: bool,
        random_seed: int,
    ):
        self._model = model
        self._adam = adam
        self._hparams = hparams
        self._strategy = strategy
        self._random_seed = random_seed
        self._variables = model.named_variables()
        self._gradients = tf.function(self._loss_and_gradients, jit_compile=xla, autograph=False)
        self._run = tf.function(self._distribute, autograph=False)

    def __call__(
        self, batch: Mapping[str, tf.Tensor], *, step: int, learning_rate: float
    ) -> StepResult:
        """Make update number `step` (from 1) with a global batch of "inputs" and "targets"."""
        inputs, targets = batch["inputs"], batch["targets"]
        scalars = tf.constant(step), tf.constant(learning_rate, tf.float32)
        return self._run(inputs, targets, *scalars)

    @property
    def traces(self) -> int:
        """Return how many shapes of batch were traced."""
        return self._run.experimental_get_tracing_count()

    def _distribute(self, inputs, targets, step, learning_rate) -> StepResult:
        weights = loss.token_weights(targets)
        weights /= tf.maximum(tf.reduce_sum(weights), 1.0)
        count = self._strategy.num_replicas_in_sync
        shares = [_split_rows(x, count) for x in (inputs, targets, weights)]
        if count == 1:
            return self._replica_step(*(share[0] for share in shares), step, learning_rate)
        distribute = self._strategy.experimental_distribute_values_from_function
        args = [distribute(lambda c, s=s: s[c.replica_id_in_sync_group]) for s in shares]
        results = self._strategy.run(self._replica_step, args=(*args, step, learning_rate))
        total = lambda value: self._strategy.reduce("SUM", value, axis=None)  # noqa: E731
        norm = self._strategy.experimental_local_results(results.gradient_norm)[0]
        return StepResult(total(results.loss), total(results.likelihood), norm)

    def _replica_step(self, inputs, targets, weights, step, learning_rate) -> StepResult:
        replica = tf.distribute.get_replica_context()
        index = tf.cast(replica.replica_id_in_sync_group, tf.int32)
        seed = tf.stack([self._random_seed + 7919 * index, step])  # a prime keeps replicas apart
        losses, gradients = self._gradients(inputs, targets, weights, seed)
        if replica.num_replicas_in_sync > 1:
            gradients = replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        named = dict(zip(self._variables, gradients))
        self._adam.apply(named, learning_rate=learning_rate, step=tf.cast(step, tf.float32))
        return StepResult(losses.smoothed, losses.likelihood, tf.linalg.global_norm(gradients))

    def _loss_and_gradients(self, inputs, targets, weights, seed):
        noise = dropout.Noise(seed)
        with tf.GradientTape() as tape:
            states = self._model.decode(targets, self._model.encode(inputs, noise), noise)
            losses = loss.smoothed_cross_entropy(
                states,
                tf.convert_to_tensor(self._model.embedding.matrix),
                targets,
                weights,
                label_smoothing=self._hparams.label_smoothing,
                dtype=self._model.compute_dtype,
            )
        return losses, tape.gradient(losses.smoothed, list(self._variables.values()))


class EvalStep:
    """Sums over a batch for loss, perplexity and accuracy, without dropout or smoothing."""

    def __init__(self, model: transformer.Transformer):
        self._model = model
        ids = tf.TensorSpec([None, None], tf.int32)
        self._run = tf.function(self._counts, input_signature=[ids, ids], autograph=False)

    def __call__(self, batch: Mapping[str, tf.Tensor]) -> metrics.TokenCounts:
        return self._run(batch["inputs"], batch["targets"])

    def _counts(self, inputs, targets):
        return metrics.token_counts(self._model(inputs, targets), targets)


def _split_rows(x: tf.Tensor, count: int) -> list[tf.Tensor]:
    """Cut rows [B, ...] into `count` equal parts; rows of zeros, which count nowhere, fill up."""
    missing = -x.shape[0] % count
    padded = tf.pad(x, [[0, missing], [0, 0]]) if missing else x
    return tf.split(padded, count)
