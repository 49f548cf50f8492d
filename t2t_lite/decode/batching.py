"""Batches of sentences of like length inside a graph, the same as `translator.batches` outside.

With them, memory and time of a request grow with the lengths of its sentences, also where one long
sentence comes with many short ones.

Shapes: B rows in all, b rows of a batch.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def run_in_batches(
    function: Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]],
    lengths: tf.Tensor,
    *,
    empty: dict[str, tf.Tensor],
    batch_size: int,
    batch_tokens: int,
) -> dict[str, tf.Tensor]:
    """Return what `function` gives for all rows, in their order; zeros for rows of length 0.

    With lengths [2, 0, 9, 3], batch_size=2 and batch_tokens=18, it is called for rows [2, 3] of
    length 9 at most, then for [0].

    Args:
      function: (rows [b], the longest's length) -> tensors [b, ...] by name.
      lengths: int32 [B].
      empty: the results of no row: tensors [0, ...] by name.
      batch_size: rows of a part, at most.
      batch_tokens: rows times longest length of a part, at most (or it is a single row).
    """
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    num_rows = tf.math.count_nonzero(lengths, dtype=tf.int32)

    def part(start: tf.Tensor, results: dict[str, tf.Tensor]) -> Any:
        length = lengths[order[start]]
        size = tf.clip_by_value(batch_tokens // length, 1, batch_size)
        rows = order[start : tf.minimum(start + size, num_rows)]
        outputs = function(rows, length)
        return start + tf.size(rows), {
            name: tf.concat([results[name], outputs[name]], axis=0) for name in results
        }

    _, results = tf.while_loop(
        lambda start, _: start < num_rows,
        part,
        (tf.constant(0), empty),
        shape_invariants=(
            tf.TensorShape([]),
            {name: tf.TensorShape([None, *x.shape[1:]]) for name, x in empty.items()},
        ),
        parallel_iterations=1,
    )
    places = tf.math.invert_permutation(order)
    num_zeros = tf.size(lengths) - num_rows
    return {
        name: tf.gather(tf.concat([result, _zeros(result, num_zeros)], axis=0), places)
        for name, result in results.items()
    }


def _zeros(like: tf.Tensor, num_rows: tf.Tensor) -> tf.Tensor:
    """Return zeros, or empty strings, [num_rows, ...] of the type and shape of another's rows."""
    return tf.zeros(tf.concat([num_rows[None], tf.shape(like)[1:]], axis=0), like.dtype)
