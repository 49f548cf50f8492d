"""Blockwise parallel decoding (Stern et al. 2018): greedy decoding in fewer steps.

Heads propose what the next k - 1 tokens might be (see model/parallel_heads). A step feeds them to
the decoder all at once, after the last token that is sure, and so learns what greedy decoding would
have chosen after each. Proposals are accepted as long as each is what it would have chosen; the
token after the last of them is the decoder's own choice. So a step makes 1 to k tokens:

    sure: The   proposed: man walks home        the decoder's choices: man sits there .
    new: man sits                               (k = 4: one of three proposals accepted)

What comes out is greedy decoding's, token for token (where sums of floats decide between two tokens
as good as each other, the last bit may differ, as between batches of different sizes). Two options
accept more, for other outputs: accept_top, accept_distance.

Sentences accept differently many tokens, so each has its own position. The k queries of a step and
their slots in the cache are those that a beam search has for its beams; here a slot is known by the
position of the token that is in it, and a query sees those up to its own. Slots of proposals that
were not accepted are nobody's (-1), and are left behind when caches grow.

Shapes: B sentences still in the batch, k tokens of a block, C slots, D d_model, W columns of the
softmax, P tokens of a prefix.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import beam_search, cached_decoder, candidates, guessing, products
from t2t_lite.decode import options as decode_options
from t2t_lite.model import attention, transformer
from t2t_lite.text import vocabulary as vocabularies

_NOBODYS = -1
# Caches grow by so many steps at once.
_SEGMENT = 8
# One sentence is seldom longer, and growing takes more time than empty slots do.
_LONG_SEGMENT = 16


class Blocks(NamedTuple):
    """Outputs, one of each sentence, and in how many steps [B] they were made."""

    hypotheses: beam_search.Hypotheses
    steps: tf.Tensor


class BlockDecoder:
    """A model with parallel heads, k positions at a time; its state is a cached decoder's.

    Args:
      model: whose heads are at least k - 1.
      options: parallel_heads (k), precision.
      portable: whether its graph is to run on machines that do not multiply 8-bit integers.

    Raises UserError for a model that has no heads, or fewer.
    """

    def __init__(
        self,
        model: transformer.Transformer,
        options: decode_options.DecodeOptions,
        *,
        portable: bool = False,
    ):
        trained, self.block_size = model.hparams.parallel_heads, options.parallel_heads
        if self.block_size > trained:
            has = f"{trained} parallel heads" if trained else "no parallel heads"
            raise errors.UserError(
                f"parallel_heads={self.block_size}: the model has {has}; train them with "
                f"--warm_start_from and --hparams=parallel_heads={self.block_size}"
            )
        self.model = model
        self._cached = cached_decoder.CachedDecoder(model, self.block_size, options.products_dtype)
        is_given = decode_options.needs_integers(options.precision)
        integers = is_given or (not portable and products.has_integers())
        self._guesser = guessing.Guesser(model, self.block_size - 1, integers=integers)

    def encode(self, inputs: tf.Tensor) -> cached_decoder.State:
        """Return the state before the first step of inputs [B, S]."""
        return self._cached.encode(inputs, [self.model.parallel_heads.cross_attention])

    def grow(self, state: cached_decoder.State, num_steps: int) -> cached_decoder.State:
        """Return the state with slots for num_steps more steps."""
        is_used = state.slots != _NOBODYS
        if self.model.hparams.attention_window:
            is_used &= self._is_near(state.slots, tf.reduce_max(state.slots, 1, keepdims=True) + 1)
        shape = [tf.shape(state.slots)[0], num_steps * self.block_size]
        return self._cached.resized(state, is_used, tf.fill(shape, _NOBODYS))

    def step(
        self,
        ids: tf.Tensor,
        lengths: tf.Tensor,
        state: cached_decoder.State,
        *,
        steps_left: tf.Tensor,
    ) -> tuple[tf.Tensor, cached_decoder.State]:
        """Return the decoder's outputs [B, k, D] after each of ids [B, k], and the new state.

        Args:
          ids: the last token that is sure (PAD at the start) and proposals.
          lengths: int32 [B], how many tokens are sure: the position of the first query.
          state: before this step.
          steps_left: for how many steps, this one among them, there is still room.
        """
        positions = lengths[:, None] + tf.range(self.block_size)
        slots = cached_decoder.written(state.slots, positions, steps_left)
        outputs, state = self._cached.outputs(
            ids,
            positions,
            state._replace(slots=slots),
            mask=self._mask(slots, positions),
            distances=slots[:, None] - positions[:, :, None],
            steps_left=steps_left,
        )
        return tf.reshape(outputs, [-1, self.block_size, outputs.shape[-1]]), state

    def forget(self, state: cached_decoder.State, lengths: tf.Tensor) -> cached_decoder.State:
        """Return the state without what it has of positions from lengths [B] on."""
        slots = tf.where(state.slots < lengths[:, None], state.slots, _NOBODYS)
        return state._replace(slots=slots)

    def logits(self, outputs: tf.Tensor) -> candidates.Logits:
        """Return the logits [B k, W] of outputs [B, k, D], each as of a sentence of its own."""
        logits = self._cached.logits(tf.reshape(outputs, [-1, outputs.shape[-1]]))
        if isinstance(logits, candidates.RoundedLogits):
            states = tf.reshape(logits.states, [-1, 1, logits.states.shape[-1]])
            logits = logits._replace(states=states)
        return logits

    def first_proposals(self, state: cached_decoder.State) -> tf.Tensor:
        """Return int32 [B, k - 1], what outputs may begin with."""
        return self._guesser.first(self._own_memory(state), state.memory_mask)

    def proposals(
        self, outputs: tf.Tensor, ids: tf.Tensor, state: cached_decoder.State
    ) -> tf.Tensor:
        """Return int32 [B, k - 1], what may follow ids [B], which came of outputs [B, D]."""
        return self._guesser(outputs, ids, self._own_memory(state), state.memory_mask)

    def _own_memory(self, state: cached_decoder.State) -> cached_decoder.KeysValues:
        own = state.memories[-1]
        assert isinstance(own, cached_decoder.KeysValues)  # it is never folded
        return own

    def _mask(self, slots: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Return [B, 1, k, C] that hides from positions [B, k] what comes after, in slots [B, C],
        what is nobody's, and what is too far away."""
        slots, positions = slots[:, None], positions[:, :, None]
        is_visible = (slots != _NOBODYS) & (slots <= positions)
        if self.model.hparams.attention_window:
            is_visible &= self._is_near(slots, positions)
        return tf.where(is_visible, 0.0, attention.MASKED)[:, None]

    def _is_near(self, slots: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        return positions - slots <= self.model.hparams.attention_window


class _Sentences(NamedTuple):
    """What there is of each sentence still in the batch."""

    rows: tf.Tensor  # [B] its place in the whole batch
    max_lengths: tf.Tensor  # [B]
    prefix_ids: tf.Tensor  # [B, P + 1], PAD where decoding is free
    ids: tf.Tensor  # [B, k] the last token, and what may follow it
    lengths: tf.Tensor  # [B] tokens that are sure
    scores: tf.Tensor  # [B] log-probabilities
    steps: tf.Tensor  # [B]
    is_active: tf.Tensor  # [B] bool, not done
    state: cached_decoder.State

    @property
    def has_prefix(self) -> bool:
        """Whether any output may have one."""
        return self.prefix_ids.shape[1] != 1


class _Results(NamedTuple):
    """What is known of the whole batch."""

    ids: tf.Tensor  # [B, longest output + k]; what is past a length means nothing
    lengths: tf.Tensor
    scores: tf.Tensor
    steps: tf.Tensor


def search(
    decoder: BlockDecoder,
    inputs: tf.Tensor,
    options: decode_options.DecodeOptions,
    *,
    emittable: candidates.EmittableIds,
    max_lengths: tf.Tensor,
    prefix_ids: tf.Tensor | None = None,
) -> Blocks:
    """Return greedy decoding's output of each of inputs [B, S]; arguments as of beam_search.search.

    Its alpha is that of the scores; its accept_top and accept_distance say what is accepted.
    """
    batch_size, block_size = tf.shape(inputs)[0], decoder.block_size
    max_lengths = tf.maximum(max_lengths, 1)
    zeros = tf.zeros([batch_size], tf.int32)
    if prefix_ids is None:
        prefix_ids = tf.zeros([batch_size, 0], tf.int32)
    state = decoder.encode(inputs)
    sentences = _Sentences(
        rows=tf.range(batch_size),
        max_lengths=max_lengths,
        prefix_ids=tf.pad(prefix_ids, [[0, 0], [0, 1]]),
        ids=zeros[:, None],
        lengths=zeros,
        scores=tf.zeros([batch_size]),
        steps=zeros,
        is_active=tf.ones([batch_size], tf.bool),
        state=state,
    )
    sentences = _followed_by(sentences, decoder.first_proposals(state))
    is_one = inputs.shape[0] == 1
    if is_one:
        _keep_batch_of_one(sentences)
    segment = _LONG_SEGMENT if is_one else _SEGMENT
    results = _Results(
        ids=tf.zeros([batch_size, tf.reduce_max(max_lengths) + block_size], tf.int32),
        lengths=zeros,
        scores=sentences.scores,
        steps=zeros,
    )

    def run_segment(sentences: _Sentences, results: _Results):
        sentences = sentences._replace(state=decoder.grow(sentences.state, segment))
        three_quarters = tf.size(sentences.rows) * 3 // 4

        def is_worth_it(steps_left, sentences, _):
            num_active = tf.math.count_nonzero(sentences.is_active, dtype=tf.int32)
            return (steps_left > 0) & (num_active > three_quarters)

        def step(steps_left, sentences, results):
            after = _step(decoder, sentences, results, steps_left, options, emittable)
            if is_one:
                _keep_batch_of_one(after)
            return steps_left - 1, *after

        _, sentences, results = tf.while_loop(
            is_worth_it, step, (tf.constant(segment), sentences, results), parallel_iterations=1
        )
        results = _record(results, sentences)
        if not is_one:
            sentences = beam_search.only_active(sentences, sentences.is_active)
        return sentences, results

    _, results = tf.while_loop(
        lambda sentences, _: tf.reduce_any(sentences.is_active),
        run_segment,
        (sentences, results),
        shape_invariants=(_any_batch(sentences), _any_batch(results)),
        parallel_iterations=1,
    )
    return _blocks(results, options, emittable)


def _step(
    decoder: BlockDecoder,
    sentences: _Sentences,
    results: _Results,
    steps_left: tf.Tensor,
    options: decode_options.DecodeOptions,
    emittable: candidates.EmittableIds,
) -> tuple[_Sentences, _Results]:
    """Make the next tokens of each sentence that is active, and proposals of what follows them."""
    outputs, state = decoder.step(
        sentences.ids, sentences.lengths, sentences.state, steps_left=steps_left
    )
    logits = decoder.logits(outputs)
    positions_Bk = sentences.lengths[:, None] + tf.range(decoder.block_size)
    rules = candidates.Rules()
    if sentences.has_prefix:
        rules = candidates.Rules(forced_ids=tf.reshape(_forced(sentences, positions_Bk), [-1]))
    # Zeros. tf.zeros would be moved out of both loops, and keep the size of the whole batch.
    no_scores = tf.cast(tf.reshape(positions_Bk, [-1, 1]) < 0, tf.float32)
    chosen = candidates.extend(
        logits,
        no_scores,
        1,
        rules=rules,
        emittable=emittable,
        options=options,
    )
    ids_Bk, scores_Bk = (
        tf.reshape(x, [-1, decoder.block_size]) for x in (chosen.ids, chosen.scores)
    )
    if options.accept_top > 1 or options.accept_distance:
        ids_Bk, scores_Bk = _approximate(
            ids_Bk, scores_Bk, sentences, logits=logits, options=options, emittable=emittable
        )
    num_new = _num_accepted(ids_Bk, sentences, emittable)
    num_new = tf.where(sentences.is_active, num_new, 0)
    last = tf.maximum(num_new - 1, 0)
    last_ids = tf.gather(ids_Bk, last, batch_dims=1)
    lengths = sentences.lengths + num_new
    is_new_Bk = tf.range(decoder.block_size) < num_new[:, None]
    proposals = decoder.proposals(tf.gather(outputs, last, batch_dims=1), last_ids, state)
    after = sentences._replace(
        ids=last_ids[:, None],
        lengths=lengths,
        scores=sentences.scores + tf.reduce_sum(tf.where(is_new_Bk, scores_Bk, 0.0), axis=1),
        steps=sentences.steps + tf.cast(sentences.is_active, tf.int32),
        is_active=sentences.is_active
        & (last_ids != emittable.eos_id)
        & (lengths < sentences.max_lengths),
        state=decoder.forget(state, lengths),
    )
    rows_Bk = tf.broadcast_to(sentences.rows[:, None], tf.shape(positions_Bk))
    places = tf.stack([rows_Bk, positions_Bk], axis=2)
    # What was not accepted is written over, or stays behind the end.
    results = results._replace(ids=tf.tensor_scatter_nd_update(results.ids, places, ids_Bk))
    return _followed_by(after, proposals), results


def _followed_by(sentences: _Sentences, proposals: tf.Tensor) -> _Sentences:
    """Return the sentences, whose ids are the last tokens [B, 1], with proposals [B, k - 1] of what
    follows; what a prefix says is known."""
    if sentences.has_prefix:
        forced = _forced(sentences, sentences.lengths[:, None] + tf.range(proposals.shape[1]))
        proposals = tf.where(forced != vocabularies.PAD_ID, forced, proposals)
    return sentences._replace(ids=tf.concat([sentences.ids, proposals], axis=1))


def _num_accepted(
    ids: tf.Tensor, sentences: _Sentences, emittable: candidates.EmittableIds
) -> tf.Tensor:
    """Return [B] how many of the choices ids [B, k] stand: the first, and each further one whose
    input, a proposal, is the choice before it, until a sentence ends or is as long as may be.

    >>> proposals, ids = [["man", "walks", "home"]], [["man", "sits", "there", "."]]
    2
    """
    places = tf.range(1, ids.shape[1])
    follows = (
        (sentences.ids[:, 1:] == ids[:, :-1])
        & (ids[:, :-1] != emittable.eos_id)
        & (sentences.lengths[:, None] + places < sentences.max_lengths[:, None])
    )
    # The place of the first that does not follow, k - 1 where all do.
    stops = tf.pad(tf.cast(~follows, tf.int32), [[0, 0], [0, 1]], constant_values=1)
    return 1 + tf.argmax(stops, axis=1, output_type=tf.int32)


def _approximate(
    ids: tf.Tensor,
    scores: tf.Tensor,
    sentences: _Sentences,
    *,
    logits: candidates.Logits,
    options: decode_options.DecodeOptions,
    emittable: candidates.EmittableIds,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return ids and scores [B, k] with a proposal in place of a choice that is hardly better."""
    values = logits.values if isinstance(logits, candidates.RoundedLogits) else logits
    block_size = ids.shape[1]
    values = tf.cast(tf.reshape(values, [-1, block_size, values.shape[-1]]), tf.float32)[:, :-1]
    choices, proposals = ids[:, :-1], sentences.ids[:, 1:]
    of_proposals = tf.gather(values, proposals, batch_dims=2)
    distances = tf.gather(values, choices, batch_dims=2) - of_proposals
    ranks = tf.math.count_nonzero(values > of_proposals[:, :, None], axis=2, dtype=tf.int32)
    is_close = ranks < options.accept_top
    if options.accept_distance:
        is_close |= distances <= options.accept_distance
    is_close &= tf.gather(emittable.may_emit(values.shape[2]), proposals)
    if sentences.has_prefix:
        positions = sentences.lengths[:, None] + tf.range(block_size - 1)
        is_close &= _forced(sentences, positions) == vocabularies.PAD_ID
    unchanged = ids[:, -1:], scores[:, -1:]
    return (
        tf.concat([tf.where(is_close, proposals, choices), unchanged[0]], axis=1),
        tf.concat([scores[:, :-1] - tf.where(is_close, distances, 0.0), unchanged[1]], axis=1),
    )


def _forced(sentences: _Sentences, positions: tf.Tensor) -> tf.Tensor:
    """Return the prefix's tokens at positions [B, any], PAD after its end."""
    last = tf.shape(sentences.prefix_ids)[1] - 1  # PAD for all
    return tf.gather(sentences.prefix_ids, tf.minimum(positions, last), batch_dims=1)


def _record(results: _Results, sentences: _Sentences) -> _Results:
    """Return results with what is known of the sentences by now."""
    names = ("lengths", "scores", "steps")
    rows = sentences.rows[:, None]
    new = {
        name: tf.tensor_scatter_nd_update(getattr(results, name), rows, getattr(sentences, name))
        for name in names
    }
    return results._replace(**new)


def _any_batch(structure: Any) -> Any:
    """Return the shapes that hold at every turn: the batch shrinks, if it is not of one sentence,
    and what is empty grows."""

    def shape(x: tf.Tensor) -> tf.TensorShape:
        batch_size = 1 if x.shape[0] == 1 else None
        return tf.TensorShape([batch_size, *[size or None for size in x.shape[1:]]])

    return tf.nest.map_structure(shape, structure)


def _keep_batch_of_one(structure: Any) -> None:
    """Let tensors know that they are of one sentence."""
    for x in tf.nest.flatten(structure):
        x.set_shape([1, *x.shape[1:]])


def _blocks(
    results: _Results, options: decode_options.DecodeOptions, emittable: candidates.EmittableIds
) -> Blocks:
    """Return the results as hypotheses, one of each sentence."""
    lengths = results.lengths
    positions = tf.range(tf.reduce_max(tf.concat([lengths, [0]], 0)))
    ids = results.ids[:, : tf.size(positions)]
    ids = tf.where(positions < lengths[:, None], ids, vocabularies.PAD_ID)
    scores = results.scores / beam_search.length_penalty(lengths, options)
    hypotheses = beam_search.Hypotheses(
        ids=ids[:, None],
        scores=scores[:, None],
        lengths=lengths[:, None],
        finished=tf.reduce_any(ids == emittable.eos_id, axis=1)[:, None],
    )
    return Blocks(hypotheses, results.steps)
