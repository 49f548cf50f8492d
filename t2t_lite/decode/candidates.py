"""How hypotheses are extended by one token: the best extensions, or one drawn at random.

The best are found exactly and fast: a top-k over all N * W extensions of a sentence looks at each
group of columns once, and then only into the few groups that can hold them.

Shapes: B sentences, N beams, V rows of the embedding, D its width, W columns of the softmax (the
vocabulary and whatever spare ones follow), M candidates of a sentence, G symbols of a grammar.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite.decode import options as decode_options
from t2t_lite.text import vocabulary as vocabularies

# The score of what does not exist; anything below half of it is such.
NEVER = -1e9
# Columns of one group: a row of 8,000 is 200 groups, and a few of a sentence's are looked into.
GROUP_SIZE = 40
# The smallest probability whose logarithm is taken: a float32 softmax gives 0 below 1e-38.
_SMALLEST = 1e-37


@dataclasses.dataclass(frozen=True)
class EmittableIds:
    """Which columns may be emitted: ids below `size`, EOS among them, but those `forbidden`."""

    size: int
    eos_id: int = vocabularies.EOS_ID
    forbidden: tuple[int, ...] = ()

    @property
    def num_mixed_groups(self) -> int:
        """The number of groups (at most) of which some columns may be emitted and others not."""
        mixed = {token // GROUP_SIZE for token in (*self.forbidden, self.eos_id)}
        if self.size % GROUP_SIZE:
            mixed.add(self.size // GROUP_SIZE)
        return len(mixed)

    def may_emit(
        self,
        num_columns: int,
        may_end: tf.Tensor | None = None,
        banned: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Return bool [W], which of that many columns may be emitted, or [B * N, W] if `banned`.

        A scalar `may_end` tells whether EOS is among them, None that it is. `banned` [B * N, W] are
        those that each beam may not emit.
        """
        columns = tf.range(num_columns)
        allowed = columns < self.size
        for token in self.forbidden:
            allowed &= columns != token
        if may_end is not None:
            allowed &= (columns != self.eos_id) | may_end
        return allowed if banned is None else allowed & ~banned


class RoundedLogits(NamedTuple):
    """Logits that low precision rounded, and what they were made from.

    `values` [B * N, W], in any type; `states` [B, N, D], float32, the decoder's output;
    `embedding` [W, D], without columns that are never emitted.
    """

    values: tf.Tensor
    states: tf.Tensor
    embedding: tf.Tensor

    def exact(self, parents: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
        """Return float32 [B, M]: the logits of ids [B, M] after the beams parents [B, M]."""
        rows_BMD = tf.cast(tf.gather(self.embedding, ids), tf.float32)
        return tf.reduce_sum(rows_BMD * tf.gather(self.states, parents, batch_dims=1), axis=2)


Logits = tf.Tensor | RoundedLogits


class Rules(NamedTuple):
    """What the next tokens of all sentences must obey; None: no rule.

    `may_end` is a scalar, False before the minimum length. `forced_ids` [B] are the only tokens,
    PAD where any may come. `banned_ids` [B, N, T] may not come next, padded with PAD.
    `grammar_allows` [B, N, G] holds for each of the `grammar_ids`, and no other token may come. A
    token is drawn at random with `uniforms` [B], from 0 to 1.
    """

    may_end: tf.Tensor | None = None
    forced_ids: tf.Tensor | None = None
    banned_ids: tf.Tensor | None = None
    uniforms: tf.Tensor | None = None
    grammar_ids: Sequence[int] = ()
    grammar_allows: tf.Tensor | None = None


class Candidates(NamedTuple):
    """Extensions of a sentence's beams, best first, all [B, M].

    `scores` are log-probabilities of the whole hypothesis, `ids` the tokens appended, `parents` the
    beams that they are appended to. Where there are fewer than M, the rest score below NEVER / 2.
    """

    scores: tf.Tensor
    ids: tf.Tensor
    parents: tf.Tensor


def extend(
    logits: Logits,
    scores: tf.Tensor,
    num_candidates: int,
    *,
    rules: Rules,
    emittable: EmittableIds,
    options: decode_options.DecodeOptions,
) -> Candidates:
    """Return the best extensions of all beams, or one drawn at random if options.sampling.

    Args:
      logits: [B * N, W] of the next token.
      scores: float32 [B, N], log-probabilities of the beams; NEVER for one that does not exist.
      num_candidates: M; 1 if options.sampling.
      rules: what the next token must obey.
      emittable: which columns may be emitted.
      options: how tokens are drawn.
    """
    count, values = num_candidates, logits
    if isinstance(logits, RoundedLogits):
        # Rounding may have put the second before the best.
        count, values = max(num_candidates, 2), logits.values
    values = tf.cast(values, tf.float32)
    probabilities = tf.nn.softmax(values)
    limits: dict[str, Any] = {"emittable": emittable, "may_end": rules.may_end}
    if rules.banned_ids is not None:
        limits["banned"] = _is_banned(rules.banned_ids, values.shape[-1])
    if rules.grammar_allows is not None:
        ids, allowed = rules.grammar_ids, rules.grammar_allows
        extensions = constrained(probabilities, scores, count, ids=ids, allowed=allowed)
    elif options.sampling:
        extensions = sampled(
            probabilities,
            scores,
            rules.uniforms,
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            **limits,
        )
    else:
        extensions = best(probabilities, scores, count, **limits)
    if rules.forced_ids is not None:
        extensions = forced(extensions, probabilities, scores, rules.forced_ids)
    if isinstance(logits, RoundedLogits):
        exact = rescored(extensions, scores, logits)
        extensions = Candidates(*(x[:, :num_candidates] for x in exact))
    return extensions


def best(
    probabilities: tf.Tensor,
    scores: tf.Tensor,
    num_candidates: int,
    *,
    emittable: EmittableIds,
    may_end: tf.Tensor | None = None,
    banned: tf.Tensor | None = None,
) -> Candidates:
    """Return the M extensions with the largest sums score + log(probability).

    The M best lie in the M groups of columns with the largest maxima, so only these are searched. A
    group whose maximum may not be emitted can push out one that matters, so as many groups more are
    taken as there can be such.

    Args:
      probabilities: float32 [B * N, W] of the next token, W static and at least emittable.size.
      scores: float32 [B, N].
      num_candidates: M.
      emittable, may_end, banned: which columns may be emitted: see EmittableIds.may_emit.
    """
    num_beams, num_columns = scores.shape[1], probabilities.shape[-1]
    allowed = emittable.may_emit(num_columns, may_end, banned)
    num_groups = -(-emittable.size // GROUP_SIZE)
    num_searched = num_candidates + num_beams * emittable.num_mixed_groups
    if banned is not None or 2 * num_searched > num_beams * num_groups:
        logs = tf.where(allowed, _log(probabilities), 2 * NEVER)
        return _largest_sums(logs, scores, num_candidates)
    spare = -num_columns % GROUP_SIZE
    if spare:
        probabilities = tf.pad(probabilities, [[0, 0], [0, spare]])
        allowed = tf.pad(allowed, [[0, spare]])
    groups_in_row = (num_columns + spare) // GROUP_SIZE
    groups = tf.reshape(probabilities, [-1, num_beams * groups_in_row, GROUP_SIZE])
    maxima = tf.reshape(tf.reduce_max(groups, axis=2), [-1, num_beams, groups_in_row])
    # Here ids are those of groups.
    searched = _largest_sums(_log(maxima[:, :, :num_groups]), scores, num_searched)
    columns = tf.gather(groups, searched.parents * groups_in_row + searched.ids, batch_dims=1)
    allowed = tf.gather(tf.reshape(allowed, [-1, GROUP_SIZE]), searched.ids)
    sums = tf.where(
        allowed,
        _log(columns) + tf.gather(scores, searched.parents, batch_dims=1)[:, :, None],
        2 * NEVER,
    )
    sums, places = tf.math.top_k(tf.reshape(sums, [-1, num_searched * GROUP_SIZE]), num_candidates)
    place_groups = places // GROUP_SIZE
    first_columns = tf.gather(searched.ids, place_groups, batch_dims=1) * GROUP_SIZE
    parents = tf.gather(searched.parents, place_groups, batch_dims=1)
    return Candidates(sums, first_columns + places % GROUP_SIZE, parents)


def constrained(
    probabilities: tf.Tensor,
    scores: tf.Tensor,
    num_candidates: int,
    *,
    ids: Sequence[int],
    allowed: tf.Tensor,
) -> Candidates:
    """Return the best of the extensions that a grammar allows.

    Args:
      probabilities: float32 [B * N, W] of the next token.
      scores: float32 [B, N].
      num_candidates: M.
      ids: the G tokens that may ever be emitted.
      allowed: bool [B, N, G], those that may be emitted next.
    """
    logs = _log(tf.gather(probabilities, tf.constant(ids), axis=1))
    logs = tf.where(allowed, tf.reshape(logs, [-1, scores.shape[1], len(ids)]), 2 * NEVER)
    extensions = _largest_sums(logs, scores, num_candidates)
    return extensions._replace(ids=tf.gather(tf.constant(ids), extensions.ids))


def sampled(
    probabilities: tf.Tensor,
    scores: tf.Tensor,
    uniforms: tf.Tensor,
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    emittable: EmittableIds,
    may_end: tf.Tensor | None = None,
    banned: tf.Tensor | None = None,
) -> Candidates:
    """Return one extension, drawn at random, of the one beam of each sentence; M = N = 1.

    It is drawn from p^(1 / temperature), of the `top_k` most probable tokens (0: all) and of these
    the fewest that together have `top_p` of the probability. Its score is that of the model.

    Args:
      probabilities: float32 [B, W].
      scores: [B, 1].
      uniforms: [B], random numbers from 0 to 1; what is drawn is a function of them.
      temperature: above 0.
      top_k: at least 0.
      top_p: above 0, at most 1.
      emittable, may_end, banned: which columns may be emitted: see EmittableIds.may_emit.
    """
    num_columns = probabilities.shape[-1]
    allowed = emittable.may_emit(num_columns, may_end, banned)
    masked = tf.where(allowed, _log(probabilities), 2 * NEVER)
    count = min(top_k, num_columns) if top_k else num_columns
    logs, ids = tf.math.top_k(masked, count)
    weights = tf.nn.softmax(logs / temperature)
    # A token stays while those before it have less than top_p together; so the first one does.
    before = tf.cumsum(weights, axis=1, exclusive=True)
    weights = tf.where(before < top_p, weights, 0.0)
    ends = tf.cumsum(weights, axis=1)
    drawn = tf.reduce_sum(tf.cast(ends <= uniforms[:, None] * ends[:, -1:], tf.int32), axis=1)
    last = tf.math.count_nonzero(weights, axis=1, dtype=tf.int32) - 1
    place = tf.minimum(drawn, last)[:, None]
    totals = scores + tf.gather(logs, place, batch_dims=1)
    return Candidates(totals, tf.gather(ids, place, batch_dims=1), tf.zeros_like(place))


def forced(
    free: Candidates, probabilities: tf.Tensor, scores: tf.Tensor, ids: tf.Tensor
) -> Candidates:
    """Return `free`, but where ids [B] is not PAD only that token, after the first beam.

    Args:
      free: the extensions where any token may come.
      probabilities: float32 [B * N, W] of the next token.
      scores: float32 [B, N].
      ids: int32 [B].
    """
    num_columns = probabilities.shape[-1]
    first_beam = tf.reshape(probabilities, [-1, scores.shape[1], num_columns])[:, 0]
    forced_scores = scores[:, 0] + _log(tf.gather(first_beam, ids, batch_dims=1))
    is_forced = (ids != vocabularies.PAD_ID)[:, None]
    is_first = (tf.range(free.ids.shape[1]) == 0)[None]
    only = tf.where(is_first, forced_scores[:, None], NEVER)
    return Candidates(
        tf.where(is_forced, only, free.scores),
        tf.where(is_forced, ids[:, None], free.ids),
        tf.where(is_forced, 0, free.parents),
    )


def rescored(extensions: Candidates, scores: tf.Tensor, logits: RoundedLogits) -> Candidates:
    """Return the same candidates with the scores of their exact logits, best first.

    A beam's softmax changes with the logits in its sum: those of its candidates, often most of the
    sum, are replaced; the errors of the others stay, small and of either sign.

    Args:
      extensions: [B, M], scored by the rounded logits.
      scores: float32 [B, N], log-probabilities of the beams.
      logits: of the next token.
    """
    num_beams, num_columns = scores.shape[1], logits.values.shape[-1]
    beam_scores = tf.gather(scores, extensions.parents, batch_dims=1)
    exists = extensions.scores > NEVER / 2
    ids = tf.where(exists, extensions.ids, 0)  # one that does not exist may be past the vocabulary
    flat = tf.reshape(logits.values, [-1, num_beams * num_columns])
    rounded = tf.gather(flat, extensions.parents * num_columns + ids, batch_dims=1)
    rounded = tf.cast(rounded, tf.float32)
    changes = tf.where(exists, logits.exact(extensions.parents, ids) - rounded, 0.0)
    probabilities = tf.where(exists, tf.exp(extensions.scores - beam_scores), 0.0)
    growth = (probabilities * tf.math.expm1(changes))[:, :, None]
    growth = tf.reduce_sum(tf.one_hot(extensions.parents, num_beams) * growth, axis=1)
    normalizers = tf.gather(tf.math.log1p(growth), extensions.parents, batch_dims=1)
    exact = extensions.scores + changes - normalizers
    exact, places = tf.math.top_k(exact, ids.shape[1])
    ids, parents = (
        tf.gather(x, places, batch_dims=1) for x in (extensions.ids, extensions.parents)
    )
    return Candidates(exact, ids, parents)


def _is_banned(banned_ids: tf.Tensor, num_columns: int) -> tf.Tensor:
    """Return bool [B * N, W]: whether columns are among the banned_ids [B, N, T]."""
    _, num_beams, num_times = banned_ids.shape
    num_times = num_times or tf.shape(banned_ids)[2]
    rows = tf.range(tf.shape(banned_ids)[0] * num_beams)
    places = tf.stack([tf.repeat(rows, num_times), tf.reshape(banned_ids, [-1])], axis=1)
    shape = tf.stack([tf.size(rows), num_columns])
    return tf.scatter_nd(places, tf.ones(tf.shape(places)[:1], tf.int32), shape) > 0


def _largest_sums(logs: tf.Tensor, scores: tf.Tensor, count: int) -> Candidates:
    """Return the largest of logs [B, N, C] (or [B * N, C]) + scores [B, N, 1]; ids are columns."""
    num_beams, num_columns = scores.shape[1], logs.shape[-1]
    num_all = num_beams * num_columns
    sums = tf.reshape(logs, [-1, num_beams, num_columns]) + scores[:, :, None]
    sums, places = tf.math.top_k(tf.reshape(sums, [-1, num_all]), min(count, num_all))
    if count > num_all:
        missing = [[0, 0], [0, count - num_all]]
        sums, places = tf.pad(sums, missing, constant_values=2 * NEVER), tf.pad(places, missing)
    return Candidates(sums, places % num_columns, places // num_columns)


def _log(probabilities: tf.Tensor) -> tf.Tensor:
    """Return the logarithms, of 0 that of a tiny number."""
    return tf.math.log(tf.maximum(probabilities, _SMALLEST))
