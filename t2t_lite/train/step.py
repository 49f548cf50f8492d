"""One optimizer step, on one device or many.

Shapes: B rows of the global batch, S and T source and target length.

The loss and its gradients are normalised by the target tokens of the *global* batch: every token
is weighted by 1 / that number and parts are summed, so neither the number of replicas and
micro-batches nor an uneven share of padding changes the result.

XLA, where it is on, compiles forward and backward pass inside the replica; the all-reduce and the
update stay outside, because compiled code cannot contain a collective under MirroredStrategy.

Nothing in a step waits for what a device has computed: whoever reads its result waits for it.
"""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from t2t_lite import config
from t2t_lite.model import dropout, transformer
from t2t_lite.train import loss, metrics, optimizer


class StepResult(NamedTuple):
    """Means over the global batch's target tokens, in nats, and the gradient's global norm.

    Where the norm is not finite the update was left out. `stops` is how many replicas were told to
    stop, the same number on all.
    """

    loss: tf.Tensor
    negative_log_likelihood: tf.Tensor
    gradient_norm: tf.Tensor
    stops: tf.Tensor


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
        self._xla = xla
        self._variables = model.named_variables()
        # For a branch a GPU's host waits until it knows which one to take. On a CPU it saves a pass
        # over the gradients, 2 % of a step.
        self._branches = not tf.config.list_physical_devices("GPU")
        self._compiled: dict[tuple, tf.types.experimental.ConcreteFunction] = {}

    def __call__(
        self,
        batch: Mapping[str, tf.Tensor],
        *,
        step: int,
        learning_rate: float,
        stop: bool = False,
    ) -> StepResult:
        """Make update number `step` (from 1) with a global batch as the pipeline makes it.

        Args:
          batch: of several workers each may give its own rows alone; "tokens" then says how many
            source and target tokens all rows have (see data.share).
          stop: whether this worker wants to stop, which `StepResult.stops` tells all.
        """
        with tf.device("CPU"):  # a copy to a GPU would wait for the step before
            numbers = tf.constant([learning_rate, stop], tf.float32)
            known = {key: x for key, x in batch.items() if key != "pairs"}
            args = known, tf.constant(step), numbers
        if self.is_new(batch):
            # One function a shape, so that TensorFlow does not suspect a mistake in many traces.
            function = tf.function(self._make_update, autograph=False)
            self._compiled[_shapes(batch)] = function.get_concrete_function(*args)
        return self._compiled[_shapes(batch)](*args)

    def is_new(self, batch: Mapping[str, tf.Tensor]) -> bool:
        """Return whether a batch of this shape has to be traced first."""
        return _shapes(batch) not in self._compiled

    @property
    def traces(self) -> int:
        """Return how many shapes of batch were traced."""
        return len(self._compiled)

    def micro_batches(self, batch: Mapping[str, tf.Tensor]) -> int:
        """Return into how many parts a replica cuts its rows, one after the other.

        As many as keep a part's tokens, padding included, within `max_tokens_per_device`.
        """
        rows, source = batch["inputs"].shape
        return self._parts(rows, source, batch["targets"].shape[1])

    def _parts(self, rows: int, source: int, target: int) -> int:
        limit = self._hparams.max_tokens_per_device
        if not limit:
            return 1
        rows = -(-rows // self._strategy.num_replicas_in_sync)
        rows_of_part = max(1, limit // max(source, target))
        return -(-rows // rows_of_part)

    def rows_of_worker(self, rows: int, source: int, target: int) -> slice:
        """Return which rows of a global batch the replicas of this process compute."""
        replicas = self._strategy.num_replicas_in_sync
        multiple = replicas * self._parts(rows, source, target)
        of_replica = (rows + -rows % multiple) // replicas
        ids = self._strategy.experimental_local_results(
            self._strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(context.replica_id_in_sync_group)
            )
        )
        first, last = int(ids[0]), int(ids[-1])
        return slice(first * of_replica, (last + 1) * of_replica)

    def _make_update(self, batch, step, numbers) -> StepResult:
        weights = loss.token_weights(batch["targets"])
        total = tf.reduce_sum(weights)
        if "tokens" in batch:
            total = tf.cast(batch["tokens"][1], tf.float32)
        weights /= tf.maximum(total, 1.0)
        batch = {key: x for key, x in batch.items() if key != "tokens"} | {"weights": weights}
        replicas = self._strategy.num_replicas_in_sync
        parts = self.micro_batches(batch)
        split = {key: _split_rows(x, replicas, multiple=parts) for key, x in batch.items()}
        shares = [
            {key: rows[replica] for key, rows in split.items()} for replica in range(replicas)
        ]
        if replicas == 1:
            return self._replica_step(shares[0], step, numbers, parts=parts)
        distribute = self._strategy.experimental_distribute_values_from_function
        local = {
            key: distribute(lambda c, key=key: shares[c.replica_id_in_sync_group][key])
            for key in batch
        }
        results = self._strategy.run(
            self._replica_step, args=(local, step, numbers), kwargs={"parts": parts}
        )
        return StepResult(*(self._strategy.experimental_local_results(x)[0] for x in results))

    def _replica_step(self, batch, step, numbers, *, parts) -> StepResult:
        learning_rate, stops = tf.unstack(numbers)
        replica = tf.distribute.get_replica_context()
        index = tf.cast(replica.replica_id_in_sync_group, tf.int32)
        seed = tf.stack([self._random_seed + 7919 * index, step])  # a prime keeps replicas apart
        losses, gradients = self._accumulate(batch, seed, parts=parts)
        if replica.num_replicas_in_sync > 1:
            scalars = tf.stack([*losses, stops])
            gradients, scalars = replica.all_reduce(
                tf.distribute.ReduceOp.SUM, [gradients, scalars]
            )
            losses, stops = loss.TokenLosses(scalars[0], scalars[1]), scalars[2]
        norm = tf.linalg.global_norm(gradients)
        self._update(dict(zip(self._variables, gradients)), norm, step, learning_rate)
        return StepResult(losses.smoothed, losses.negative_log_likelihood, norm, stops)

    def _update(self, gradients, norm, step, learning_rate) -> None:
        """Apply the gradients if they are finite."""
        is_finite = tf.math.is_finite(norm)
        rates = {"learning_rate": learning_rate, "step": tf.cast(step, tf.float32)}
        if self._branches:

            def update() -> bool:
                self._adam.apply(gradients, **rates)
                return True

            tf.cond(is_finite, update, lambda: False)
        else:
            self._adam.apply(gradients, **rates, is_valid=is_finite)

    def _accumulate(self, batch, seed, *, parts):
        """Sum losses and gradients over micro-batches, one after the other."""
        gradients_of = tf.function(self._gradients, jit_compile=self._xla, autograph=False)
        if parts == 1:
            return gradients_of(batch, seed)
        stacked = {key: tf.stack(tf.split(x, parts)) for key, x in batch.items()}

        def add(part, losses, totals):
            part_seed = seed + [104_729 * part, 0]  # a prime, as above
            rows = {key: x[part] for key, x in stacked.items()}
            more, gradients = gradients_of(rows, part_seed)
            losses = loss.TokenLosses(*(a + b for a, b in zip(losses, more)))
            return part + 1, losses, [a + b for a, b in zip(totals, gradients)]

        zeros = [tf.zeros(variable.shape) for variable in self._variables.values()]
        start = tf.constant(0), loss.TokenLosses(tf.constant(0.0), tf.constant(0.0)), zeros
        _, losses, gradients = tf.while_loop(
            lambda part, *_: part < parts, add, start, parallel_iterations=1
        )
        return losses, gradients

    def _gradients(self, batch, seed):
        noise = dropout.Noise(seed)
        with tf.GradientTape() as tape:
            encoded = self._model.encode(batch["inputs"], noise)
            states = self._model.decode(batch["targets"], encoded, noise)
            losses = loss.smoothed_cross_entropy(
                self._model.softmax_inputs(states),
                self._model.softmax_matrix(),
                batch["targets"],
                batch["weights"],
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
        """Count a batch of "inputs" and "targets" of any shape; rows of padding count nowhere."""
        return self._run(batch["inputs"], batch["targets"])

    def _counts(self, inputs, targets):
        return metrics.token_counts(self._model(inputs, targets), targets)


def _shapes(batch: Mapping[str, tf.Tensor]) -> tuple:
    return tuple(batch["inputs"].shape), tuple(batch["targets"].shape)


def _split_rows(x: tf.Tensor, count: int, *, multiple: int) -> list[tf.Tensor]:
    """Cut rows [B, ...] into `count` equal parts of a multiple of rows.

    Rows of zeros, which count nowhere, fill up.
    """
    missing = -x.shape[0] % (count * multiple)
    return tf.split(tf.pad(x, [[0, missing], [0, 0]]) if missing else x, count)
