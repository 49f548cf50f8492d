"""Batches by tokens (Section 5.1): pairs of like length, of each side at most `batch_tokens`.

With batch_tokens=512 and the sizes (8, 8) and (24, 32), a pair of 5 and 6 tokens comes in a batch
of 64 such pairs, inputs [64, 8] and targets [64, 8]; one of 21 and 24 tokens in one of 16 pairs.
Padding counts as tokens do, so that every step costs about the same. `buckets.choose` picks the
sizes.

Legend: B batch, S source length, T target length.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf


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


def batch_by_tokens(blocks: tf.data.Dataset, shapes: Sequence[Shape]) -> tf.data.Dataset:
    """Return batches {"inputs": int32 [B, S], "targets": int32 [B, T]}, padded with 0.

    Args:
      blocks: {"inputs", "targets"} of some pairs at a time, ragged int32 [pairs, None].
      shapes: those of the batches. Each pair goes into the smallest that holds it; one must.
    """
    rows, sources, targets = (tf.constant(column, tf.int64) for column in zip(*shapes))

    def find_shapes(block: dict[str, tf.RaggedTensor]) -> dict:
        lengths = block["inputs"].row_lengths(), block["targets"].row_lengths()
        return {**block, "bucket": smallest_fitting(*lengths, shapes)}

    def pad(key: tf.Tensor, pairs: dict[str, tf.RaggedTensor]) -> dict[str, tf.Tensor]:
        return {
            "inputs": pairs["inputs"].to_tensor(shape=[rows[key], sources[key]]),
            "targets": pairs["targets"].to_tensor(shape=[rows[key], targets[key]]),
        }

    return by_bucket(blocks.map(find_shapes), shapes, pad)


def smallest_fitting(
    source_lengths: tf.Tensor, target_lengths: tf.Tensor, shapes: Sequence[Shape]
) -> tf.Tensor:
    """Return for each pair of lengths [block] the number of the smallest shape that holds it."""
    _, sources, targets = (tf.constant(column, tf.int64) for column in zip(*shapes))
    too_small = tf.constant(tf.int64.max)
    fits = (source_lengths[:, None] <= sources) & (target_lengths[:, None] <= targets)
    return tf.argmin(tf.where(fits, sources + targets, too_small), axis=1)


def by_bucket(
    blocks: tf.data.Dataset,
    shapes: Sequence[Shape],
    finish: Callable[[tf.Tensor, dict], dict[str, tf.Tensor]],
) -> tf.data.Dataset:
    """Return batches of elements of one "bucket", a shape's number, of as many as it has rows.

    `finish` gets that number and the elements, batched.
    """
    rows = tf.constant([shape.batch for shape in shapes], tf.int64)

    def batch(key: tf.Tensor, window: tf.data.Dataset) -> tf.data.Dataset:
        return window.batch(rows[key]).map(functools.partial(finish, key))

    return blocks.unbatch().group_by_window(
        lambda element: element["bucket"], batch, window_size_func=lambda key: rows[key]
    )
