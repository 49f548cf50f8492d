"""Beam search with a length penalty (Section 6.1; Wu et al. 2016, eq. 14), of any model.

A hypothesis of n tokens, EOS included, scores log P / ((5 + n) / 6)^alpha. A time step extends the
N alive hypotheses of each sentence: of the best 2 N extensions (if ends are strict, of the best N)
those that end in EOS compete for the K places of the finished ones; the best N others stay alive.
A sentence is done when no alive hypothesis can still reach the worst of K finished ones, or at its
length limit (options have fairseq's penalty, n^alpha, and its end of a search, after the first N
finished ones). Alive hypotheses then fill the places that are left, scored in the same way and
marked as not finished. With one beam this is greedy decoding: only the best extension counts.

What each sentence gets depends on no other: it has its own limit and its own decision to stop, and
sentences that are done leave the batch as soon as they are a quarter of it.

Nothing is ever reordered. A hypothesis is a row of `ancestry`, which tells the slots that it went
through (see Decoder), and sorting the beams anew is a gather of small integers.

Shapes: B sentences still in the batch, N beams, M candidates of a step, K hypotheses kept, T time
steps so far allotted, W columns of the softmax, G symbols of a grammar, P tokens of a prefix.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from t2t_lite.decode import candidates
from t2t_lite.decode import options as decode_options
from t2t_lite.text import vocabulary as vocabularies

# Arrays grow by so many time steps at once, so that attention never sees many empty slots. For few
# sentences growing costs more than the empty slots do.
SEGMENT = 8
LONG_SEGMENT = 16
_FEW = 4


class Decoder(Protocol):
    """What a search needs of a model: the next token's logits, one time step after another.

    What a model keeps of the token that beam n reads at time t (its keys and values) lies in slot
    (t, n) for good. `ancestry` [B, N, T] tells which slots a hypothesis has gone through: at time t
    slot (t, ancestry[b, n, t]). That is n itself at the current time and -1, no slot, after it. If
    both of two beams went on from beam 1 of time 0, and then from beam 0 of time 1, then at time 2

        ancestry[b] = [[1, 0, 0, -1],     # slots (0, 1), (1, 0), (2, 0)
                       [1, 0, 1, -1]]     # slots (0, 1), (1, 0), (2, 1)

    A state is any structure of tensors whose first axis are the sentences; the search drops the
    rows of sentences that are done.
    """

    def step(
        self, ids: tf.Tensor, position: tf.Tensor, ancestry: tf.Tensor, state: Any
    ) -> tuple[candidates.Logits, Any]:
        """Return the next token's logits [B * N, W] after ids [B, N], and the new state.

        At time `position` 0 all ids are PAD, and only the first beam's logits matter.
        """
        ...

    def grow(self, state: Any, ancestry: tf.Tensor, num_steps: tf.Tensor) -> Any:
        """Return the state with slots for num_steps more times after the T of ancestry [B, N, T].

        Slots that no beam went through by then are never asked for again. The search begins with
        this, of the initial state, which has no slots, and T = 0.
        """
        ...


class StaticDecoder(Decoder, Protocol):
    """A decoder with room for all times from the start, so that all sizes are static."""

    def caches_of(self, state: Any) -> Any:
        """Return the part of a state that steps change."""
        ...

    def with_caches(self, state: Any, caches: Any) -> Any:
        """Return the state with that part replaced."""
        ...


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
    """The outputs of a search, best first.

    ids [B, K, T] are padded with PAD and hold EOS where `finished` [B, K]; `lengths` [B, K] count
    it; `scores` [B, K]. Finished hypotheses come before those that hit the limit. Where there are
    fewer than K at all, the rest have length 0 and score -inf.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    lengths: tf.Tensor
    finished: tf.Tensor


class Steps(NamedTuple):
    """What a search did at each time step, [B, T, ...]: the best extensions of the beams, and which
    of them it kept.

    `alive` are the places of the next beams among the M extensions. `finished` are the places of
    the K best finished hypotheses: below K among those before the step, K + m for extension m,
    which ended; -1 where there are fewer.
    """

    scores: tf.Tensor  # float32 [B, T, M] log-probabilities
    ids: tf.Tensor  # int32 [B, T, M]
    parents: tf.Tensor  # int32 [B, T, M] beams
    alive: tf.Tensor  # int32 [B, T, N]
    finished: tf.Tensor  # int32 [B, T, K]


class Recorder:
    """Keeps what the search of a single sentence does, for whoever wants to look at it.

    After `search` it has `steps`, without the sentences' axis, and `max_length`, the length limit.
    """

    steps: Steps
    max_length: tf.Tensor


class Sentences(NamedTuple):
    """What is given for each sentence that is still in the batch."""

    rows: tf.Tensor  # [B] its place in the whole batch
    max_lengths: tf.Tensor  # [B]
    prefix_ids: tf.Tensor  # [B, P + 1], PAD where the search is free
    uniforms: tf.Tensor  # [B, longest output] random numbers for sampling


class Beams(NamedTuple):
    """The search of each sentence: alive hypotheses, finished ones, and the inputs of the slots."""

    scores: tf.Tensor  # [B, N] log-probabilities of the alive ones, best first
    ids: tf.Tensor  # [B, N] their last tokens
    lengths: tf.Tensor  # [B] their number of tokens
    ancestry: tf.Tensor  # [B, N, T]
    grammar: Any  # the state of the grammar, () without one
    slot_ids: tf.Tensor  # [B, T, N] the token that was the input of each slot
    finished_scores: tf.Tensor  # [B, K] with length penalty, best first
    finished_lengths: tf.Tensor  # [B, K]
    finished_ancestry: tf.Tensor  # [B, K, T]
    active: tf.Tensor  # [B] bool, not done
    steps: Steps | tuple[()] = ()  # those so far, if they are recorded


class _Settings(NamedTuple):
    """What is the same for all sentences and steps; see `search`."""

    decoder: Decoder
    options: decode_options.DecodeOptions
    emittable: candidates.EmittableIds
    grammar: Grammar | None
    has_prefix: bool
    num_wanted: tf.Tensor | None = None  # of the K: the others need not be final

    @property
    def num_beams(self) -> int:
        """N."""
        return num_beams(self.options)

    @property
    def num_candidates(self) -> int:
        """M."""
        return 2 * self.num_beams if self.num_beams > 1 else 1

    @property
    def num_kept(self) -> int:
        """K; to stop early, N, of which `search` returns the best K."""
        if self.options.sampling:
            return 1
        stops_early = self.options.early_stop != "false"
        return self.num_beams if stops_early else self.options.return_beams


def num_beams(options: decode_options.DecodeOptions) -> int:
    """Return how many beams a sentence has."""
    return 1 if options.sampling else options.beam_size


def length_penalty(lengths: tf.Tensor, options: decode_options.DecodeOptions) -> tf.Tensor:
    """Return ((5 + n) / 6)^alpha or n^alpha, float32 of the shape of lengths."""
    lengths = tf.cast(lengths, tf.float32)
    base = lengths if options.length_penalty == "power" else (5.0 + lengths) / 6.0
    return tf.pow(base, options.alpha)


def search(
    decoder: Decoder,
    initial_state: Any,
    options: decode_options.DecodeOptions,
    *,
    emittable: candidates.EmittableIds,
    max_lengths: tf.Tensor,
    prefix_ids: tf.Tensor | None = None,
    uniforms: tf.Tensor | None = None,
    grammar: Grammar | None = None,
    grammar_state: Any = (),
    recorder: Recorder | None = None,
) -> Hypotheses:
    """Return the best outputs of each sentence, or one drawn at random if options.sampling.

    Args:
      decoder: the model.
      initial_state: of the decoder at the first step.
      options: how to search: beam_size (N), return_beams (K), alpha, strict_ends, min_length; if
        sampling, temperature, top_k and top_p of the one beam.
      emittable: which columns of the softmax may be emitted; the others take part in it only.
      max_lengths: int32 [B], the most tokens of each output, EOS included; at least 1 counts.
      prefix_ids: int32 [B, P], tokens that the outputs begin with, padded with PAD.
      uniforms: float32 [B, max(max_lengths)], the random numbers from 0 to 1 to sample with.
      grammar: what outputs must obey; sampling, min_length and prefix_ids do not go with it.
      grammar_state: its state [B, 1, ...] at the first step.
      recorder: gets the steps of the search of one sentence; sampling does not go with it.
    """
    if options.sampling and uniforms is None:
        raise ValueError("sampling needs uniforms")
    if grammar and (options.sampling or options.min_length > 1 or prefix_ids is not None):
        raise ValueError("a grammar does not go with sampling, min_length or prefix_ids")
    settings = _Settings(decoder, options, emittable, grammar, prefix_ids is not None)
    sentences = _sentences(max_lengths, prefix_ids, uniforms)
    batch_size = tf.shape(max_lengths)[0]
    results = _no_results(batch_size, settings)
    beams = _initial(batch_size, grammar_state, settings)
    if recorder:
        beams = beams._replace(steps=_no_steps(batch_size, settings))
    growing = (results, beams, initial_state)
    grown = _grow(*growing, tf.constant(SEGMENT), decoder)
    num_steps, _, results, beams, _ = tf.while_loop(
        lambda position, sentences, results, beams, state: tf.reduce_any(beams.active),
        functools.partial(_run_segment, settings=settings),
        (tf.constant(0), sentences, *growing),
        shape_invariants=(
            tf.TensorShape([]),
            _shape_invariants(sentences, sentences),
            *_shape_invariants(growing, grown),
        ),
        parallel_iterations=1,
    )
    if recorder:
        recorder.steps = Steps(*(x[0, :num_steps] for x in beams.steps))
        recorder.max_length = sentences.max_lengths[0]
    results = _returned(results, options)
    return results._replace(ids=results.ids[:, :, : tf.reduce_max(results.lengths)])


def search_in_room(
    decoder: StaticDecoder,
    initial_state: Any,
    options: decode_options.DecodeOptions,
    *,
    room: int,
    emittable: candidates.EmittableIds,
    max_lengths: tf.Tensor,
    prefix_ids: tf.Tensor | None = None,
    num_wanted: tf.Tensor | None = None,
) -> tuple[Hypotheses, tf.Tensor]:
    """Search with room for T = `room` tokens from the start, so that all sizes are static.

    The steps are those of `search`. Returns the best outputs and [B], whether the room was enough:
    if not, the search was cut off before its end, and needs more room. `max_lengths` may exceed the
    room. A search ends when the best `num_wanted` outputs are certain (a scalar; default: all).
    Other arguments are as for `search`; all have static shapes.
    """
    settings = _Settings(decoder, options, emittable, None, prefix_ids is not None, num_wanted)
    sentences = _sentences(max_lengths, prefix_ids, None)
    batch_size = max_lengths.shape[0]
    no_times = tf.zeros([batch_size, settings.num_beams, 0], tf.int32)
    state = decoder.grow(initial_state, no_times, tf.constant(room))

    def step(position, beams, caches):
        now = decoder.with_caches(state, caches)
        after, new_state = _step(position, beams, now, sentences, settings)
        return position + 1, _freeze_done(after, beams), decoder.caches_of(new_state)

    # Only what a step changes is a loop variable: LiteRT copies those at every step.
    _, beams, _ = tf.while_loop(
        lambda position, beams, _: tf.reduce_any(beams.active) & (position < room),
        step,
        (tf.constant(0), _initial(batch_size, (), settings, room), decoder.caches_of(state)),
        parallel_iterations=1,
    )
    return _returned(_best_hypotheses(beams, settings), options), ~beams.active


def _sentences(
    max_lengths: tf.Tensor, prefix_ids: tf.Tensor | None, uniforms: tf.Tensor | None
) -> Sentences:
    batch_size = max_lengths.shape[0] or tf.shape(max_lengths)[0]
    if prefix_ids is None:
        prefix_ids = tf.zeros([batch_size, 0], tf.int32)
    return Sentences(
        rows=tf.range(batch_size),
        max_lengths=tf.maximum(max_lengths, 1),
        prefix_ids=tf.pad(prefix_ids, [[0, 0], [0, 1]]),
        uniforms=tf.zeros([batch_size, 0]) if uniforms is None else uniforms,
    )


def _returned(results: Hypotheses, options: decode_options.DecodeOptions) -> Hypotheses:
    """Return those that were asked for of the K that were kept."""
    num_returned = 1 if options.sampling else options.return_beams
    return Hypotheses(*(x[:, :num_returned] for x in results))


def _no_results(batch_size, settings: _Settings) -> Hypotheses:
    """Return no results yet, without room for any time."""
    num_kept = settings.num_kept
    return Hypotheses(
        ids=tf.zeros([batch_size, num_kept, 0], tf.int32),
        scores=tf.zeros([batch_size, num_kept]),
        lengths=tf.zeros([batch_size, num_kept], tf.int32),
        finished=tf.zeros([batch_size, num_kept], tf.bool),
    )


def _initial(batch_size, grammar_state, settings: _Settings, num_times: int = 0) -> Beams:
    """Return one empty hypothesis a sentence, with room for so many times.

    It is the first beam; the others do not exist yet.
    """
    num_beams, num_kept = settings.num_beams, settings.num_kept
    return Beams(
        scores=tf.tile([[0.0] + [candidates.NEVER] * (num_beams - 1)], [batch_size, 1]),
        ids=tf.zeros([batch_size, num_beams], tf.int32),
        lengths=tf.zeros([batch_size], tf.int32),
        ancestry=tf.fill([batch_size, num_beams, num_times], -1),
        grammar=tf.nest.map_structure(lambda x: tf.repeat(x, num_beams, axis=1), grammar_state),
        slot_ids=tf.zeros([batch_size, num_times, num_beams], tf.int32),
        finished_scores=tf.fill([batch_size, num_kept], candidates.NEVER),
        finished_lengths=tf.zeros([batch_size, num_kept], tf.int32),
        finished_ancestry=tf.fill([batch_size, num_kept, num_times], -1),
        active=tf.ones([batch_size], tf.bool),
    )


def _no_steps(batch_size, settings: _Settings) -> Steps:
    """Return a record without room for any time."""
    extensions = [settings.num_candidates] * 3
    widths = Steps(*extensions, alive=settings.num_beams, finished=settings.num_kept)
    steps = Steps(*(tf.zeros([batch_size, 0, width], tf.int32) for width in widths))
    return steps._replace(scores=tf.cast(steps.scores, tf.float32))


def _grow(results: Hypotheses, beams: Beams, state: Any, num_steps: tf.Tensor, decoder: Decoder):
    """Return all that has an axis of times with num_steps more of them."""
    at_end, of_slots = [[0, 0], [0, 0], [0, num_steps]], [[0, 0], [0, num_steps], [0, 0]]
    return (
        results._replace(ids=tf.pad(results.ids, at_end)),
        beams._replace(
            ancestry=tf.pad(beams.ancestry, at_end, constant_values=-1),
            slot_ids=tf.pad(beams.slot_ids, of_slots),
            finished_ancestry=tf.pad(beams.finished_ancestry, at_end, constant_values=-1),
            steps=tf.nest.map_structure(lambda x: tf.pad(x, of_slots), beams.steps),
        ),
        decoder.grow(state, beams.ancestry, num_steps),
    )


def _run_segment(
    position, sentences: Sentences, results, beams: Beams, state, *, settings: _Settings
):
    """Run steps until the allotted times are over or enough sentences are done; drop these."""
    num_steps = tf.where(tf.size(sentences.rows) < _FEW, LONG_SEGMENT, SEGMENT)
    results, beams, state = tf.cond(
        position < tf.shape(beams.ancestry)[2],
        lambda: (results, beams, state),
        lambda: _grow(results, beams, state, num_steps, settings.decoder),
    )
    num_times = tf.shape(beams.ancestry)[2]
    three_quarters = tf.size(sentences.rows) * 3 // 4

    def any_step_left(position, beams, _):
        num_active = tf.math.count_nonzero(beams.active, dtype=tf.int32)
        return (position < num_times) & (num_active > three_quarters)

    def step(position, beams, state):
        after, new_state = _step(position, beams, state, sentences, settings)
        _keep_batch_size((after, new_state), (beams, state))
        return position + 1, _freeze_done(after, beams), new_state

    position, beams, state = tf.while_loop(
        any_step_left, step, (position, beams, state), parallel_iterations=1
    )
    results = _record(results, sentences.rows, _best_hypotheses(beams, settings))
    sentences, beams, state = _drop_done(sentences, beams, state)
    return position, sentences, results, beams, state


def _step(position, beams: Beams, state, sentences: Sentences, settings: _Settings):
    """Run one time step for all beams; return the beams and the state after it."""
    beams = _enter_slots(beams, position)
    logits, state = settings.decoder.step(beams.ids, position, beams.ancestry, state)
    extensions = candidates.extend(
        logits,
        beams.scores,
        settings.num_candidates,
        rules=_rules(position, beams, sentences, settings),
        emittable=settings.emittable,
        options=settings.options,
    )
    after, alive = _next_alive(beams, extensions, settings)
    after, finished = _next_finished(beams, after, extensions, position, settings)
    after = after._replace(lengths=tf.fill(tf.shape(beams.lengths), position + 1))
    if beams.steps:
        finished = tf.where(_exists(after.finished_scores), finished, -1)
        step = Steps(*extensions, alive=alive, finished=finished)
        after = after._replace(steps=_with_step(beams.steps, step, position))
    return after._replace(active=_should_continue(after, sentences, settings)), state


def _enter_slots(beams: Beams, position: tf.Tensor) -> Beams:
    """Let beam n be in slot (position, n), with its last token as the input there."""
    is_present = tf.range(tf.shape(beams.ancestry)[2]) == position
    own_slots = tf.range(beams.ids.shape[1])[None, :, None]
    return beams._replace(
        ancestry=tf.where(is_present, own_slots, beams.ancestry),
        slot_ids=tf.where(is_present[:, None], beams.ids[:, None, :], beams.slot_ids),
    )


def _rules(position, beams: Beams, sentences: Sentences, settings: _Settings) -> candidates.Rules:
    """Return what the tokens of this step must obey."""
    options, grammar = settings.options, settings.grammar
    if grammar:
        allowed = grammar.allowed(beams.grammar, sentences.max_lengths - position - 1)
        return candidates.Rules(grammar_ids=grammar.ids, grammar_allows=allowed)
    may_end = uniforms = forced_ids = banned_ids = None
    if options.min_length > 1:
        may_end = position + 1 >= options.min_length
    if options.sampling:
        uniforms = tf.gather(sentences.uniforms, position, axis=1)
    if settings.has_prefix:
        # The last column of the prefix is PAD for all: free.
        last = tf.shape(sentences.prefix_ids)[1] - 1
        forced_ids = tf.gather(sentences.prefix_ids, tf.minimum(position, last), axis=1)
    if options.no_repeat_ngram:
        history = _inputs(beams.slot_ids, beams.ancestry)  # PAD, then a beam's tokens
        banned_ids = _repeating(history, position, options.no_repeat_ngram)
    return candidates.Rules(
        may_end=may_end, uniforms=uniforms, forced_ids=forced_ids, banned_ids=banned_ids
    )


def _inputs(slot_ids: tf.Tensor, ancestry: tf.Tensor) -> tf.Tensor:
    """Return the inputs [B, K, T] of the slots that hypotheses went through, of slot_ids [B, T, N].

    >>> _inputs([[[0, 0], [7, 8], [5, 6]]], [[[0, 1, 0]]])     # T = 3 times, N = 2 slots
    [[[0, 8, 5]]]
    """
    # LiteRT's converter fails on a loop that transposes to gather by both axes.
    num_times, num_beams = tf.shape(slot_ids)[1], slot_ids.shape[2]
    slots = tf.range(num_times) * num_beams + tf.maximum(ancestry, 0)
    return tf.gather(tf.reshape(slot_ids, [-1, num_times * num_beams]), slots, batch_dims=1)


def _repeating(history: tf.Tensor, position: tf.Tensor, size: int) -> tf.Tensor:
    """Return the tokens [B, N, T] that would end a sequence of `size` that the beam has already,
    and PAD in the other places.

    >>> _repeating([[[0, 5, 6, 7, 5, 0]]], position=4, size=2)     # after 5 6 7 5 not 6 again
    [[[0, 0, 6, 0, 0, 0]]]
    """
    times = tf.range(tf.shape(history)[2])
    is_same = (times >= size) & (times <= position)
    for back in range(1, size):
        newest = tf.gather(history, tf.maximum(position - back + 1, 0), axis=2)
        is_same &= tf.roll(history, back, axis=2) == newest[:, :, None]
    return tf.where(is_same, history, vocabularies.PAD_ID)


def _next_alive(
    beams: Beams, extensions: candidates.Candidates, settings: _Settings
) -> tuple[Beams, tf.Tensor]:
    """Return the N best extensions that do not end in EOS as the beams, and their places [B, N]."""
    ends = extensions.ids == settings.emittable.eos_id
    scores = tf.where(ends, 2 * candidates.NEVER, extensions.scores)
    parents, ids = extensions.parents, extensions.ids
    places = tf.zeros_like(ids)  # of the only one
    if scores.shape[1] > settings.num_beams:
        scores, places = tf.math.top_k(scores, settings.num_beams)
        parents, ids = (tf.gather(x, places, batch_dims=1) for x in (parents, ids))
    grammar = beams.grammar
    if settings.grammar:
        grammar = tf.nest.map_structure(lambda x: tf.gather(x, parents, batch_dims=1), grammar)
        grammar = settings.grammar.advance(grammar, ids)
    ancestry = tf.gather(beams.ancestry, parents, batch_dims=1)
    return beams._replace(scores=scores, ids=ids, ancestry=ancestry, grammar=grammar), places


def _next_finished(
    beams: Beams, after: Beams, extensions: candidates.Candidates, position, settings: _Settings
) -> tuple[Beams, tf.Tensor]:
    """Return `after` with the K best of the finished hypotheses of `beams` and of the extensions
    that end in EOS, and their places [B, K] in these two, joined."""
    is_new = (extensions.ids == settings.emittable.eos_id) & _exists(extensions.scores)
    if settings.options.strict_ends:
        is_new &= tf.range(is_new.shape[1]) < settings.num_beams
    new_scores = extensions.scores / length_penalty(position + 1, settings.options)
    new_scores = tf.where(is_new, new_scores, candidates.NEVER)
    new_lengths = tf.fill(tf.shape(extensions.ids), position + 1)
    new_ancestry = tf.gather(beams.ancestry, extensions.parents, batch_dims=1)
    scores, places = tf.math.top_k(
        tf.concat([beams.finished_scores, new_scores], axis=1), settings.num_kept
    )

    def chosen(old, new):
        return tf.gather(tf.concat([old, new], axis=1), places, batch_dims=1)

    after = after._replace(
        finished_scores=scores,
        finished_lengths=chosen(beams.finished_lengths, new_lengths),
        finished_ancestry=chosen(beams.finished_ancestry, new_ancestry),
    )
    return after, places


def _with_step(steps: Steps, step: Steps, position: tf.Tensor) -> Steps:
    """Return the record with a step, [B, ...], at a position."""
    is_present = (tf.range(tf.shape(steps.ids)[1]) == position)[:, None]
    return Steps(*(tf.where(is_present, new[:, None], old) for new, old in zip(step, steps)))


def _should_continue(beams: Beams, sentences: Sentences, settings: _Settings) -> tf.Tensor:
    """Return [B]: below the limit, and an alive hypothesis can still reach the worst finished one;
    to stop early, there are fewer than N of these, or (heuristic) an alive one is better at its
    present length than the worst of these N.

    Log-probabilities only fall, so an alive hypothesis ends with at most its present one over the
    largest penalty that it can still meet: that of the limit, or for alpha < 0 of the next step.
    """
    best_alive = beams.scores[:, 0]
    largest_penalty = tf.maximum(
        length_penalty(sentences.max_lengths, settings.options),
        length_penalty(beams.lengths + 1, settings.options),
    )
    worst = beams.finished_scores[:, -1]
    if settings.num_wanted is not None:
        worst = tf.gather(beams.finished_scores, settings.num_wanted - 1, axis=1)
    can_improve = best_alive / largest_penalty > worst
    if settings.options.early_stop == "heuristic":
        now = best_alive / length_penalty(beams.lengths, settings.options)
        can_improve = now > beams.finished_scores[:, -1]
    if settings.options.early_stop == "true":
        can_improve = ~_exists(beams.finished_scores[:, -1])
    return can_improve & _exists(best_alive) & (beams.lengths < sentences.max_lengths)


def _exists(scores: tf.Tensor) -> tf.Tensor:
    return scores > candidates.NEVER / 2


def _freeze_done(after: Beams, before: Beams) -> Beams:
    """Return `after` for active sentences and `before` for those that were done already."""
    if after.active.shape[0] == 1:  # steps end with this sentence
        return after

    def choose(new, old):
        active = tf.reshape(before.active, [-1] + [1] * (new.shape.rank - 1))
        return tf.where(active, new, old)

    # Of slots nobody asks who is done: no ancestry leads there.
    chosen = tf.nest.map_structure(
        choose, after._replace(slot_ids=()), before._replace(slot_ids=())
    )
    return chosen._replace(slot_ids=after.slot_ids)


def _best_hypotheses(beams: Beams, settings: _Settings) -> Hypotheses:
    """Return the finished hypotheses, then alive ones in the places that are left."""
    alive_exist = _exists(beams.scores)
    alive_lengths = tf.repeat(beams.lengths[:, None], beams.ids.shape[1], axis=1)
    alive_scores = beams.scores / length_penalty(alive_lengths, settings.options)
    alive_scores = tf.where(alive_exist, alive_scores, -float("inf"))
    alive_lengths = tf.where(alive_exist, alive_lengths, 0)
    # Place k is the k-th finished one, or the first alive one after the last of them.
    num_finished = tf.reduce_sum(
        tf.cast(_exists(beams.finished_scores), tf.int32), axis=1, keepdims=True
    )
    places = tf.range(settings.num_kept)[None]
    is_finished = places < num_finished
    places = tf.where(is_finished, places, settings.num_kept + places - num_finished)

    def pick(finished, alive):
        return tf.gather(tf.concat([finished, alive], axis=1), places, batch_dims=1)

    lengths = pick(beams.finished_lengths, alive_lengths)
    eos_ids = tf.fill(tf.shape(beams.finished_lengths), settings.emittable.eos_id)
    ids = _tokens(
        beams.slot_ids,
        ancestry=pick(beams.finished_ancestry, beams.ancestry),
        lengths=lengths,
        last_ids=pick(eos_ids, beams.ids),
    )
    scores = pick(beams.finished_scores, alive_scores)
    return Hypotheses(ids=ids, scores=scores, lengths=lengths, finished=is_finished)


def _tokens(slot_ids, *, ancestry, lengths, last_ids) -> tf.Tensor:
    """Return the tokens [B, K, T] of hypotheses: the inputs of their slots from time 1 on, and the
    last token, which has no slot.

    >>> slot_ids = [[[0, 0], [7, 8], [5, 6]]]       # T = 3 times, N = 2 slots
    >>> _tokens(slot_ids, ancestry=[[[0, 1, 0]]], lengths=[[3]], last_ids=[[1]])
    [[[8, 5, 1]]]
    """
    outputs = tf.roll(_inputs(slot_ids, ancestry), shift=-1, axis=2)
    times, last_times = tf.range(tf.shape(ancestry)[2]), lengths[:, :, None] - 1
    ids = tf.where(times < last_times, outputs, 0)
    return tf.where(times == last_times, last_ids[:, :, None], ids)


def _record(results: Hypotheses, rows: tf.Tensor, hypotheses: Hypotheses) -> Hypotheses:
    """Return results with those of the rows of the whole batch in place of what they had."""
    pairs = zip(results, hypotheses)
    return Hypotheses(*(tf.tensor_scatter_nd_update(old, rows[:, None], new) for old, new in pairs))


def _drop_done(sentences: Sentences, beams: Beams, state: Any):
    """Return the three without sentences that are done; a batch of one stays as it is."""
    everything = (sentences, beams, state)
    if sentences.rows.shape[0] == 1:
        return everything
    kept = tf.where(beams.active)[:, 0]
    return tf.cond(
        tf.reduce_all(beams.active),
        lambda: everything,
        lambda: tf.nest.map_structure(lambda x: tf.gather(x, kept), everything),
    )


def _keep_batch_size(after: Any, before: Any) -> None:
    """Let tensors after a step have the static batch size of those before it."""
    for new, old in zip(tf.nest.flatten(after), tf.nest.flatten(before), strict=True):
        new.set_shape([old.shape[0], *new.shape[1:]])


def _shape_invariants(before: Any, grown: Any) -> Any:
    """Return the shapes that hold at every turn: the batch shrinks, and some axes grow."""

    def shape(old: tf.Tensor, new: tf.Tensor) -> tf.TensorShape:
        sizes = [size if size == later else None for size, later in zip(old.shape, new.shape)]
        return tf.TensorShape([1 if old.shape[0] == 1 else None, *sizes[1:]])

    return tf.nest.map_structure(shape, before, grown)
