"""The k best tokens of many rows of probabilities, exactly and fast (floor 1).

Shapes: R rows, V vocabulary, W columns (V and whatever spare ones follow), G groups, k results.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

# Columns of one group: a row of 8,000 is 200 groups, about 10 of which are looked into.
GROUP_SIZE = 40


class TopK(NamedTuple):
    """The largest `values` [R, k] of each row, in descending order, and their columns `ids`."""

    values: tf.Tensor
    ids: tf.Tensor


class Vocabulary:
    """Which columns may be emitted: ids below `size` but those of `forbidden`.

    `blockable` ids (EOS before the minimum length) are forbidden from call to call.
    """

    def __init__(self, size: int, *, forbidden: Sequence[int] = (), blockable: Sequence[int] = ()):
        self.size = size
        self.forbidden = tuple(forbidden)
        self.blockable = tuple(blockable)

    @property
    def num_mixed_groups(self) -> int:
        """The number of groups that hold both kinds of columns (at most)."""
        mixed = {token // GROUP_SIZE for token in self.forbidden + self.blockable}
        if self.size % GROUP_SIZE:
            mixed.add(self.size // GROUP_SIZE)
        return len(mixed)

    def may_emit(self, num_columns: int, blocked: tf.Tensor | None = None) -> tf.Tensor:
        """Return bool [W]; `blocked` is a scalar that tells whether `blockable` ids are not."""
        columns = tf.range(num_columns)
        allowed = columns < self.size
        for token in self.forbidden:
            allowed &= columns != token
        if blocked is not None:
            for token in self.blockable:
                allowed &= (columns != token) | ~blocked
        return allowed


def top_k(
    probabilities: tf.Tensor, k: int, vocabulary: Vocabulary, blocked: tf.Tensor | None = None
) -> TopK:
    """Return each row's k largest probabilities among the columns that may be emitted.

    Equal to a flat top-k over [R, V]: a row's k best lie in the k groups with the largest maxima,
    so only these are searched. A group whose maximum is a forbidden column may push out one that
    matters, so as many groups more are taken as there can be such. Where fewer than k columns may
    be emitted, the rest have the value -1.

    Args:
      probabilities: float [R, W], at least 0, with W static; W >= vocabulary.size.
      k: number of results, at most W.
      vocabulary: which columns may be emitted.
      blocked: scalar bool, or None for False.
    """
    num_columns = probabilities.shape[1]
    allowed = vocabulary.may_emit(num_columns, blocked)
    num_groups = -(-vocabulary.size // GROUP_SIZE)
    num_searched = k + vocabulary.num_mixed_groups
    if num_searched * 2 > num_groups:
        return TopK(*tf.math.top_k(tf.where(allowed, probabilities, -1.0), k))
    spare = -num_columns % GROUP_SIZE
    if spare:
        probabilities = tf.pad(probabilities, [[0, 0], [0, spare]])
        allowed = tf.pad(allowed, [[0, spare]])
    grouped = tf.reshape(probabilities, [-1, (num_columns + spare) // GROUP_SIZE, GROUP_SIZE])
    maxima = tf.reduce_max(grouped, axis=2)[:, :num_groups]
    _, groups = tf.math.top_k(maxima, num_searched, sorted=False)
    searched = tf.where(
        tf.gather(tf.reshape(allowed, [-1, GROUP_SIZE]), groups),
        tf.gather(grouped, groups, batch_dims=1),
        -1.0,
    )
    values, places = tf.math.top_k(tf.reshape(searched, [-1, num_searched * GROUP_SIZE]), k)
    first_columns = tf.gather(groups, places // GROUP_SIZE, batch_dims=1) * GROUP_SIZE
    return TopK(values, first_columns + places % GROUP_SIZE)
