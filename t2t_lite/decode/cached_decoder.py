"""The decoder one time step at a time, for the N beams of every sentence at once.

Equal to `Transformer.decode` and `Transformer.logits` up to rounding, but a step computes only its
own position: keys and values of earlier ones are kept in caches, those of the source are computed
once.

A cache is never reordered: it holds slots, and `ancestry` tells which are a beam's own, as
beam_search.Decoder has it. Every beam attends over all slots of its sentence, and those that are
not its own are hidden by a mask, made once a step for all layers. Beams soon share most of their
past, so most slots soon belong to no beam: whenever caches grow, these are left behind.

Matmuls with weights may be in bfloat16 or in 8-bit integers where all else is in float32. Rounded
logits would change outputs most, so those of the best candidates are then computed again.

Shapes: B sentences, N beams, T time steps so far allotted, C slots that the caches hold, S source
length, D d_model, H heads, K size of one head, V rows of the embedding, W columns of the softmax.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite.decode import beam_search, candidates, matmuls, prepared_weights
from t2t_lite.decode import options as decode_options
from t2t_lite.model import attention, linear, next_word, transformer


class KeysValues(NamedTuple):
    """Keys [B, H, C, d_k] and values [B, H, C, d_v] of slots, or of S source positions."""

    keys: tf.Tensor
    values: tf.Tensor


class Words(NamedTuple):
    """The source's words, and the slots whose token moves on to the next word."""

    numbers: tf.Tensor  # int32 [B, S]
    passes: tf.Tensor  # bool [B, C]


class State(NamedTuple):
    """The source and the earlier steps, as a step needs them; axis 0 are the sentences.

    `slots` [B, C] are those that the caches hold, slot (t, n) as t * N + n; the last ones are all
    slots of the newest times. `caches` are their keys and values in each layer, `memories` those of
    the source; `memory_bias` [B, 1, 1, S] hides padding. `words` is empty unless the model has a
    bias for the next word.
    """

    slots: tf.Tensor
    caches: tuple[KeysValues, ...]
    memories: tuple[KeysValues | prepared_weights.FoldedMemory, ...]
    memory_bias: tf.Tensor
    words: Words | tuple[()] = ()


class CachedDecoder:
    """A model as a beam_search.Decoder; `encode` returns the initial state.

    The constructor casts, scales and transposes weights. Inside the tf.function that searches,
    before its loop, it follows a model that is still being trained; outside, it does so once.

    Args:
      model: its compute type is that of the encoder and of attention.
      beam_size: N.
      matmul_dtype: of the decoder's matmuls with weights, int8 among them (see `matmuls`); default:
        that of the model.
      may_round: whether logits may be RoundedLogits; else they are float32.
    """

    folds_memory = True  # of a batch that is one sentence

    def __init__(
        self,
        model: transformer.Transformer,
        beam_size: int,
        matmul_dtype: str | None = None,
        *,
        may_round: bool = True,
    ):
        self.model = model
        self.beam_size = beam_size
        self.dtype = tf.as_dtype(model.compute_dtype)
        dtype = tf.as_dtype(matmul_dtype or model.compute_dtype)
        hparams = model.hparams
        self.hparams = hparams
        self.embedding_VD = model.logits.matrix()
        softmax_dtype = dtype if may_round else tf.float32
        self.logits_are_rounded = softmax_dtype != tf.float32
        self.layers = [
            prepared_weights.LayerWeights.of(layer, dtype) for layer in model.decoder_layers
        ]
        self.folded = [
            prepared_weights.FoldedAttention(layer.cross_attention)
            for layer in (model.decoder_layers if self.folds_memory else ())
        ]
        self.has_integers = dtype == tf.int8
        self.project = (
            prepared_weights.encoder_projection(model) if self.has_integers else linear.matmul
        )
        self.final_norm = prepared_weights.Norm.of(model.decoder[-1]) if hparams.pre_norm else None
        # What the softmax multiplies comes from this norm.
        last_norm = self.final_norm or self.layers[-1].norms[-1]
        self.softmax = matmuls.matmul(
            *prepared_weights.softmax_weights(self.embedding_VD, hparams.d_model),
            dtype=softmax_dtype,
            bounds=last_norm.bounds(),
        )
        self.words = model.words if isinstance(model, next_word.NextWordTransformer) else None

    def encode(self, inputs: tf.Tensor) -> State:
        """Return the state before the first step: no slots, and the memory of inputs [B, S].

        If B is statically 1, the memory is folded, unless attention is additive: see
        `translator.is_short_sentence`.
        """
        if self.has_integers:
            with tf.control_dependencies([matmuls.assert_integers()]):
                inputs = tf.identity(inputs)
        with linear.project.replaced_by(self.project):
            encoded = self.model.encode(inputs)
            memories = [
                KeysValues(*layer.cross_attention.keys_values(encoded.states))
                for layer in self.model.decoder_layers
            ]
        hparams, batch_size = self.hparams, tf.shape(inputs)[0]

        def empty(size):
            return tf.zeros([batch_size, hparams.num_heads, 0, size], self.dtype)

        mask, words = encoded.mask, ()
        if self.words:
            words = Words(encoded.mask.numbers, passes=tf.zeros([batch_size, 0], tf.bool))
            mask = encoded.mask.mask
        memory_bias = attention.mask_bias(mask)
        can_fold = inputs.shape[0] == 1 and hparams.attention_function != "additive"
        if self.folds_memory and can_fold:
            pairs = zip(self.folded, memories)
            memories = [folded.memory(*memory, memory_bias) for folded, memory in pairs]
        return State(
            slots=tf.zeros([batch_size, 0], tf.int32),
            caches=tuple(KeysValues(empty(hparams.d_k), empty(hparams.d_v)) for _ in memories),
            memories=tuple(memories),
            memory_bias=memory_bias,
            words=words,
        )

    def grow(self, state: State, ancestry: tf.Tensor, num_steps: tf.Tensor) -> State:
        """See beam_search.Decoder. Slots that no beam went through are left out.

        Every sentence keeps as many slots as the one that uses most, rounded up to a multiple of N,
        which `_write` needs.
        """
        num_old = tf.shape(ancestry)[2] * self.beam_size
        num_new = num_steps * self.beam_size
        is_used = tf.reduce_any(is_own(state.slots, ancestry, self.beam_size), axis=1)
        if self.hparams.attention_window:
            is_used &= self._is_near(state.slots, tf.shape(ancestry)[2])
        kept = _columns(is_used, multiple=self.beam_size)
        new_slots = tf.repeat(num_old + tf.range(num_new)[None], tf.shape(ancestry)[0], axis=0)
        slots = tf.concat([tf.gather(state.slots, kept, batch_dims=1), new_slots], axis=1)
        columns = tf.repeat(kept[:, None], self.hparams.num_heads, axis=1)
        # The contents of a new slot do not matter before it is written: no ancestry leads there.
        caches = tf.nest.map_structure(
            lambda cache: tf.pad(
                tf.gather(cache, columns, batch_dims=2), [[0, 0], [0, 0], [0, num_new], [0, 0]]
            ),
            state.caches,
        )
        words = state.words
        if words:
            passes = tf.gather(words.passes, kept, batch_dims=1)
            words = words._replace(passes=tf.pad(passes, [[0, 0], [0, num_new]]))
        return state._replace(slots=slots, caches=caches, words=words)

    def step(
        self, ids: tf.Tensor, position: tf.Tensor, ancestry: tf.Tensor, state: State
    ) -> tuple[candidates.Logits, State]:
        """See beam_search.Decoder."""
        # The newest slots still have room for so many steps, this one among them.
        steps_left = tf.shape(ancestry)[2] - position
        place = self._place(state.slots, position, steps_left)
        is_visible = self._is_visible(state.slots, ancestry, position)
        biases = self._self_biases(is_visible, state.slots // self.beam_size - position)
        state, memory_biases = self._memory_biases(state, ids, is_visible, steps_left)
        x = tf.reshape(self.model.target(ids, position), [-1, self.hparams.d_model])
        caches = []
        for i, cache in enumerate(state.caches):
            x, cache = self._layer(
                x, i, cache, state.memories[i], place, biases[i], memory_biases[i]
            )
            caches.append(cache)
        if self.final_norm:
            x = self.final_norm(x)
        return self.logits(x), state._replace(caches=tuple(caches))

    def _is_visible(self, slots: tf.Tensor, ancestry: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
        """Return bool [B, N, C]: whether slots are a beam's own, and not too far away."""
        is_visible = is_own(slots, ancestry, self.beam_size)
        if self.hparams.attention_window:
            is_visible &= self._is_near(slots, position)[:, None]
        return is_visible

    def _self_biases(self, is_visible: tf.Tensor, distances: tf.Tensor) -> list[tf.Tensor]:
        """Return what each layer adds to the scores [B, H, N, C] of its self-attention, given the
        slots' distances [B, C]."""
        bias = attention.mask_bias(is_visible)
        if not self.hparams.relative_bias:
            return [bias] * len(self.layers)
        return [
            bias + layer.self_attention.distance_bias(distances[:, None])
            for layer in self.model.decoder_layers
        ]

    def _memory_biases(
        self, state: State, ids: tf.Tensor, is_visible: tf.Tensor, steps_left: tf.Tensor
    ) -> tuple[State, list[tf.Tensor]]:
        """Return what each layer adds to the scores [B, H, N, S] of its cross-attention; and the
        state, which has counted the words."""
        if not (self.words and state.words):
            return state, [state.memory_bias] * len(self.layers)
        passes = _written(state.words.passes, self.words.passes(ids), steps_left)
        is_passed = is_visible & passes[:, None]  # [B, N, C]
        passed = tf.math.count_nonzero(is_passed, axis=2, dtype=tf.int32)
        distances = state.words.numbers[:, None] - passed[:, :, None]
        biases = [
            state.memory_bias + layer.cross_attention.distance_bias(distances)
            for layer in self.model.decoder_layers
        ]
        return state._replace(words=state.words._replace(passes=passes)), biases

    def _is_near(self, slots: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
        """Return bool [B, C]: whether restricted self-attention of a position reaches the times of
        slots [B, C]."""
        return position - slots // self.beam_size <= self.hparams.attention_window

    def logits(self, x: tf.Tensor) -> candidates.Logits:
        """Return the logits [B * N, W] of the decoder's outputs x [B * N, D]."""
        logits = self.softmax(x)
        if not self.logits_are_rounded:
            return logits
        states = self.model.logits.inputs(x)
        states = tf.reshape(states, [-1, self.beam_size, states.shape[-1]])
        return candidates.RoundedLogits(logits, states, self.embedding_VD)

    def _layer(
        self,
        x: tf.Tensor,
        number: int,
        cache: KeysValues,
        memory: KeysValues | prepared_weights.FoldedMemory,
        place: Any,
        bias: tf.Tensor,
        memory_bias: tf.Tensor,
    ) -> tuple[tf.Tensor, KeysValues]:
        """Map x [B * N, D] to [B * N, D]; return it with the layer's new cache."""
        weights, layer = self.layers[number], self.layers[number].layer
        d_k, d_v = self.hparams.d_k, self.hparams.d_v
        new_cache = cache

        def attend(y):
            nonlocal new_cache
            q, k, v = self._split_heads(weights.self_qkv(y), [d_k, d_k, d_v])
            new_cache = self._write(cache, KeysValues(k, v), place)
            heads = layer.self_attention.attend(q, *self._readable(new_cache), bias)
            return weights.self_output(self._join_heads(heads))

        def attend_to_memory(y):
            if isinstance(memory, prepared_weights.FoldedMemory):
                # The memory's own bias hides padding, but knows no words.
                more = memory_bias if self.words else None
                return self.folded[number].attend(y, memory, more)
            (q,) = self._split_heads(weights.cross_q(y), [d_k])
            heads = layer.cross_attention.attend(q, *memory, memory_bias)
            return weights.cross_output(self._join_heads(heads))

        def feed_forward(y):
            hidden = layer.feed_forward.activate(weights.input_to_hidden(y))
            return weights.hidden_to_output(hidden)

        for sublayer, norm in zip((attend, attend_to_memory, feed_forward), weights.norms):
            x = layer.residual(x, sublayer, norm, dropout=lambda y: y)
        return x, new_cache

    def _place(self, slots: tf.Tensor, position: tf.Tensor, steps_left: tf.Tensor) -> Any:
        """Return where a step writes, the same for all layers."""
        num_slots = tf.shape(slots)[1]
        ends = tf.range(1, tf.shape(slots)[0] * self.hparams.num_heads + 1)
        return _Place(ends * (num_slots // self.beam_size) - steps_left, num_slots)

    def _write(self, cache: KeysValues, new: KeysValues, place: "_Place") -> KeysValues:
        """Return the cache with the step's keys and values [B, H, N, K] written, in place.

        tensor_scatter_nd_update copies the whole cache every time, so that a step would cost more
        the more steps went before. InplaceUpdate changes its input, so that must be a buffer of its
        own and nothing else may read it: `grow` makes one for each cache (tf.zeros would not do,
        since equal constants are merged into one), and the next reader is this step's attention.
        """

        def written(old: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
            _, num_heads, num_beams, size = x.shape
            rows = tf.raw_ops.InplaceUpdate(
                x=tf.reshape(old, [-1, num_beams * size]),
                i=place.rows,
                v=tf.reshape(x, [-1, num_beams * size]),
            )
            return tf.reshape(rows, [-1, num_heads, place.num_slots, size])

        return KeysValues(*map(written, cache, new))

    def _readable(self, cache: KeysValues) -> KeysValues:
        """Return the cache as attention reads it, keys [B, H, C, d_k]."""
        return cache

    def _split_heads(self, x: tf.Tensor, sizes: list[int]) -> list[tf.Tensor]:
        """Cut [B * N, sum(H * size)] into one tensor [B, H, N, size] a size."""
        x = tf.reshape(tf.cast(x, self.dtype), [-1, self.beam_size, x.shape[1]])
        return attention.split_heads(x, self.hparams.num_heads, sizes, prepared_weights.transpose)

    def _join_heads(self, heads: tf.Tensor) -> tf.Tensor:
        """Concatenate heads [B, H, N, d_v] to [B * N, H d_v]."""
        joined = attention.join_heads(heads, prepared_weights.transpose)
        return tf.reshape(joined, [-1, joined.shape[2]])


class Ensemble:
    """Several decoders, whose logits are not rounded, as one with their mean probability."""

    def __init__(self, decoders: Sequence[CachedDecoder]):
        self.decoders = decoders

    def encode(self, inputs: tf.Tensor) -> tuple[State, ...]:
        """Return every model's state."""
        return tuple(decoder.encode(inputs) for decoder in self.decoders)

    def grow(
        self, state: tuple[State, ...], ancestry: tf.Tensor, num_steps: tf.Tensor
    ) -> tuple[State, ...]:
        """See beam_search.Decoder."""
        pairs = zip(self.decoders, state)
        return tuple(decoder.grow(own, ancestry, num_steps) for decoder, own in pairs)

    def step(
        self, ids: tf.Tensor, position: tf.Tensor, ancestry: tf.Tensor, state: tuple[State, ...]
    ) -> tuple[tf.Tensor, tuple[State, ...]]:
        """See beam_search.Decoder; the logits are log(mean of softmax)."""
        pairs = zip(self.decoders, state)
        steps = [decoder.step(ids, position, ancestry, own) for decoder, own in pairs]
        logs = tf.stack([tf.nn.log_softmax(logits) for logits, _ in steps])
        mean = tf.reduce_logsumexp(logs, axis=0) - math.log(len(steps))
        return mean, tuple(own for _, own in steps)


def of_models(
    models: Sequence[transformer.Transformer], options: decode_options.DecodeOptions
) -> CachedDecoder | Ensemble:
    """Return the decoder of one model, or the ensemble of several."""
    beam_size, dtype = beam_search.num_beams(options), options.matmul_dtype
    if len(models) == 1:
        return CachedDecoder(models[0], beam_size, dtype)
    return Ensemble([CachedDecoder(m, beam_size, dtype, may_round=False) for m in models])


class _Place(NamedTuple):
    """The slots that a step writes."""

    rows: tf.Tensor  # [B H] the row of this time step, of a cache seen as [B H C / N, N K]
    num_slots: tf.Tensor  # C


def is_own(slots: tf.Tensor, ancestry: tf.Tensor, num_beams: int) -> tf.Tensor:
    """Return bool [B, N, C]: whether a beam went through the slots [B, C].

    With N = 2 and all slots of T = 3 times, a beam with the ancestry [1, 0, -1] (time 2 is still to
    come) went through slots 1 and 2.
    """
    own_beams = tf.gather(ancestry, slots // num_beams, axis=2, batch_dims=1)
    return own_beams == (slots % num_beams)[:, None]


def _written(of_slots: tf.Tensor, new: tf.Tensor, steps_left: tf.Tensor) -> tf.Tensor:
    """Return the values of slots [B, C] with those of this time's slots replaced by new [B, N]."""
    num_beams = new.shape[1]
    num_times = tf.shape(of_slots)[1] // num_beams
    is_new = tf.repeat(tf.range(num_times) == num_times - steps_left, num_beams)
    return tf.where(is_new, tf.tile(new, [1, num_times]), of_slots)


def _columns(is_used: tf.Tensor, multiple: int) -> tf.Tensor:
    """Return [B, kept] the columns of is_used [B, C] that are used, then the first others to make
    the rows equally long: as long as the row that uses most, rounded up to a multiple."""
    num_used = tf.reduce_max(tf.math.count_nonzero(is_used, axis=1, dtype=tf.int32))
    num_kept = -(-num_used // multiple) * multiple
    return tf.math.top_k(tf.cast(is_used, tf.int32), num_kept).indices
