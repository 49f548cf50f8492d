"""Batches by tokens (Section 5.1): pairs of like length, of each side at most `batch_tokens`.

With batch_tokens=512 and the sizes (8, 8) and (24, 32), a pair of 5 and 6 tokens comes in a batch
of 64 such pairs, inputs [64, 8] and targets [64, 8]; one of 21 and 24 tokens in one of 16 pairs.
Padding counts as tokens do, so that every step costs about the same. `buckets.choose` picks the
sizes.

Legend: B batch, S source length, T target length.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

_FEATURES = {  # of a record
    side: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for side in ("inputs", "targets")
}
_CALLS = 4  # blocks, and batches, that are made at a time


class Shape(NamedTuple):
    """A batch's static shape: inputs [batch, source], targets [batch, target]."""

    batch: int
    source: int
    target: int


def shape(size: tuple[int, int], batch_tokens: int) -> Shape:
    """Return the shape of batches of one size: at most `batch_tokens` of each side, padding too.

    The rows are a multiple of 8; where 8 do not fit, as many as do, and at least one.

    >>> shape((8, 10), 900)
    Shape(batch=88, source=8, target=10)
    """
    rows = max(1, batch_tokens // max(size))
    return Shape(rows // 8 * 8 or rows, *size)


def batch_by_tokens(
    blocks: tf.data.Dataset,
    shapes: Sequence[Shape],
    *,
    sides: Sequence[str] = ("inputs", "targets"),
    max_length: int | None = None,
) -> tf.data.Dataset:
    """Return batches {"inputs": int32 [B, S], "targets": int32 [B, T]}, padded with 0.

    Of records that come to an end, the last batch of each shape is filled up with rows of padding.

    Args:
      blocks: some records at a time, serialized tf.train.Example: string [records].
      shapes: those of the batches. Each pair goes into the smallest that holds it; one must.
      sides: the features that are inputs and targets.
      max_length: pairs with more tokens on a side are left out.
    """
    rows, sources, targets = (tf.constant(column, tf.int64) for column in zip(*shapes))
    longest = max_length or tf.int64.max

    def find_shapes(records: tf.Tensor) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_example(records, _FEATURES)
        source, target = (parsed[side].row_lengths()[:, None] for side in sides)
        fits = (source <= sources) & (target <= targets)
        buckets = tf.argmin(tf.where(fits, sources + targets, tf.int64.max), axis=1)
        is_wanted = tf.maximum(source, target)[:, 0] <= longest
        pairs = {"record": records, "bucket": buckets}
        return {key: tf.boolean_mask(x, is_wanted) for key, x in pairs.items()}

    def pad(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_example(batch["record"], _FEATURES)
        lengths = sources[batch["bucket"]], targets[batch["bucket"]]
        return {
            name: tf.cast(parsed[side].to_tensor(shape=[rows[batch["bucket"]], length]), tf.int32)
            for name, side, length in zip(("inputs", "targets"), sides, lengths)
        }

    # One row less than a batch of each shape fills up those that have begun, and makes none itself.
    buckets = tf.repeat(tf.range(len(shapes), dtype=tf.int64), rows - 1)
    rest = {"record": tf.fill(tf.shape(buckets), ""), "bucket": buckets}
    pairs = blocks.map(find_shapes, _CALLS).concatenate(tf.data.Dataset.from_tensors(rest))
    return _by_bucket(pairs, rows).map(pad, _CALLS)


def _by_bucket(blocks: tf.data.Dataset, rows: tf.Tensor) -> tf.data.Dataset:
    """Return {"record": [B], "bucket": []} as batches become full: rows[bucket] pairs of a bucket.

    `blocks` are {"record", "bucket"} of some pairs at a time. The pairs of a block are moved at
    once: one after the other they would take several times as long.
    """
    all_buckets = tf.range(tf.size(rows, tf.int64))

    def arrange(waiting: dict[str, tf.Tensor], block: dict[str, tf.Tensor]):
        pairs = {key: tf.concat([waiting[key], block[key]], 0) for key in block}
        in_order = tf.argsort(pairs["bucket"], stable=True)
        counts = tf.math.bincount(
            tf.cast(pairs["bucket"], tf.int32), minlength=len(rows), dtype=tf.int64
        )
        ends = tf.cumsum(counts)
        starts, full = ends - counts, counts // rows
        bucket = tf.repeat(all_buckets, full)
        sizes = tf.gather(rows, bucket)
        firsts = tf.gather(starts, bucket) + tf.ragged.range(full).values * sizes
        # a batch comes when its last pair does
        by_last = tf.argsort(tf.gather(in_order, firsts + sizes - 1))
        bucket, sizes, firsts = (tf.gather(x, by_last) for x in (bucket, sizes, firsts))
        places = tf.ragged.range(firsts, firsts + sizes)
        records = tf.gather(pairs["record"], tf.gather(in_order, places.values))
        rest = tf.gather(in_order, tf.ragged.range(starts + full * rows, ends).values)
        waiting = {key: tf.gather(x, rest) for key, x in pairs.items()}
        return waiting, {"record": places.with_values(records), "bucket": bucket}

    nothing = {"record": tf.constant([], tf.string), "bucket": tf.constant([], tf.int64)}
    return blocks.scan(nothing, arrange).unbatch()
