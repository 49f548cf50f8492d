"""The best one-token extensions of a sentence's beams, exactly and fast.

Shapes: B sentences, N beams, V vocabulary, W columns of the softmax (V and whatever spare ones
follow), G groups of columns, k results.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

# The score of what does not exist; anything below half of it is such.
NEVER = -1e9
# Columns of one group: a row of 8,000 is 200 groups, and a few of a sentence's are looked into.
GROUP_SIZE = 40
# The least probability whose logarithm is taken: a float32 softmax gives 0 below 1e-38.
_TINY = 1e-37


class TopK(NamedTuple):
    """The k largest sums of each sentence in descending order, their columns and their beams."""

    scores: tf.Tensor
    ids: tf.Tensor
    beams: tf.Tensor


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
    probabilities: tf.Tensor,
    scores: tf.Tensor,
    k: int,
    vocabulary: Vocabulary,
    blocked: tf.Tensor | None = None,
) -> TopK:
    """Return each sentence's k largest sums score + log(probability) of what may be emitted.

    Equal to a flat top-k over [B, N * W]: the k best lie in the k groups with the largest maxima,
    so only these are searched. A group whose maximum is a forbidden column may push out one that
    matters, so as many groups more are taken as there can be such. Where fewer than k columns may
    be emitted, the rest score less than NEVER / 2.

    Args:
      probabilities: float32 [B * N, W], at least 0, with W static; W >= vocabulary.size.
      scores: float32 [B, N].
      k: number of results, at most N * W.
      vocabulary: which columns may be emitted.
      blocked: scalar bool, or None for False.
    """
    num_beams, num_columns = scores.shape[1], probabilities.shape[1]
    allowed = vocabulary.may_emit(num_columns, blocked)
    num_groups = -(-vocabulary.size // GROUP_SIZE)
    num_searched = k + num_beams * vocabulary.num_mixed_groups
    if 2 * num_searched > num_beams * num_groups:
        return flat_top_k(tf.where(allowed, log(probabilities), 2 * NEVER), scores, k)
    spare = -num_columns % GROUP_SIZE
    if spare:
        probabilities = tf.pad(probabilities, [[0, 0], [0, spare]])
        allowed = tf.pad(allowed, [[0, spare]])
    groups_in_row = (num_columns + spare) // GROUP_SIZE
    groups = tf.reshape(probabilities, [-1, num_beams * groups_in_row, GROUP_SIZE])
    maxima = tf.reshape(tf.reduce_max(groups, axis=2), [-1, num_beams, groups_in_row])
    best = flat_top_k(log(maxima[:, :, :num_groups]), scores, num_searched)
    # best.ids are groups of a beam; look into these groups.
    found = tf.gather(groups, best.beams * groups_in_row + best.ids, batch_dims=1)
    totals = tf.where(
        tf.gather(tf.reshape(allowed, [-1, GROUP_SIZE]), best.ids),
        log(found) + tf.gather(scores, best.beams, batch_dims=1)[:, :, None],
        2 * NEVER,
    )
    values, places = tf.math.top_k(tf.reshape(totals, [-1, num_searched * GROUP_SIZE]), k)
    place_groups = places // GROUP_SIZE
    first_columns = tf.gather(best.ids, place_groups, batch_dims=1) * GROUP_SIZE
    beams = tf.gather(best.beams, place_groups, batch_dims=1)
    return TopK(values, first_columns + places % GROUP_SIZE, beams)


def log(probabilities: tf.Tensor) -> tf.Tensor:
    """Return the logarithms, of 0 that of a tiny number."""
    return tf.math.log(tf.maximum(probabilities, _TINY))


def flat_top_k(logs: tf.Tensor, scores: tf.Tensor, k: int) -> TopK:
    """Return the k largest of logs [B, N, C] (or [B * N, C]) + scores [B, N, 1]."""
    num_beams, num_columns = scores.shape[1], logs.shape[-1]
    totals = tf.reshape(logs, [-1, num_beams, num_columns]) + scores[:, :, None]
    values, places = tf.math.top_k(tf.reshape(totals, [-1, num_beams * num_columns]), k)
    return TopK(values, places % num_columns, places // num_columns)
