"""Beam search with a length penalty (Section 6.1; Wu et al. 2016, eq. 14), model-free.

beam_step has the search of a sentence, one time step of it; here these steps run until every
sentence is done. Live hypotheses then fill the places that no finished one took, scored in the same
way and marked as not finished. With one beam this is greedy decoding: only the best extension
counts.

What each sentence gets depends on no other: it has its own limit and its own decision to stop, and
sentences that are done leave the batch as soon as they are a quarter of it.

At first there is one hypothesis a sentence, the empty one, so the first step has one beam.

Shapes: B sentences still in the batch, N beams, K hypotheses kept, T time steps so far allotted (a
multiple of SEGMENT), W columns of the softmax.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite.decode import beam_step, candidates, top_k

# Arrays grow by so many time steps at once, so that attention never sees many empty slots.
SEGMENT = 8

# grow(state, ancestry [B, N, T], num_steps) -> state with room for so many time steps after T
GrowFunction = Callable[[Any, tf.Tensor, int], Any]


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


def search(
    step_fn: beam_step.StepFunction,
    initial_state: Any,
    *,
    max_lengths: tf.Tensor,
    beam_size: int,
    vocab_size: int,
    alpha: float = 0.6,
    strict_ends: bool = False,
    num_kept: int = 1,
    eos_id: int = 1,
    forbidden_ids: tuple[int, ...] = (),
    min_length: int = 0,
    prefix_ids: tf.Tensor | None = None,
    grammar: beam_step.Grammar | None = None,
    grammar_state: Any = (),
    sampling: candidates.Sampling | None = None,
    uniforms: tf.Tensor | None = None,
    grow_fn: GrowFunction | None = None,
) -> Hypotheses:
    """Find the `num_kept` best outputs of each sentence.

    Args:
      step_fn: (ids [B, N], position, ancestry [B, N, T], state) -> (logits [B * N, W], state), the
        next token's logits after each beam's last token `ids`, or RoundedLogits, the best of which
        are then scored exactly. Beams share slots: slot (t, n) holds what beam n wrote at time t;
        ancestry[b, n, t] is the slot at time t of beam n, n itself at `position`, and -1 later.
        At position 0 there is one beam, whose id is 0, and the state is `initial_state`: then
        step_fn makes room for the T steps itself.
      initial_state: any structure of tensors, each with sentences along its first axis.
      max_lengths: int32 [B], the most tokens of each output, EOS included.
      beam_size: N.
      vocab_size: ids from here on take part in the softmax but are never emitted.
      alpha: of the length penalty; 0 means none.
      strict_ends: only one of the N best extensions may end an output, not any of the 2 N best.
      num_kept: K, at most N.
      eos_id: the token that ends an output.
      forbidden_ids: other ids that are never emitted.
      min_length: outputs have at least so many tokens, EOS included.
      prefix_ids: int32 [B, P], tokens that the outputs begin with, padded with 0.
      grammar: what outputs must obey; minimum length and prefix do not go with it.
      grammar_state: its state [B, 1, ...] at the first step.
      sampling: draw the tokens of one beam at random instead of taking the best.
      uniforms: float32 [B, max(max_lengths)], the random numbers from 0 to 1 to draw with.
      grow_fn: (state, ancestry, num_steps) -> state with room for num_steps after the T of
        ancestry, that of all hypotheses which may go on; none if nothing grows.
    """
    if not 1 <= num_kept <= beam_size:
        raise ValueError(f"num_kept is from 1 to beam_size ({beam_size}), got {num_kept}")
    if sampling and (beam_size > 1 or uniforms is None):
        raise ValueError("sampling has one beam, and needs uniforms")
    if grammar and (sampling or min_length > 1 or prefix_ids is not None):
        raise ValueError("a grammar does not go with sampling, min_length or prefix_ids")
    blockable = (eos_id,) if min_length > 1 else ()
    settings = beam_step.Settings(
        beam_size=beam_size,
        alpha=alpha,
        strict_ends=strict_ends,
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
    sentences = beam_step.Sentences(
        rows=tf.range(batch_size),
        max_lengths=max_lengths,
        prefix_ids=tf.pad(prefix_ids, [[0, 0], [0, 1]]),
        uniforms=tf.zeros([batch_size, 0]) if uniforms is None else uniforms,
    )
    beams = beam_step.start(batch_size, beam_size, num_kept, grammar_state)
    results = Hypotheses(
        ids=tf.zeros([batch_size, num_kept, 0], tf.int32),
        scores=tf.zeros([batch_size, num_kept]),
        lengths=tf.zeros([batch_size, num_kept], tf.int32),
        finished=tf.zeros([batch_size, num_kept], tf.bool),
    )

    def grow(results, beams, state):
        state = grow_fn(state, beams.ancestry, SEGMENT) if grow_fn else state
        return _widen(results), beam_step.grow(beams, SEGMENT), state

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
            after, state = beam_step.step(step_fn, position, beams, state, sentences, settings)
            return position + 1, beam_step.where_active(beams.active, after, beams), state

        position, beams, state = tf.while_loop(
            lambda position, beams, _: (position < room) & (beam_step.num_active(beams) > least),
            step,
            (position, beams, state),
            parallel_iterations=1,
        )
        results = _note(results, sentences.rows, _hypotheses(beams, settings))
        sentences, beams, state = _drop_done(sentences, beams, state)
        return position, results, sentences, beams, state

    results, beams = _widen(results), beam_step.grow(beams, SEGMENT)
    beams, state = beam_step.step(
        step_fn, tf.constant(0), beams, initial_state, sentences, settings
    )
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


def _hypotheses(beams: beam_step.Beams, settings: beam_step.Settings) -> Hypotheses:
    """Return the finished hypotheses, then live ones in the places that are left."""
    num_kept, num_beams = beams.finished_scores.shape[1], beams.ids.shape[1]
    live_lengths = tf.repeat(beams.lengths[:, None], num_beams, axis=1)
    live_scores = beams.scores / beam_step.length_penalty(live_lengths, settings.alpha)
    live_scores = tf.where(beams.scores > beam_step.NEVER / 2, live_scores, -float("inf"))
    live_lengths = tf.where(beams.scores > beam_step.NEVER / 2, live_lengths, 0)
    # Place k is the k-th finished one, or the first live one after the last of them.
    num_finished = tf.reduce_sum(
        tf.cast(beams.finished_scores > beam_step.NEVER / 2, tf.int32), axis=1, keepdims=True
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


def _note(results: Hypotheses, rows: tf.Tensor, found: Hypotheses) -> Hypotheses:
    """Write what sentences `rows` of the whole batch have so far over what they had."""
    pairs = zip(results, found)
    return Hypotheses(*(tf.tensor_scatter_nd_update(old, rows[:, None], new) for old, new in pairs))


def _widen(results: Hypotheses) -> Hypotheses:
    return results._replace(ids=tf.pad(results.ids, [[0, 0], [0, 0], [0, SEGMENT]]))


def _drop_done(sentences: beam_step.Sentences, beams: beam_step.Beams, state):
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
