"""Training by keras.Model.fit: the paper's schedule, loss and accuracy, a problem's batches, and an
output_dir of what was trained.

Shapes: B batch, T target length, V vocabulary.
"""

import os
import pathlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2t_lite import config, errors, registry
from t2t_lite.data import data_dir as data_dirs
from t2t_lite.data import manifest, pipeline
from t2t_lite.model import transformer
from t2t_lite.run import finished, output_dir
from t2t_lite.train import loss


@keras.saving.register_keras_serializable("t2t_lite")
class PaperSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate scale * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5) (5.3).

    The paper's optimizer is keras.optimizers.Adam(PaperSchedule(512), beta_1=0.9, beta_2=0.98,
    epsilon=1e-9).
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000, scale: float = 1.0):
        super().__init__()
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.scale = scale

    def __call__(self, step):
        """Return the rate of update `step`, which Keras counts from 0."""
        step = tf.cast(step, tf.float32) + 1
        rate = tf.minimum(step**-0.5, step * self.warmup_steps**-1.5)
        return self.scale * self.d_model**-0.5 * rate

    def get_config(self):
        return {name: getattr(self, name) for name in ("d_model", "warmup_steps", "scale")}


@keras.saving.register_keras_serializable("t2t_lite")
class SmoothedCrossEntropy(keras.losses.Loss):
    """Label-smoothed cross entropy (Section 5.4): the mean in nats over all tokens but padding.

    With several replicas it is the mean over the tokens of all, whatever each one's share.

    Args:
      label_smoothing: share of probability that is spread evenly over the other ids.
    """

    def __init__(
        self, label_smoothing: float = 0.1, name: str = "smoothed_cross_entropy", **kwargs
    ):
        super().__init__(name=name, **kwargs)
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Return the loss [] of logits y_pred [B, T, V] for ids y_true [B, T], 0 for padding.

        `sample_weight`, [B] or [B, T], is multiplied to the losses of tokens.
        """
        y_true, logits = tf.cast(y_true, tf.int32), tf.cast(y_pred, tf.float32)
        is_token = loss.token_weights(y_true)
        weights = is_token
        if sample_weight is not None:
            sample_weight = tf.cast(sample_weight, tf.float32)
            weights *= sample_weight if sample_weight.shape.rank == 2 else sample_weight[:, None]
        low = self.label_smoothing / (logits.shape[-1] - 1)
        gap = 1 - self.label_smoothing - low
        logsumexp = tf.reduce_logsumexp(logits, axis=-1)
        right = tf.gather(logits, y_true, axis=2, batch_dims=2)
        losses = logsumexp - gap * right - low * tf.reduce_sum(logits, axis=-1)
        # Keras sums the gradients of replicas, so each divides by the tokens of all.
        num_tokens = tf.reduce_sum(is_token)
        replica = tf.distribute.get_replica_context()
        if replica and replica.num_replicas_in_sync > 1:
            num_tokens = replica.all_reduce(tf.distribute.ReduceOp.SUM, num_tokens)
        return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), num_tokens)

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable("t2t_lite")
class MaskedAccuracy(keras.metrics.Mean):
    """The share of tokens, padding left out, whose right id has the largest logit."""

    def __init__(self, name: str = "accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Count ids y_true [B, T], 0 for padding, and logits y_pred [B, T, V]."""
        y_true = tf.cast(y_true, tf.int32)
        is_right = y_true == tf.argmax(y_pred, axis=-1, output_type=tf.int32)
        super().update_state(is_right, sample_weight=loss.token_weights(y_true))


def read_data(data_dir: str | os.PathLike[str], problem: str | None = None) -> data_dirs.Data:
    """Read what t2t-lite-datagen wrote; its `vocabulary.targets.size` is the model's vocab_size.

    Args:
      data_dir: the folder.
      problem: a name; not needed where the folder has the data of one problem.

    Raises UserError where there are no such data.
    """
    registry.load("t2t_lite.problems")
    folder = pathlib.Path(data_dir)
    if problem is None:
        suffix = manifest.file_name("")
        names = sorted(path.name.removesuffix(suffix) for path in folder.glob("*" + suffix))
        if len(names) != 1:
            found = f"data of {', '.join(names)}" if names else "no finished data"
            raise errors.UserError(f'{folder} has {found}: give problem="toy_ende", for example')
        (problem,) = names
    return data_dirs.read(folder, registry.problem(problem))


def dataset(
    data: data_dirs.Data | str | os.PathLike[str],
    split: str,
    hparams: config.HParams,
    *,
    seed: int = 1,
) -> tf.data.Dataset:
    """Return the batches ((inputs, targets), targets) that keras.Model.fit takes.

    inputs [B, S] and targets [B, T] are int32 with 0 for padding, in the trainer's few shapes.
    Those of "train" are the trainer's, in its order, without end: give fit steps_per_epoch. Another
    split is passed over once.

    Args:
      data: from read_data, or a data_dir with the data of one problem.
      split: "train", "dev" or "test".
      hparams: batch_tokens, max_length and max_buckets are read.
      seed: the trainer's --random_seed, for the order of training pairs.
    """
    if not isinstance(data, data_dirs.Data):
        data = read_data(data)
    if split == "train":
        batches = pipeline.train_batches(data, **hparams.batch_limits, seed=seed)
        count = tf.data.INFINITE_CARDINALITY
    else:
        batches = pipeline.eval_batches(data, split, **hparams.batch_limits)
        count = batches.reduce(tf.constant(0, tf.int64), lambda count, _: count + 1)
    # Keras warns of a dataset that ends and has not said when.
    batches = batches.apply(tf.data.experimental.assert_cardinality(count))
    return batches.map(lambda batch: ((batch["inputs"], batch["targets"]), batch["targets"]))


def save_output_dir(model: keras.Model, data: data_dirs.Data, path: str | os.PathLike[str]) -> str:
    """Write a new output_dir, which all commands take; return its checkpoint's prefix.

    Args:
      model: a Transformer of any weights.
      data: what it was trained on; the problem and the vocabulary are recorded.
      path: must not exist, or be an empty folder.

    Raises UserError for another model, and where something is at `path` already.
    """
    if not isinstance(model, transformer.Transformer):
        raise errors.UserError(
            f"expected a t2t_lite.Transformer, got {type(model).__name__}; of a functional model "
            "give the Transformer in it"
        )
    optimizer: Any = getattr(model, "optimizer", None)
    run = output_dir.Run(
        problem=data.problem.name,
        task=data.problem.task,
        data_dir=str(data.folder.resolve()),
        vocabulary=data.vocabulary_path.name,
        vocab_size=model.vocab_size,
        hparams_set="",
        precision="float32",
        random_seed=0,
    )
    return finished.write(
        path,
        hparams=model.hparams,
        run=run,
        vocabulary=data.vocabulary_path.read_bytes(),
        weights={
            name: np.asarray(variable, np.float32)
            for name, variable in model.named_variables().items()
        },
        step=int(optimizer.iterations) if optimizer else 0,
    )
