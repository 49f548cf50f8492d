"""The Transformer (Section 3, Figure 1): stacks of encoder and decoder layers.

Shapes: B batch, S source length, T target length, D d_model, H heads, K head size, V vocabulary.

The residual stream and layer norms are float32 whatever the compute type; sub-layers compute in
the type of their policy ("float32", "mixed_bfloat16" with float32 variables, or "bfloat16").
"""

import functools
from typing import NamedTuple

import keras
import tensorflow as tf

from t2t_lite import config
from t2t_lite.model import (
    attention,
    embedding,
    feed_forward,
    linear,
    normalization,
    position,
    relative,
    residual,
)
from t2t_lite.model import dropout as dropouts
from t2t_lite.text import vocabulary


class EncoderOutput(NamedTuple):
    """A source as the decoder sees it.

    States [B, S, D], the mask that hides padding, and the ids [B, S] that were read.
    """

    states: tf.Tensor
    mask: tf.Tensor
    ids: tf.Tensor


class _StackLayer(keras.layers.Layer):
    """What the layers of both stacks share: self-attention, feed-forward, residuals."""

    is_causal = False

    def __init__(self, hparams: config.HParams, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.hparams = hparams
        self.self_attention = self._attention("self_attention")
        self.self_attention_norm = _norm(hparams, "self_attention_norm")
        self.feed_forward = feed_forward.FeedForward(
            hparams.d_model,
            hparams.d_ff,
            activation=hparams.imported.activation,
            relu_dropout=hparams.relu_dropout,
            name="feed_forward",
            dtype=self.dtype_policy,
        )
        self.feed_forward_norm = _norm(hparams, "feed_forward_norm")

    def build(self, input_shape=None):
        self.self_attention.build()
        self.self_attention_norm.build()
        self.feed_forward.build()
        self.feed_forward_norm.build()

    def _attention(self, name: str, *, cross: bool = False) -> attention.MultiHeadAttention:
        hparams = self.hparams
        return attention.MultiHeadAttention(
            hparams.d_model,
            hparams.num_heads,
            d_k=hparams.d_k,
            d_v=hparams.d_v,
            cross=cross,
            qkv_gain=hparams.qkv_gain,
            attention_dropout=hparams.attention_dropout,
            use_bias=hparams.imported.attention_bias,
            function=hparams.attention_function,
            window=0 if cross else hparams.attention_window,
            causal=self.is_causal,
            name=name,
            dtype=self.dtype_policy,
        )

    def _residual(self, noise):
        """Return the function (x, sublayer, norm) that adds a sub-layer: see residual."""
        return functools.partial(
            residual.residual,
            pre_norm=self.hparams.pre_norm,
            dropout_rate=self.hparams.dropout,
            noise=noise,
        )


class EncoderLayer(_StackLayer):
    """Self-attention and a feed-forward network, each with dropout, residual and layer norm."""

    def call(self, x, padding_mask, noise=None, project: linear.Project = linear.project):
        """Map x [B, S, D] to [B, S, D]."""
        add = self._residual(noise)
        x = add(
            x,
            lambda y: self.self_attention(
                y, attention_mask=padding_mask, noise=noise, project=project
            ),
            self.self_attention_norm,
        )
        return add(
            x,
            lambda y: self.feed_forward(y, noise=noise, project=project),
            self.feed_forward_norm,
        )


class DecoderLayer(_StackLayer):
    """Self-attention over what is already written, attention over the source, feed-forward."""

    is_causal = True

    def __init__(self, hparams: config.HParams, **kwargs):
        super().__init__(hparams, **kwargs)
        self.cross_attention = self._attention("cross_attention", cross=True)
        self.cross_attention_norm = _norm(hparams, "cross_attention_norm")

    def build(self, input_shape=None):
        super().build()
        self.cross_attention.build()
        self.cross_attention_norm.build()

    def call(self, x, causal_mask, encoded, noise=None):
        """Map x [B, T, D] to [B, T, D], given the source (EncoderOutput)."""
        add = self._residual(noise)
        x = add(
            x,
            lambda y: self.self_attention(y, attention_mask=causal_mask, noise=noise),
            self.self_attention_norm,
        )
        x = add(
            x,
            lambda y: self.cross_attention(
                y, encoded.states, attention_mask=encoded.mask, noise=noise
            ),
            self.cross_attention_norm,
        )
        return add(x, lambda y: self.feed_forward(y, noise=noise), self.feed_forward_norm)


class Transformer(keras.Model):
    """The whole model.

    Args:
      hparams: sizes and rates.
      vocab_size: number of ids, of targets where a source has a vocabulary of its own; rows of the
        embedding are rounded up to a multiple of `hparams.vocab_multiple`. The spare rows are ids
        that never occur.
      words: tells the next word, where hparams.next_word asks for it.
      dtype: a Keras dtype policy, see above.
    """

    def __init__(
        self,
        hparams: config.HParams,
        vocab_size: int,
        *,
        words: relative.WordOrder | None = None,
        dtype: str | None = None,
        **kwargs,
    ):
        super().__init__(dtype=dtype, autocast=False, **kwargs)
        if hparams.next_word and not words:
            raise ValueError("hparams.next_word needs words")
        self.words = words if hparams.next_word else None
        self.hparams = hparams
        self.vocab_size = vocab_size
        policy = self.dtype_policy
        source_rows, num_rows = config.rows(hparams, vocab_size)

        def matrix(name: str, rows: int = num_rows) -> embedding.SharedEmbedding:
            return embedding.SharedEmbedding(rows, hparams.d_model, name=name, dtype=policy)

        # Of the target and, if it is shared (Section 3.4), of the source and of the softmax.
        self.embedding = self.source_embedding = self.softmax = matrix("embedding")
        if hparams.embeddings == "separate":
            self.source_embedding = matrix("source_embedding", source_rows)
            self.softmax = matrix("softmax")
        # Models that other systems have trained may have these (see config.ImportedModel).
        if hparams.imported.source_vector:
            self.source_vector = embedding.AddedVector(hparams.d_model, name="source_vector")
        if hparams.imported.start_vector:
            self.start_vector = embedding.AddedVector(hparams.d_model, name="start_vector")
        if hparams.imported.logits_bias:
            self.logits_bias = embedding.AddedVector(num_rows, name="logits_bias")
        encoders, decoders = hparams.num_encoder_layers, hparams.num_decoder_layers
        if n := hparams.relative_bias:
            self.encoder_bias = self._bias(encoders, -n, n, "encoder_bias")
            self.decoder_bias = self._bias(decoders, -2 * n, 0, "decoder_bias")
        if n := hparams.next_word:
            self.cross_bias = self._bias(decoders, -n, n, "cross_bias")
        self.position = position.PositionEncoding(
            hparams.position_encoding,
            hparams.d_model,
            max_length=hparams.max_length,
            first=hparams.imported.first_position,
            name="position",
        )
        self.encoder_layers = [
            EncoderLayer(hparams, name=f"encoder_{i}", dtype=policy)
            for i in range(hparams.num_encoder_layers)
        ]
        self.decoder_layers = [
            DecoderLayer(hparams, name=f"decoder_{i}", dtype=policy)
            for i in range(hparams.num_decoder_layers)
        ]
        if hparams.pre_norm:
            self.encoder_norm = _norm(hparams, "encoder_norm")
            self.decoder_norm = _norm(hparams, "decoder_norm")
        self.build()

    def _bias(self, num_layers: int, first: int, last: int, name: str) -> relative.RelativeBias:
        return relative.RelativeBias(num_layers, self.hparams.num_heads, first, last, name=name)

    def build(self, input_shape=None):
        for layer in self.layers:
            layer.build()
        self.built = True

    def call(self, inputs, targets, noise=None):
        """Return logits [B, T, V] of targets [B, T] given inputs [B, S], teacher forced."""
        return self.logits(self.decode(targets, self.encode(inputs, noise), noise))

    def encode(
        self,
        inputs: tf.Tensor,
        noise: dropouts.Noise | None = None,
        project: linear.Project = linear.project,
    ) -> EncoderOutput:
        """Encode source ids [B, S]; `project` multiplies by kernels."""
        if not self.hparams.imported.source_eos:
            inputs = _without_eos(inputs)
        mask = attention.padding_mask(inputs)
        x = self.source_embedding(inputs) + self.position(tf.range(tf.shape(inputs)[1]))
        if self.hparams.imported.source_vector:
            x = self.source_vector(x)
        x = dropouts.dropout(x, self.hparams.dropout, noise)
        masks = [mask] * len(self.encoder_layers)
        if self.hparams.relative_bias:
            distances = relative.distances(tf.shape(inputs)[1])
            masks = [mask + bias for bias in self.encoder_bias(distances)]
        for layer, own_mask in zip(self.encoder_layers, masks):
            x = layer(x, own_mask, noise=noise, project=project)
        x = self.encoder_norm(x) if self.hparams.pre_norm else x
        return EncoderOutput(x, mask, inputs)

    def decode(
        self, targets: tf.Tensor, encoded: EncoderOutput, noise: dropouts.Noise | None = None
    ) -> tf.Tensor:
        """Return the states [B, T, D] that predict targets [B, T], teacher forced.

        The decoder's input is the targets' embeddings shifted right, with a zero vector (or a
        learnt one) in front.
        """
        embedded = self.embedding(targets)
        x = tf.pad(embedded[:, :-1], [[0, 0], [1, 0], [0, 0]])
        # Restricted self-attention hides what comes after in its own blocks.
        mask = None
        if not self.hparams.attention_window:
            mask = attention.causal_mask(targets.shape[1] or tf.shape(targets)[1])
        positions = tf.range(tf.shape(targets)[1])
        if self.hparams.imported.start_vector:
            x = tf.where((positions == 0)[..., None], self.start_vector(x), x)
        x = dropouts.dropout(x + self.position(positions), self.hparams.dropout, noise)
        masks, memories = ([one] * len(self.decoder_layers) for one in (mask, encoded))
        if self.hparams.relative_bias:
            distances = relative.distances(tf.shape(targets)[1])
            masks = [mask + bias for bias in self.decoder_bias(distances)]
        if self.words:
            passed = tf.cast(self.words.passes(targets), tf.int32)
            passed = tf.cumsum(passed, axis=1, exclusive=True)
            biases = self.word_biases(self.words.numbers(encoded.ids), passed)
            memories = [encoded._replace(mask=encoded.mask + bias) for bias in biases]
        for layer, own_mask, memory in zip(self.decoder_layers, masks, memories):
            x = layer(x, own_mask, memory, noise=noise)
        return self.decoder_norm(x) if self.hparams.pre_norm else x

    def word_biases(self, numbers: tf.Tensor, passed: tf.Tensor) -> list[tf.Tensor]:
        """Return each decoder layer's biases [B, H, T, S] of cross-attention, given the numbers
        [B, S] of the source's words and how many of them are passed [B, T]."""
        return self.cross_bias(numbers[:, None] - passed[:, :, None])

    def logits(self, states: tf.Tensor) -> tf.Tensor:
        """Return states [..., D] times the softmax's transposed matrix: float32 [..., V]."""
        matrix = tf.cast(self.softmax_matrix(), self.compute_dtype)
        states = tf.cast(self.softmax_inputs(states), self.compute_dtype)
        flat = tf.reshape(states, [-1, matrix.shape[1]])
        logits = tf.cast(tf.matmul(flat, matrix, transpose_b=True), tf.float32)
        return tf.reshape(logits, tf.concat([tf.shape(states)[:-1], [tf.shape(matrix)[0]]], 0))

    def softmax_matrix(self) -> tf.Tensor:
        """Return the softmax's matrix [V, D]; where logits have a bias, [V, D + 1] with it."""
        matrix = tf.convert_to_tensor(self.softmax.matrix)
        if not self.hparams.imported.logits_bias:
            return matrix
        bias = tf.cast(tf.convert_to_tensor(self.logits_bias.vector), matrix.dtype)
        return tf.concat([matrix, bias[:, None]], axis=1)

    def softmax_inputs(self, states: tf.Tensor) -> tf.Tensor:
        """Return what `softmax_matrix` is multiplied with: states [..., D], and 1 for a bias."""
        if not self.hparams.imported.logits_bias:
            return states
        return tf.concat([states, tf.ones_like(states[..., :1])], axis=-1)

    def named_variables(self) -> dict[str, tf.Variable]:
        """Return every weight under its name in a checkpoint: "decoder_0/self_attention/qkv"."""
        prefix = f"{self.name}/"
        return {v.path.removeprefix(prefix): v.value for v in self.trainable_variables}


def _without_eos(inputs: tf.Tensor) -> tf.Tensor:
    """Return inputs [B, S] with EOS replaced by padding, except where EOS is the only token."""
    is_first = tf.range(tf.shape(inputs)[1]) == 0
    is_hidden = (inputs == vocabulary.EOS_ID) & ~is_first
    return tf.where(is_hidden, vocabulary.PAD_ID, inputs)


def _norm(hparams: config.HParams, name: str) -> normalization.LayerNorm:
    return normalization.LayerNorm(
        hparams.d_model, epsilon=hparams.imported.norm_epsilon, name=name, dtype="float32"
    )
