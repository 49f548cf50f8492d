"""The beams of each sentence, and one time step of their search (see beam_search).

A hypothesis of n tokens, EOS included, scores log P / ((5 + n) / 6)^alpha (Wu et al. 2016, eq. 14).
A step extends the N live hypotheses of each sentence: of the best 2 N extensions (if ends are
strict, of the best N) those that end in EOS compete for the K places of the finished ones, and the
best N others live on. A sentence is done when no live hypothesis can still reach the worst of K
finished ones, or at its length limit.

Nothing is ever reordered. A beam's input at a time step t is slot (t, n) for good, there its keys
and values stay, and `ancestry` [B, N, T] says which slot a hypothesis went through at each time. So
a hypothesis is a row of `ancestry`, and re-sorting the beams is a gather of small integers.

Shapes: B sentences still in the batch, N beams, K hypotheses kept, T time steps so far allotted, M
candidates, W columns of the softmax, P tokens that an output begins with.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from t2t_lite.decode import candidates, top_k

NEVER = candidates.NEVER

# step(ids [B, N], position, ancestry [B, N, T], state) -> (logits [B * N, W], state)
StepFunction = Callable[[tf.Tensor, tf.Tensor, tf.Tensor, Any], tuple[candidates.Logits, Any]]


class Grammar(Protocol):
    """What hypotheses may go on with; its state is a structure of tensors [B, N, ...]."""

    @property
    def ids(self) -> Sequence[int]:
        """The G tokens that may ever be emitted."""
        ...

    def allowed(self, state: Any, steps_left: tf.Tensor) -> tf.Tensor:
        """Return bool [B, N, G]: which of `ids` may come next, with steps_left [B] after it."""
        ...

    def advance(self, state: Any, ids: tf.Tensor) -> Any:
        """Return the state after ids [B, N]."""
        ...


class Sentences(NamedTuple):
    """What is given for each sentence that is still in the batch."""

    rows: tf.Tensor  # [B] its place in the whole batch
    max_lengths: tf.Tensor  # [B]
    prefix_ids: tf.Tensor  # [B, P + 1], 0 where the search is free
    uniforms: tf.Tensor  # [B, U] random numbers for sampling


class Beams(NamedTuple):
    """The search of each sentence: live hypotheses, finished ones, and what lies in the slots."""

    scores: tf.Tensor  # [B, N] log-probabilities of the live ones, best first
    ids: tf.Tensor  # [B, N] their last tokens
    lengths: tf.Tensor  # [B] their number of tokens
    ancestry: tf.Tensor  # [B, N, T]
    grammar: Any  # the state of the grammar, () without one
    slot_ids: tf.Tensor  # [B, T, N] the input of each slot
    finished_scores: tf.Tensor  # [B, K] with length penalty, best first
    finished_lengths: tf.Tensor  # [B, K]
    finished_ancestry: tf.Tensor  # [B, K, T]
    active: tf.Tensor  # [B] bool


class Settings(NamedTuple):
    """What is the same for all sentences and steps; see beam_search.search."""

    beam_size: int
    alpha: float
    strict_ends: bool
    eos_id: int
    min_length: int
    vocabulary: top_k.Vocabulary
    has_prefix: bool
    grammar: Grammar | None
    sampling: candidates.Sampling | None


def length_penalty(lengths: tf.Tensor, alpha: float) -> tf.Tensor:
    """Return ((5 + n) / 6)^alpha, float32."""
    return tf.pow((5.0 + tf.cast(lengths, tf.float32)) / 6.0, alpha)


def start(batch_size: tf.Tensor, beam_size: int, num_kept: int, grammar_state: Any) -> Beams:
    """Return beams before the first step: one empty hypothesis a sentence."""
    return Beams(
        scores=tf.zeros([batch_size, 1]),
        ids=tf.zeros([batch_size, 1], tf.int32),
        lengths=tf.zeros([batch_size], tf.int32),
        ancestry=tf.zeros([batch_size, 1, 0], tf.int32),
        grammar=grammar_state,
        slot_ids=tf.zeros([batch_size, 0, beam_size], tf.int32),
        finished_scores=tf.fill([batch_size, num_kept], NEVER),
        finished_lengths=tf.zeros([batch_size, num_kept], tf.int32),
        finished_ancestry=tf.zeros([batch_size, num_kept, 0], tf.int32),
        active=tf.ones([batch_size], tf.bool),
    )


def step(step_fn, position, beams: Beams, state, sentences: Sentences, settings: Settings):
    """Run one time step for all beams; return the beams and the state after it."""
    beams = _enter_slots(beams, position)
    logits, state = step_fn(beams.ids, position, beams.ancestry, state)
    found = _candidates(logits, position, beams, sentences, settings)
    live = _live(beams, found, settings)
    finished = _finished(beams, found, position, settings)
    after = live._replace(
        lengths=tf.fill(tf.shape(beams.lengths), position + 1),
        slot_ids=beams.slot_ids,
        **finished,
    )
    return after._replace(active=~_is_done(after, sentences, settings)), state


def _enter_slots(beams: Beams, position: tf.Tensor) -> Beams:
    """Note that beam n is now in slot (position, n) and what its input there is."""
    is_now = tf.range(tf.shape(beams.ancestry)[2]) == position
    own_slots = tf.range(beams.ids.shape[1])[None, :, None]
    return beams._replace(
        ancestry=tf.where(is_now, own_slots, beams.ancestry),
        slot_ids=tf.where(is_now[:, None], beams.ids[:, None, :], beams.slot_ids),
    )


def _candidates(
    logits: candidates.Logits, position, beams: Beams, sentences: Sentences, settings: Settings
) -> candidates.Candidates:
    """Return the 2 N best extensions; in greedy search only the best, or one drawn at random."""
    num_wanted = 2 * settings.beam_size if settings.beam_size > 1 else 1
    if not isinstance(logits, candidates.RoundedLogits):
        return _found(logits, num_wanted, position, beams, sentences, settings)
    # Rounding may have put the second before the best.
    num_found = max(num_wanted, 2)
    found = _found(logits.values, num_found, position, beams, sentences, settings)
    found = candidates.rescored(found, beams.scores, logits)
    return found._make(x[:, :num_wanted] for x in found)


def _found(
    logits, num_candidates: int, position, beams: Beams, sentences: Sentences, settings: Settings
) -> candidates.Candidates:
    """Return so many of the best extensions, or one drawn at random."""
    probabilities = tf.nn.softmax(tf.cast(logits, tf.float32))
    if settings.grammar:
        return candidates.constrained(
            probabilities,
            beams.scores,
            num_candidates=num_candidates,
            ids=settings.grammar.ids,
            allowed=settings.grammar.allowed(beams.grammar, sentences.max_lengths - position - 1),
        )
    blocked = position + 1 < settings.min_length if settings.min_length > 1 else None
    if settings.sampling:
        found = candidates.sampled(
            probabilities,
            beams.scores,
            tf.gather(sentences.uniforms, position, axis=1),
            sampling=settings.sampling,
            vocabulary=settings.vocabulary,
            blocked=blocked,
        )
    else:
        found = candidates.best(
            probabilities,
            beams.scores,
            num_candidates=num_candidates,
            vocabulary=settings.vocabulary,
            blocked=blocked,
        )
    if not settings.has_prefix:
        return found
    # The last column of the prefix is 0 for all: free.
    last = tf.shape(sentences.prefix_ids)[1] - 1
    forced_ids = tf.gather(sentences.prefix_ids, tf.minimum(position, last), axis=1)
    return candidates.forced(found, probabilities, beams.scores, forced_ids)


def _live(beams: Beams, found: candidates.Candidates, settings: Settings) -> Beams:
    """Return the N best candidates that do not end in EOS as the beams."""
    num_beams = settings.beam_size
    open_scores = tf.where(found.ids == settings.eos_id, 2 * NEVER, found.scores)
    if open_scores.shape[1] == num_beams:  # one beam
        scores, places = open_scores, tf.zeros_like(found.ids)
    else:
        scores, places = tf.math.top_k(open_scores, num_beams)
    parents = tf.gather(found.parents, places, batch_dims=1)
    ids = tf.gather(found.ids, places, batch_dims=1)
    grammar = beams.grammar
    if settings.grammar:
        grammar = tf.nest.map_structure(lambda x: tf.gather(x, parents, batch_dims=1), grammar)
        grammar = settings.grammar.advance(grammar, ids)
    return beams._replace(
        scores=scores,
        ids=ids,
        ancestry=tf.gather(beams.ancestry, parents, batch_dims=1),
        grammar=grammar,
    )


def _finished(beams: Beams, found: candidates.Candidates, position, settings: Settings) -> dict:
    """Return the K best of the finished hypotheses and the candidates that end in EOS."""
    is_new = (found.ids == settings.eos_id) & (found.scores > NEVER / 2)
    if settings.strict_ends:
        is_new &= tf.range(is_new.shape[1]) < settings.beam_size
    new_scores = found.scores / length_penalty(position + 1, settings.alpha)
    scores = tf.concat([beams.finished_scores, tf.where(is_new, new_scores, NEVER)], axis=1)
    lengths = [beams.finished_lengths, tf.fill(tf.shape(found.ids), position + 1)]
    ancestry = [beams.finished_ancestry, tf.gather(beams.ancestry, found.parents, batch_dims=1)]
    scores, places = tf.math.top_k(scores, beams.finished_scores.shape[1])
    return {
        "finished_scores": scores,
        "finished_lengths": tf.gather(tf.concat(lengths, axis=1), places, batch_dims=1),
        "finished_ancestry": tf.gather(tf.concat(ancestry, axis=1), places, batch_dims=1),
    }


def _is_done(beams: Beams, sentences: Sentences, settings: Settings) -> tf.Tensor:
    """Return [B]: at the limit, or no live hypothesis can reach the worst finished one.

    Log-probabilities only fall, so a live hypothesis ends with at most its present one over the
    largest penalty that it can still meet: that of the limit, or for alpha < 0 of the next step.
    """
    best_live = beams.scores[:, 0]
    largest_penalty = tf.maximum(
        length_penalty(sentences.max_lengths, settings.alpha),
        length_penalty(beams.lengths + 1, settings.alpha),
    )
    is_hopeless = beams.finished_scores[:, -1] >= best_live / largest_penalty
    is_dead = best_live < NEVER / 2
    return is_hopeless | is_dead | (beams.lengths >= sentences.max_lengths)


def where_active(active: tf.Tensor, after: Beams, before: Beams) -> Beams:
    """Return `after` for active sentences and `before` for those that were done already."""

    def choose(new, old):
        if new is old:
            return new
        return tf.where(tf.reshape(active, [-1] + [1] * (new.shape.rank - 1)), new, old)

    return tf.nest.map_structure(choose, after, before)


def grow(beams: Beams, num_steps: int) -> Beams:
    """Allot so many time steps more; -1 is no slot."""
    at_end = [[0, 0], [0, 0], [0, num_steps]]
    return beams._replace(
        ancestry=tf.pad(beams.ancestry, at_end, constant_values=-1),
        slot_ids=tf.pad(beams.slot_ids, [[0, 0], [0, num_steps], [0, 0]]),
        finished_ancestry=tf.pad(beams.finished_ancestry, at_end),
    )


def num_active(beams: Beams) -> tf.Tensor:
    return tf.math.count_nonzero(beams.active, dtype=tf.int32)
