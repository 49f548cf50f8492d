"""One optimizer step, on one device or many.

Shapes: B rows of the global batch, R replicas, P parts of a replica's rows, S and T source and
target length.

Loss and gradients are normalised by the target tokens of the *global* batch: every token has the
weight 1 / that number, and parts are summed. So neither the number of replicas and parts nor an
uneven share of padding changes the result.

XLA, where it is on, makes one program of a step. Of several replicas each has two, gradients and
update, with one all-reduce between them: compiled code cannot contain a collective under
MirroredStrategy.

A step does not wait for its result: the first to read a StepResult waits for the device.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping

import tensorflow as tf

from t2t_lite import config
from t2t_lite.model import transformer
from t2t_lite.train import loss, optimizer

_DRAWS = 2**20


@dataclasses.dataclass(frozen=True)
class StepResult:
    """Means over the global batch's target tokens, in nats, and the gradient's global norm.

    Without a finite norm the update was left out. `stops` is the number of replicas that were told
    to stop, the same on all. All are in one tensor on the device, which is fetched once.
    """

    on_device: tf.Tensor

    @functools.cached_property
    def _numbers(self) -> list[float]:
        return self.on_device.numpy().tolist()

    loss = property(lambda self: self._numbers[0])
    negative_log_likelihood = property(lambda self: self._numbers[1])
    gradient_norm = property(lambda self: self._numbers[2])
    stops = property(lambda self: self._numbers[3])


class TrainStep:
    """The compiled step; one trace for each shape of batch.

    Args:
      model: made inside the strategy's scope, as is `adam`.
      strategy: each of its replicas gets an equal share of the rows.
      xla: whether to compile it with XLA.
      random_seed: for dropout.
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
        self._xla = xla
        self._random_seed = random_seed
        self._variables = model.named_variables()
        self._compiled: dict[tuple, tf.types.experimental.ConcreteFunction] = {}

    def __call__(
        self,
        batch: Mapping[str, tf.Tensor],
        *,
        step: int,
        learning_rate: float,
        stop: bool = False,
    ) -> StepResult:
        """Make update number `step` (from 1) with a global batch.

        Args:
          batch: "inputs" [B, S] and "targets" [B, T].
          stop: whether this worker wants to stop; `StepResult.stops` tells all workers.
        """
        with tf.device("CPU"):  # a copy to a GPU would wait for the step before
            numbers = tf.constant([learning_rate, stop], tf.float32)
            args = batch, tf.constant(step), numbers
        shapes = tuple(batch["inputs"].shape), tuple(batch["targets"].shape)
        if shapes not in self._compiled:
            # One function a shape, so that TensorFlow does not warn of many traces.
            is_alone = self._strategy.num_replicas_in_sync == 1
            function = tf.function(
                self._global_step, autograph=False, jit_compile=self._xla and is_alone
            )
            self._compiled[shapes] = function.get_concrete_function(*args)
        return StepResult(self._compiled[shapes](*args))

    def compile(self, rows: int, source: int, target: int) -> None:
        """Compile for batches of a shape; nothing changes, as no update with a rate of NaN does."""
        sizes = {"inputs": [rows, source], "targets": [rows, target]}
        with tf.device("CPU"):
            batch = {key: tf.zeros(size, tf.int32) for key, size in sizes.items()}
        self(batch, step=1, learning_rate=math.nan)

    @property
    def traces(self) -> int:
        """Return how many shapes of batch were traced."""
        return len(self._compiled)

    def parts(self, rows: int, source: int, target: int) -> int:
        """Return in how many parts, one after the other, a replica computes its share of `rows`.

        Each part has at most `max_tokens_per_device` tokens, padding included, or is one row.
        """
        limit = self._hparams.max_tokens_per_device
        if not limit:
            return 1
        rows_of_replica = -(-rows // self._strategy.num_replicas_in_sync)
        return -(-rows_of_replica // max(1, limit // max(source, target)))

    def _global_step(self, batch, step, numbers) -> tf.Tensor:
        """Weight the tokens, and give each replica its share of the rows."""
        weights = loss.token_weights(batch["targets"])
        weights /= tf.maximum(tf.reduce_sum(weights), 1.0)
        rows = {"inputs": batch["inputs"], "targets": batch["targets"], "weights": weights}
        replicas = self._strategy.num_replicas_in_sync
        (num_rows, source), target = batch["inputs"].shape, batch["targets"].shape[1]
        parts = self.parts(num_rows, source, target)
        # Rows of zeros, which count nowhere, fill up.
        padding = [[0, -num_rows % (replicas * parts)], [0, 0]]
        # [B, L] --> [R, P, B / (R P), L]
        shares = {
            key: tf.reshape(tf.pad(x, padding), [replicas, parts, -1, x.shape[1]])
            for key, x in rows.items()
        }
        if replicas == 1:
            return self._replica_step({key: x[0] for key, x in shares.items()}, step, numbers)
        distribute = self._strategy.experimental_distribute_values_from_function
        local = {
            key: distribute(lambda context, x=x: x[context.replica_id_in_sync_group])
            for key, x in shares.items()
        }
        results = self._strategy.run(self._replica_step, args=(local, step, numbers))
        return self._strategy.experimental_local_results(results)[0]

    def _replica_step(self, rows, step, numbers) -> tf.Tensor:
        """Sum losses and gradients over rows {"inputs": [P, B, S], ...} and replicas; update."""
        replica = tf.distribute.get_replica_context()
        if replica.num_replicas_in_sync == 1:
            return self._update(*self._sums(rows, 0, step, numbers), step, numbers)
        index = tf.cast(replica.replica_id_in_sync_group, tf.int64)
        packed = self._function(self._packed_sums)(rows, index, step, numbers)
        packed = replica.all_reduce(tf.distribute.ReduceOp.SUM, packed)
        return self._function(self._packed_update)(packed, step, numbers)

    def _function(self, compute):
        return tf.function(compute, jit_compile=self._xla, autograph=False)

    def _packed_sums(self, *args) -> tf.Tensor:
        """Return the sums in one vector: one all-reduce takes less time than one for each."""
        sums, gradients = self._sums(*args)
        return tf.concat([tf.reshape(x, [-1]) for x in (sums, *gradients)], axis=0)

    def _packed_update(self, packed, step, numbers) -> tf.Tensor:
        shapes = [tf.TensorShape([3]), *(x.shape for x in self._variables.values())]
        parts = tf.split(packed, [shape.num_elements() for shape in shapes])
        sums, *gradients = (tf.reshape(x, shape) for x, shape in zip(parts, shapes))
        return self._update(sums, gradients, step, numbers)

    def _sums(self, rows, replica, step, numbers) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return [smoothed loss, loss, stop] and the gradients of a replica's rows."""
        # Primes keep replicas and parts apart; a step has room for so many draws.
        seed = tf.stack([self._random_seed + 7919 * replica, tf.cast(step, tf.int64) * _DRAWS])
        compute = self._function(self._gradients)
        parts = rows["inputs"].shape[0]

        def add_part(part, losses, totals):
            part_rows = {key: x[part] for key, x in rows.items()}
            part_seed = seed + tf.stack([104_729 * tf.cast(part, tf.int64), 0])
            more, gradients = compute(part_rows, part_seed)
            losses = loss.TokenLosses(*(a + b for a, b in zip(losses, more)))
            return part + 1, losses, [a + b for a, b in zip(totals, gradients)]

        if parts == 1:
            losses, gradients = compute({key: x[0] for key, x in rows.items()}, seed)
        else:
            zeros = [tf.zeros(variable.shape) for variable in self._variables.values()]
            start = tf.constant(0), loss.TokenLosses(tf.constant(0.0), tf.constant(0.0)), zeros
            _, losses, gradients = tf.while_loop(
                lambda part, *_: part < parts, add_part, start, parallel_iterations=1
            )
        return tf.stack([*losses, numbers[1]]), gradients

    def _update(self, sums, gradients, step, numbers) -> tf.Tensor:
        """Update the weights; return the numbers of a StepResult."""
        norm = tf.linalg.global_norm(gradients)
        self._adam.apply(
            dict(zip(self._variables, gradients)),
            learning_rate=numbers[0],
            step=tf.cast(step, tf.float32),
            is_valid=tf.math.is_finite(norm) & tf.math.is_finite(numbers[0]),
        )
        return tf.stack([sums[0], sums[1], norm, sums[2]])

    def _gradients(self, rows, seed):
        """Return the losses of rows {"inputs": [B, S], ...} and the gradients of all weights."""
        self._model.seed_generator.state.assign(seed)
        with tf.GradientTape() as tape:
            encoded = self._model.encode(rows["inputs"], training=True)
            states = self._model.decode(rows["targets"], encoded, training=True)
            losses = loss.smoothed_cross_entropy(
                self._model.logits.inputs(states),
                self._model.logits.matrix(),
                rows["targets"],
                rows["weights"],
                label_smoothing=self._hparams.label_smoothing,
                dtype=self._model.compute_dtype,
            )
        return losses, tape.gradient(losses.smoothed, list(self._variables.values()))
