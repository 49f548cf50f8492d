"""How hypotheses are extended by one token: the best extensions, or a sampled one.

Shapes: B sentences, N beams, W columns of the softmax, M candidates of a sentence.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.decode import top_k

NEVER = top_k.NEVER


class RoundedLogits(NamedTuple):
    """Logits [B * N, W], in any type, that low precision rounded; exact(parents [B, M], ids [B, M])
    computes those of some extensions again, in float32 [B, M]."""

    values: tf.Tensor
    exact: Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


Logits = tf.Tensor | RoundedLogits


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
    num_all = scores.shape[1] * probabilities.shape[1]
    found = top_k.top_k(probabilities, scores, min(num_candidates, num_all), vocabulary, blocked)
    return _fill_up(Candidates(*found), num_candidates)


def constrained(
    probabilities: tf.Tensor,
    scores: tf.Tensor,
    *,
    num_candidates: int,
    ids: Sequence[int],
    allowed: tf.Tensor,
) -> Candidates:
    """Return the best of the extensions that a grammar allows.

    Args:
      probabilities: float32 [B * N, W] of the next token.
      scores: log-probabilities [B, N] of the beams.
      num_candidates: M.
      ids: the G tokens that may ever be emitted.
      allowed: bool [B, N, G], those that may be emitted now.
    """
    num_beams = scores.shape[1]
    logs = top_k.log(tf.gather(probabilities, tf.constant(ids), axis=1))
    logs = tf.where(allowed, tf.reshape(logs, [-1, num_beams, len(ids)]), 2 * NEVER)
    found = top_k.flat_top_k(logs, scores, min(num_candidates, num_beams * len(ids)))
    found = Candidates(found.scores, tf.gather(tf.constant(ids), found.ids), found.beams)
    return _fill_up(found, num_candidates)


class Sampling(NamedTuple):
    """How a token is drawn: from p^(1 / temperature), of the `top_k` most probable tokens (0: all)
    and of these the fewest that together have `top_p` of the probability."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0


def sampled(
    probabilities: tf.Tensor,
    scores: tf.Tensor,
    uniforms: tf.Tensor,
    *,
    sampling: Sampling,
    vocabulary: top_k.Vocabulary,
    blocked: tf.Tensor | None = None,
) -> Candidates:
    """Return one extension, drawn at random, of the one beam of each sentence; M = N = 1.

    Args:
      probabilities: float32 [B, W].
      scores: [B, 1].
      uniforms: [B], random numbers from 0 to 1; what is drawn is a function of them.
      sampling: the distribution to draw from. Scores stay those of the model.
      vocabulary: which columns may be emitted.
      blocked: scalar bool: whether the vocabulary's blockable ids are forbidden now.
    """
    num_columns = probabilities.shape[1]
    allowed = vocabulary.may_emit(num_columns, blocked)
    masked = tf.where(allowed, top_k.log(probabilities), 2 * NEVER)
    logs, ids = tf.math.top_k(masked, min(sampling.top_k or num_columns, num_columns))
    weights = tf.nn.softmax(logs / sampling.temperature)
    # A token stays while those before it have less than top_p together; so the first one does.
    before = tf.cumsum(weights, axis=1, exclusive=True)
    weights = tf.where(before < sampling.top_p, weights, 0.0)
    ends = tf.cumsum(weights, axis=1)
    drawn = tf.reduce_sum(tf.cast(ends <= uniforms[:, None] * ends[:, -1:], tf.int32), axis=1)
    last = tf.math.count_nonzero(weights, axis=1, dtype=tf.int32) - 1
    place = tf.minimum(drawn, last)[:, None]
    totals = scores + tf.gather(logs, place, batch_dims=1)
    return Candidates(totals, tf.gather(ids, place, batch_dims=1), tf.zeros_like(place))


def forced(
    free: Candidates, probabilities: tf.Tensor, scores: tf.Tensor, ids: tf.Tensor
) -> Candidates:
    """Return `free`, but where ids [B] is not 0 only that token, after the first beam."""
    num_columns = probabilities.shape[1]
    first_beam = tf.reshape(probabilities, [-1, scores.shape[1], num_columns])[:, 0]
    forced_scores = scores[:, 0] + top_k.log(tf.gather(first_beam, ids, batch_dims=1))
    is_forced, is_first = (ids > 0)[:, None], (tf.range(free.ids.shape[1]) == 0)[None]
    only = tf.where(is_first, forced_scores[:, None], NEVER)
    return Candidates(
        tf.where(is_forced, only, free.scores),
        tf.where(is_forced, ids[:, None], free.ids),
        tf.where(is_forced, 0, free.parents),
    )


def rescored(found: Candidates, scores: tf.Tensor, logits: RoundedLogits) -> Candidates:
    """Return the same candidates with the scores of their exact logits.

    A beam's softmax changes with the logits in its sum: those of its candidates, often most of the
    sum, are replaced; the errors of the others stay, small and of either sign.
    """
    num_beams, num_columns = scores.shape[1], logits.values.shape[1]
    beam_scores = tf.gather(scores, found.parents, batch_dims=1)
    exists = found.scores > NEVER / 2
    ids = tf.where(exists, found.ids, 0)  # one that does not exist may be past the vocabulary
    flat = tf.reshape(logits.values, [-1, num_beams * num_columns])
    rounded = tf.gather(flat, found.parents * num_columns + ids, batch_dims=1)
    rounded = tf.cast(rounded, tf.float32)
    changes = tf.where(exists, logits.exact(found.parents, ids) - rounded, 0.0)
    probabilities = tf.where(exists, tf.exp(found.scores - beam_scores), 0.0)
    growth = tf.reduce_sum(
        tf.one_hot(found.parents, num_beams) * (probabilities * tf.math.expm1(changes))[:, :, None],
        axis=1,
    )
    normalizers = tf.gather(tf.math.log1p(growth), found.parents, batch_dims=1)
    totals, places = tf.math.top_k(found.scores + changes - normalizers, ids.shape[1])
    ids, parents = (tf.gather(x, places, batch_dims=1) for x in (found.ids, found.parents))
    return Candidates(totals, ids, parents)


def _fill_up(found: Candidates, num_candidates: int) -> Candidates:
    """Return M candidates where there are fewer; those added have a score of 2 NEVER."""
    if found.ids.shape[1] == num_candidates:
        return found
    missing = [[0, 0], [0, num_candidates - found.ids.shape[1]]]
    return Candidates(
        tf.pad(found.scores, missing, constant_values=2 * NEVER),
        tf.pad(found.ids, missing),
        tf.pad(found.parents, missing),
    )
