"""How hypotheses are extended by one token: the best extensions, or a sampled one (floor 1).

Shapes: B sentences, N beams, W columns of the softmax, M candidates of a sentence.
"""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.infer import top_k

# The score of what does not exist; anything below half of it is such.
NEVER = -1e9
# The least probability whose logarithm is taken: a float32 softmax gives 0 below 1e-38.
_TINY = 1e-37


class Candidates(NamedTuple):
    """Extensions of a sentence's beams, best first, all [B, M].

    `scores` are log-probabilities of the whole hypothesis, `ids` the tokens appended, `parents` the
    beams that they are appended to.
    """

    scores: tf.Tensor
    ids: tf.Tensor
    parents: tf.Tensor


def best(
    probabilities: tf.Tensor,
    scores: tf.Tensor,
    *,
    num_candidates: int,
    vocabulary: top_k.Vocabulary,
    blocked: tf.Tensor | None = None,
) -> Candidates:
    """Return the best of all extensions of all beams.

    Args:
      probabilities: float32 [B * N, W] of the next token.
      scores: log-probabilities [B, N] of the beams; NEVER for one that does not exist.
      num_candidates: M.
      vocabulary: which columns may be emitted.
      blocked: scalar bool: whether the vocabulary's blockable ids are forbidden now.
    """
    num_beams = scores.shape[1]
    # No beam can contribute more than M.
    k = min(num_candidates, probabilities.shape[1])
    found = top_k.top_k(probabilities, k, vocabulary, blocked)
    totals = tf.reshape(log(found.values), [-1, num_beams, k]) + scores[:, :, None]
    totals, places = tf.math.top_k(tf.reshape(totals, [-1, num_beams * k]), num_candidates)
    ids = tf.gather(tf.reshape(found.ids, [-1, num_beams * k]), places, batch_dims=1)
    return Candidates(totals, ids, places // k)


def forced(
    free: Candidates, probabilities: tf.Tensor, scores: tf.Tensor, ids: tf.Tensor
) -> Candidates:
    """Return `free`, but where ids [B] is not 0 only that token, after the first beam."""
    num_columns = probabilities.shape[1]
    first_beam = tf.reshape(probabilities, [-1, scores.shape[1], num_columns])[:, 0]
    forced_scores = scores[:, 0] + log(tf.gather(first_beam, ids, batch_dims=1))
    is_forced, is_first = (ids > 0)[:, None], (tf.range(free.ids.shape[1]) == 0)[None]
    only = tf.where(is_first, forced_scores[:, None], NEVER)
    return Candidates(
        tf.where(is_forced, only, free.scores),
        tf.where(is_forced, ids[:, None], free.ids),
        tf.where(is_forced, 0, free.parents),
    )


def log(probabilities: tf.Tensor) -> tf.Tensor:
    """Return the logarithms; NEVER for a negative number, which stands for a forbidden token."""
    logs = tf.math.log(tf.maximum(probabilities, _TINY))
    return tf.where(probabilities < 0, NEVER, logs)
