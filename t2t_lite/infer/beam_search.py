"""Beam search with a length penalty (Section 6.1; Wu et al. 2016, eq. 14), model-free (floor 1).

A hypothesis of n tokens, EOS included, scores log P / ((5 + n) / 6)^alpha. A step extends the N
live hypotheses of each sentence: of the best 2 N extensions those that end in EOS compete for the K
places of the finished ones, and the best N others live on. A sentence is done when no live
hypothesis can still reach the worst of K finished ones, or at its length limit; live ones then fill
the places that are left, scored in the same way and marked as not finished. With one beam this is
greedy decoding: only the best extension counts.

What each sentence gets depends on no other: it has its own limit and its own decision to stop, and
sentences that are done leave the batch as soon as they are a quarter of it.

Nothing is ever reordered. A beam's input at a time step t is slot (t, n) for good, there its keys
and values stay, and `ancestry` [B, N, T] says which slot a hypothesis went through at each time. So
a hypothesis is a row of `ancestry`, and re-sorting the beams is a gather of small integers.

At first there is one hypothesis a sentence, the empty one, so the first step has one beam.

Shapes: B sentences still in the batch, N beams, K hypotheses kept, T time steps so far allotted (a
multiple of SEGMENT), M candidates, W columns of the softmax.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from t2t_lite.infer import candidates, top_k

NEVER = candidates.NEVER
# Arrays grow by so many time steps at once, so that attention never sees many empty slots.
SEGMENT = 8

# step(ids [B, N], position, ancestry [B, N, T], state) -> (logits [B * N, W], state)
StepFunction = Callable[[tf.Tensor, tf.Tensor, tf.Tensor, Any], tuple[tf.Tensor, Any]]
# grow(state, num_steps) -> state with room for so many time steps more
GrowFunction = Callable[[Any, int], Any]


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


class Hypotheses(NamedTuple):
    """What a search found, best first.

    ids [B, K, T] are padded with 0 and hold EOS where `finished` [B, K]; `lengths` [B, K] count
    it; `scores` [B, K]. Finished hypotheses come before those that hit the limit. Where there are
    fewer than K at all, the rest have length 0 and score -inf.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    lengths: tf.Tensor
    finished: tf.Tensor


class _Sentences(NamedTuple):
    """What is given for each sentence that is still in the batch."""

    rows: tf.Tensor  # [B] its place in the whole batch
    max_lengths: tf.Tensor  # [B]
    prefix_ids: tf.Tensor  # [B, P + 1], 0 where the search is free
    uniforms: tf.Tensor  # [B, U] random numbers for sampling


class _Beams(NamedTuple):
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


class _Settings(NamedTuple):
    beam_size: int
    alpha: float
    eos_id: int
    min_length: int
    vocabulary: top_k.Vocabulary
    has_prefix: bool
    grammar: Grammar | None
    sampling: candidates.Sampling | None


def search(
    step_fn: StepFunction,
    initial_state: Any,
    *,
    max_lengths: tf.Tensor,
    beam_size: int,
    vocab_size: int,
    alpha: float = 0.6,
    num_kept: int = 1,
    eos_id: int = 1,
    forbidden_ids: tuple[int, ...] = (),
    min_length: int = 0,
    prefix_ids: tf.Tensor | None = None,
    grammar: Grammar | None = None,
    grammar_state: Any = (),
    sampling: candidates.Sampling | None = None,
    uniforms: tf.Tensor | None = None,
    grow_fn: GrowFunction | None = None,
) -> Hypotheses:
    """Find the `num_kept` best outputs of each sentence.

    Args:
      step_fn: (ids [B, N], position, ancestry [B, N, T], state) -> (logits [B * N, W], state), the
        next token's logits after each beam's last token `ids`. Beams share slots: slot (t, n) holds
        what beam n wrote at time t; ancestry[b, n, t] is the slot at time t of beam n, n itself
        at `position`, and -1 later. At position 0 there is one beam, whose id is 0, and the state
        is `initial_state`: then step_fn makes room for the T steps itself.
      initial_state: any structure of tensors, each with sentences along its first axis.
      max_lengths: int32 [B], the most tokens of each output, EOS included.
      beam_size: N.
      vocab_size: ids from here on take part in the softmax but are never emitted.
      alpha: of the length penalty; 0 means none.
      num_kept: K, at most N.
      eos_id: the token that ends an output.
      forbidden_ids: other ids that are never emitted.
      min_length: outputs have at least so many tokens, EOS included.
      prefix_ids: int32 [B, P], tokens that the outputs begin with, padded with 0.
      grammar: what outputs must obey; minimum length and prefix do not go with it.
      grammar_state: its state [B, 1, ...] at the first step.
      sampling: draw the tokens of one beam at random instead of taking the best.
      uniforms: float32 [B, max(max_lengths)], the random numbers from 0 to 1 to draw with.
      grow_fn: (state, num_steps) -> state with room for num_steps more; none if nothing grows.
    """
    if not 1 <= num_kept <= beam_size:
        raise ValueError(f"num_kept is from 1 to beam_size ({beam_size}), got {num_kept}")
    if sampling and (beam_size > 1 or uniforms is None):
        raise ValueError("sampling has one beam, and needs uniforms")
    if grammar and (sampling or min_length > 1 or prefix_ids is not None):
        raise ValueError("a grammar does not go with sampling, min_length or prefix_ids")
    blockable = (eos_id,) if min_length > 1 else ()
    settings = _Settings(
        beam_size=beam_size,
        alpha=alpha,
        eos_id=eos_id,
        min_length=min_length,
        vocabulary=top_k.Vocabulary(vocab_size, forbidden=forbidden_ids, blockable=blockable),
        has_prefix=prefix_ids is not None,
        grammar=grammar,
        sampling=sampling,
    )
    max_lengths = tf.maximum(max_lengths, 1)
    batch_size = tf.shape(max_lengths)[0]
    if prefix_ids is None:
        prefix_ids = tf.zeros([batch_size, 0], tf.int32)
    sentences = _Sentences(
        rows=tf.range(batch_size),
        max_lengths=max_lengths,
        prefix_ids=tf.pad(prefix_ids, [[0, 0], [0, 1]]),
        uniforms=tf.zeros([batch_size, 0]) if uniforms is None else uniforms,
    )
    beams = _start(batch_size, beam_size, num_kept, grammar_state)
    results = Hypotheses(
        ids=tf.zeros([batch_size, num_kept, 0], tf.int32),
        scores=tf.zeros([batch_size, num_kept]),
        lengths=tf.zeros([batch_size, num_kept], tf.int32),
        finished=tf.zeros([batch_size, num_kept], tf.bool),
    )

    def grow(results, beams, state):
        state = grow_fn(state, SEGMENT) if grow_fn else state
        return _widen(results), _grow(beams), state

    def segment(position, results, sentences, beams, state):
        """Run steps until time is up or enough sentences are done; note and drop these."""
        room = tf.shape(beams.ancestry)[2]
        results, beams, state = tf.cond(
            position < room,
            lambda: (results, beams, state),
            lambda: grow(results, beams, state),
        )
        room = tf.shape(beams.ancestry)[2]
        least = tf.size(sentences.rows) * 3 // 4

        def step(position, beams, state):
            after, state = _step(step_fn, position, beams, state, sentences, settings)
            return position + 1, _where_active(beams.active, after, beams), state

        position, beams, state = tf.while_loop(
            lambda position, beams, _: (position < room) & (_num_active(beams) > least),
            step,
            (position, beams, state),
            parallel_iterations=1,
        )
        results = _note(results, sentences.rows, _hypotheses(beams, settings))
        sentences, beams, state = _drop_done(sentences, beams, state)
        return position, results, sentences, beams, state

    results, beams = _widen(results), _grow(beams)
    beams, state = _step(step_fn, tf.constant(0), beams, initial_state, sentences, settings)
    after_first = (results, beams, state)
    results_shape, beams_shape, state_shape = _invariants(after_first, grow(*after_first))
    _, results, *_ = tf.while_loop(
        lambda position, results, sentences, *_: tf.size(sentences.rows) > 0,
        segment,
        (tf.constant(1), results, sentences, beams, state),
        shape_invariants=(
            tf.TensorShape([]),
            results_shape,
            _invariants(sentences, sentences),
            beams_shape,
            state_shape,
        ),
        parallel_iterations=1,
    )
    return results._replace(ids=results.ids[:, :, : tf.reduce_max(results.lengths)])


def length_penalty(lengths: tf.Tensor, alpha: float) -> tf.Tensor:
    """Return ((5 + n) / 6)^alpha, float32."""
    return tf.pow((5.0 + tf.cast(lengths, tf.float32)) / 6.0, alpha)


def _start(batch_size: tf.Tensor, beam_size: int, num_kept: int, grammar_state: Any) -> _Beams:
    """Return beams before the first step: one empty hypothesis a sentence."""
    return _Beams(
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


def _step(step_fn, position, beams: _Beams, state, sentences: _Sentences, settings: _Settings):
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


def _enter_slots(beams: _Beams, position: tf.Tensor) -> _Beams:
    """Note that beam n is now in slot (position, n) and what its input there is."""
    is_now = tf.range(tf.shape(beams.ancestry)[2]) == position
    own_slots = tf.range(beams.ids.shape[1])[None, :, None]
    return beams._replace(
        ancestry=tf.where(is_now, own_slots, beams.ancestry),
        slot_ids=tf.where(is_now[:, None], beams.ids[:, None, :], beams.slot_ids),
    )


def _candidates(
    logits, position, beams: _Beams, sentences: _Sentences, settings: _Settings
) -> candidates.Candidates:
    """Return the 2 N best extensions; in greedy search only the best, or one drawn at random."""
    num_candidates = 2 * settings.beam_size if settings.beam_size > 1 else 1
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


def _live(beams: _Beams, found: candidates.Candidates, settings: _Settings) -> _Beams:
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


def _finished(beams: _Beams, found: candidates.Candidates, position, settings: _Settings) -> dict:
    """Return the K best of the finished hypotheses and the candidates that end in EOS."""
    is_new = (found.ids == settings.eos_id) & (found.scores > NEVER / 2)
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


def _is_done(beams: _Beams, sentences: _Sentences, settings: _Settings) -> tf.Tensor:
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


def _where_active(active: tf.Tensor, after: _Beams, before: _Beams) -> _Beams:
    """Return `after` for active sentences and `before` for those that were done already."""

    def choose(new, old):
        if new is old:
            return new
        return tf.where(tf.reshape(active, [-1] + [1] * (new.shape.rank - 1)), new, old)

    return tf.nest.map_structure(choose, after, before)


def _hypotheses(beams: _Beams, settings: _Settings) -> Hypotheses:
    """Return the finished hypotheses, then live ones in the places that are left."""
    num_kept, num_beams = beams.finished_scores.shape[1], beams.ids.shape[1]
    live_lengths = tf.repeat(beams.lengths[:, None], num_beams, axis=1)
    live_scores = beams.scores / length_penalty(live_lengths, settings.alpha)
    live_scores = tf.where(beams.scores > NEVER / 2, live_scores, -float("inf"))
    live_lengths = tf.where(beams.scores > NEVER / 2, live_lengths, 0)
    # Place k is the k-th finished one, or the first live one after the last of them.
    num_finished = tf.reduce_sum(
        tf.cast(beams.finished_scores > NEVER / 2, tf.int32), axis=1, keepdims=True
    )
    places = tf.range(num_kept)[None]
    is_finished = places < num_finished
    places = tf.where(is_finished, places, num_kept + places - num_finished)

    def pick(finished, live):
        return tf.gather(tf.concat([finished, live], axis=1), places, batch_dims=1)

    lengths = pick(beams.finished_lengths, live_lengths)
    eos_ids = tf.fill(tf.shape(beams.finished_lengths), settings.eos_id)
    ids = _trace(
        beams.slot_ids,
        ancestry=pick(beams.finished_ancestry, beams.ancestry),
        lengths=lengths,
        last_ids=pick(eos_ids, beams.ids),
    )
    scores = pick(beams.finished_scores, live_scores)
    return Hypotheses(ids=ids, scores=scores, lengths=lengths, finished=is_finished)


def _trace(slot_ids, *, ancestry, lengths, last_ids) -> tf.Tensor:
    """Return the tokens [B, K, T] of hypotheses: the inputs of their slots from time 1 on, and the
    last token, which has no slot.

    >>> slot_ids = [[[0, 0], [7, 8], [5, 6]]]       # T = 3 times, N = 2 slots
    >>> _trace(slot_ids, ancestry=[[[0, 1, 0]]], lengths=[[3]], last_ids=[[1]])
    [[[8, 5, 1]]]
    """
    num_steps = tf.shape(ancestry)[2]
    slots = tf.maximum(tf.transpose(ancestry, [0, 2, 1]), 0)  # [B, T, K]
    inputs = tf.gather(slot_ids, slots, batch_dims=2)
    outputs = tf.roll(tf.transpose(inputs, [0, 2, 1]), shift=-1, axis=2)
    times, lasts = tf.range(num_steps), lengths[:, :, None] - 1
    ids = tf.where(times < lasts, outputs, 0)
    return tf.where(times == lasts, last_ids[:, :, None], ids)


def _grow(beams: _Beams) -> _Beams:
    """Allot SEGMENT time steps more; -1 is no slot."""
    at_end = [[0, 0], [0, 0], [0, SEGMENT]]
    return beams._replace(
        ancestry=tf.pad(beams.ancestry, at_end, constant_values=-1),
        slot_ids=tf.pad(beams.slot_ids, [[0, 0], [0, SEGMENT], [0, 0]]),
        finished_ancestry=tf.pad(beams.finished_ancestry, at_end),
    )


def _note(results: Hypotheses, rows: tf.Tensor, found: Hypotheses) -> Hypotheses:
    """Write what sentences `rows` of the whole batch have so far over what they had."""
    pairs = zip(results, found)
    return Hypotheses(*(tf.tensor_scatter_nd_update(old, rows[:, None], new) for old, new in pairs))


def _num_active(beams: _Beams) -> tf.Tensor:
    return tf.math.count_nonzero(beams.active, dtype=tf.int32)


def _widen(results: Hypotheses) -> Hypotheses:
    return results._replace(ids=tf.pad(results.ids, [[0, 0], [0, 0], [0, SEGMENT]]))


def _drop_done(sentences: _Sentences, beams: _Beams, state):
    """Keep the active sentences in the batch."""
    everything = (sentences, beams, state)
    kept = tf.where(beams.active)[:, 0]
    return tf.cond(
        tf.reduce_all(beams.active),
        lambda: everything,
        lambda: tf.nest.map_structure(lambda x: tf.gather(x, kept), everything),
    )


def _invariants(before: Any, grown: Any) -> Any:
    """Return the shapes that hold at every turn: the batch shrinks, and some axes grow."""

    def shape(old: tf.Tensor, new: tf.Tensor) -> tf.TensorShape:
        sizes = [size if size == later else None for size, later in zip(old.shape, new.shape)]
        return tf.TensorShape([None, *sizes[1:]])

    return tf.nest.map_structure(shape, before, grown)
