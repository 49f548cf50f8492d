"""From shards to batches of static shape, as plain tf.data.

    shards --shuffle, interleave--> records --shuffle--> blocks of records --by tokens-->
        {"inputs": int32 [B, S], "targets": int32 [B, T]}, zeros where there is no token

with one (B, S, T) for each bucket (see `bucket_shapes` and token_batches). A block of records is
handled at once, because a call for each pair costs several times as much as the work itself, and
some blocks at a time. The iterator has the whole state, so a tf.train.Checkpoint of it resumes
exactly:

    iterator = iter(pipeline.train_batches(data, batch_tokens=25_000, max_length=256, seed=1))
    checkpoint = tf.train.Checkpoint(model=model, iterator=iterator)

Legend: B batch, S source length, T target length.
"""

import collections
import contextlib
import functools
import itertools
import os
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from t2t_lite.data import buckets, data_dir, shards, token_batches

DEFAULT_MAX_BUCKETS = 24  # captions take 20 to be 93 % full, news 21 to be 90 %
_CYCLE = 16  # shards that are read in turns
_SHUFFLE = 1 << 14  # records: the shards are shuffled already, so this only mixes what is near
_BLOCK = 4096  # records that are sorted into batches by one call
_READ_BYTES = 1 << 18  # of a shard at a time


def bucket_shapes(
    data: data_dir.Data,
    *,
    batch_tokens: int,
    max_length: int,
    max_buckets: int = DEFAULT_MAX_BUCKETS,
) -> list[token_batches.Shape]:
    """Return the shapes of all batches that `train_batches` yields, small to large.

    They follow from the lengths of the training pairs: as few shapes as fill 93 %, at most
    `max_buckets`. A batch has at most `batch_tokens` tokens of each side, padding included, and a
    multiple of 8 rows where that many fit.
    """
    sizes = data.bucket_sizes(max_length=max_length, max_buckets=max_buckets)
    return [token_batches.shape(size, batch_tokens) for size in sizes]


def mean_tokens(
    data: data_dir.Data, shapes: Sequence[token_batches.Shape], *, max_length: int
) -> tuple[float, float]:
    """Return the real source and target tokens of a batch of these shapes, on average.

    A batch has at most `batch_tokens` of each side; what is less is padding, of which the shorter
    side has more.
    """
    table = data.train_lengths(max_length)
    smallest = buckets.smallest(table, [shape[1:] for shape in shapes])
    rows = np.array([shape.batch for shape in shapes])[smallest]
    batches = (table[:, 2] / rows).sum()
    source, target = (table[:, :2] * table[:, 2:]).sum(0) / batches
    return float(source), float(target)


def train_batches(
    data: data_dir.Data,
    *,
    batch_tokens: int,
    max_length: int,
    seed: int,
    max_buckets: int = DEFAULT_MAX_BUCKETS,
) -> tf.data.Dataset:
    """Return endless batches of the training split in an order that follows from `seed`.

    Every epoch sees each pair of at most `max_length` tokens (with EOS) a side once, in a new
    order; a batch may reach from one epoch into the next.
    """
    shapes = bucket_shapes(
        data, batch_tokens=batch_tokens, max_length=max_length, max_buckets=max_buckets
    )
    data.check_files()
    names = [path.name for path in data.shards("train")]
    records = (
        tf.data.Dataset.from_tensor_slices(names)
        .shuffle(len(names), seed=seed)
        .interleave(
            functools.partial(_read_shard, folder=str(data.folder)),
            cycle_length=min(_CYCLE, len(names)),
        )
        .shuffle(_SHUFFLE, seed=seed + 1)
        .repeat()
    )
    return _batches(records, shapes, data, max_length=max_length)


def eval_batches(
    data: data_dir.Data,
    split: str,
    *,
    batch_tokens: int,
    max_length: int,
    max_buckets: int = DEFAULT_MAX_BUCKETS,
) -> tf.data.Dataset:
    """Return the batches of one pass over a split, every pair in it, in the training's shapes.

    The last batch of each shape is filled up with rows of padding. Pairs that fit no training shape
    share one more.
    """
    shapes = bucket_shapes(
        data, batch_tokens=batch_tokens, max_length=max_length, max_buckets=max_buckets
    )
    data.check_files()
    unfit = buckets.unfit(data.lengths(split), [shape[1:] for shape in shapes])
    if len(unfit):
        source, target, _ = unfit.max(0).tolist()
        shapes.append(token_batches.shape((source, target), batch_tokens))
    paths = [os.fsencode(path) for path in data.shards(split)]
    return _batches(tf.data.TFRecordDataset(paths), shapes, data)


@contextlib.contextmanager
def explain_damage(data: data_dir.Data) -> Iterator[None]:
    """Turn TensorFlow's error about a corrupt or lost shard into one that names file and record.

    with pipeline.explain_damage(data): batch = next(iterator)
    """
    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
        tf.errors.PermissionDeniedError,
    ) as error:
        data.check_files()
        for path in itertools.chain.from_iterable(map(data.shards, data.splits)):
            collections.deque(shards.read(path), maxlen=0)
        raise error


def _read_shard(name: tf.Tensor, *, folder: str) -> tf.data.Dataset:
    """Return the records of the shard called `name`.

    A saved iterator holds what goes into its functions, here names: the folder is added where
    nothing is saved any more, so that data may be moved. TFRecordDataset has a function of its own,
    into which the path would go.
    """

    def read(name: tf.Tensor) -> tf.data.Dataset:
        path = tf.strings.join([os.fsencode(folder + os.sep), name])
        records = tf.raw_ops.TFRecordDataset(
            filenames=path, compression_type="", buffer_size=tf.constant(_READ_BYTES, tf.int64)
        )
        return tf.data.experimental.from_variant(records, tf.TensorSpec([], tf.string))

    return tf.data.Dataset.from_tensor_slices(name[None]).flat_map(read)


def _batches(
    records: tf.data.Dataset,
    shapes: Sequence[token_batches.Shape],
    data: data_dir.Data,
    *,
    max_length: int | None = None,
) -> tf.data.Dataset:
    """Return the batches of some records, in an order that the number of cores does not change."""
    batches = token_batches.batch_by_tokens(
        records.batch(_BLOCK),
        shapes,
        sides=("targets", "inputs") if data.problem.is_reversed else ("inputs", "targets"),
        max_length=max_length,
    )
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = False  # a resumed iterator has as many buffers as the saved one
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return batches.prefetch(4).with_options(options)
