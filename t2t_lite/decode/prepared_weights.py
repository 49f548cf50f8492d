"""A model's weights, prepared for the steps of decoding.

They are cast, scaled, transposed and joined. The weights of cross-attention can also be multiplied
with the keys and values of one source ("folded"), which leaves fewer operations to each step.

Shapes: S source length, D d_model, H heads, K size of one head, V rows of the embedding, W columns
of the softmax.
"""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.decode import candidates, matmuls
from t2t_lite.model import (
    attention,
    compatibility,
    imported,
    linear,
    normalization,
    transformer,
)


class FoldedMemory(NamedTuple):
    """Cross-attention to the source of one sentence, with the projections of queries and outputs
    multiplied in: rows x attend by a sum over heads of softmax(x keys^T + bias) values.

    A head's `keys` are its projected keys times W_q^T, its `values` its projected values times W^O,
    so both are [1, H S, D], heads one below the other. Its `bias` [1, H, S] is that of queries
    times its keys, and hides padding.
    """

    keys: tf.Tensor
    values: tf.Tensor
    bias: tf.Tensor


class Norm(NamedTuple):
    """A layer norm without the gradient that training has."""

    scale: tf.Tensor
    bias: tf.Tensor
    epsilon: float

    @classmethod
    def of(cls, layer: normalization.LayerNormalization) -> "Norm":
        scale, bias = tf.convert_to_tensor(layer.scale), tf.convert_to_tensor(layer.bias)
        scale, bias = matmuls.constant(scale), matmuls.constant(bias)
        return cls(scale, bias, layer.epsilon)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Normalise float32 x [..., D]."""
        return normalization.standardized(x, self.epsilon)[0] * self.scale + self.bias

    def bounds(self) -> tf.Tensor:
        """Return [D]: outputs at eight standard deviations, which hardly any output exceeds."""
        return 8 * tf.abs(self.scale) + tf.abs(self.bias)


class LayerWeights(NamedTuple):
    """A decoder layer with its matmuls and norms prepared; the rest is the layer's own."""

    layer: transformer.DecoderLayer
    self_qkv: matmuls.Matmul
    self_output: matmuls.Matmul
    cross_q: matmuls.Matmul
    cross_output: matmuls.Matmul
    input_to_hidden: matmuls.Matmul
    hidden_to_output: matmuls.Matmul
    norms: tuple[Norm, Norm, Norm]

    @classmethod
    def of(cls, layer: transformer.DecoderLayer, dtype: tf.DType) -> "LayerWeights":
        """Prepare a layer's weights for matmuls in dtype."""
        own, cross, feed_forward = layer.self_attention, layer.cross_attention, layer.feed_forward

        def matmul(kernel, bias=None):
            if bias is not None:
                bias = tf.convert_to_tensor(bias)
            return matmuls.matmul(tf.convert_to_tensor(kernel), bias, dtype=dtype)

        qkv_bias, cross_bias = _bias(own, "q_bias"), _bias(cross, "q_bias")
        if qkv_bias is not None:
            qkv_bias = tf.pad(qkv_bias, [[0, own.qkv.shape[1] - qkv_bias.shape[0]]])
        return cls(
            layer=layer,
            self_qkv=matmul(own.qkv, qkv_bias),
            self_output=matmul(own.output_kernel, _bias(own, "output_bias")),
            cross_q=matmul(cross.q, cross_bias),
            cross_output=matmul(cross.output_kernel, _bias(cross, "output_bias")),
            input_to_hidden=matmul(feed_forward.kernel_1, feed_forward.bias_1),
            hidden_to_output=matmul(feed_forward.kernel_2, feed_forward.bias_2),
            norms=(
                Norm.of(layer.self_attention_norm),
                Norm.of(layer.cross_attention_norm),
                Norm.of(layer.feed_forward_norm),
            ),
        )


class FoldedAttention:
    """A layer's cross-attention with its projections multiplied into one sentence's memory."""

    def __init__(self, cross: attention.MultiHeadAttention):
        scale = 1.0 if isinstance(cross, compatibility.DotAttention) else cross.d_k**-0.5
        self._num_heads, self._d_model = cross.num_heads, cross.d_model
        # W_q^T / sqrt(d_k) and W^O of each head [H, K, D], b_q / sqrt(d_k) [H, K, 1], b^O [D].
        q = tf.cast(tf.convert_to_tensor(cross.q), tf.float32) * scale
        self._q = self._heads(transpose(q, [1, 0]))
        self._output = self._heads(tf.cast(tf.convert_to_tensor(cross.output_kernel), tf.float32))
        bias = _bias(cross, "q_bias")
        self._q_bias = None if bias is None else self._heads(bias[:, None] * scale)
        self._output_bias = _bias(cross, "output_bias")

    def memory(self, keys: tf.Tensor, values: tf.Tensor, bias: tf.Tensor) -> FoldedMemory:
        """Fold keys and values [1, H, S, K]; a bias [1, 1, 1, S] hides padding."""
        keys_HSK, values_HSK = (tf.cast(x[0], tf.float32) for x in (keys, values))
        bias_HS = tf.repeat(bias[0, :, 0], self._num_heads, axis=0)
        if self._q_bias is not None:
            bias_HS += tf.matmul(keys_HSK, self._q_bias)[:, :, 0]
        return FoldedMemory(
            keys=tf.reshape(tf.matmul(keys_HSK, self._q), [1, -1, self._d_model]),
            values=tf.reshape(tf.matmul(values_HSK, self._output), [1, -1, self._d_model]),
            bias=bias_HS[None],
        )

    def attend(
        self, x: tf.Tensor, memory: FoldedMemory, bias_1HNS: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Let x [N, D] attend to a memory, with more bias than its own; return [N, D]."""
        num_beams = x.shape[0] or tf.shape(x)[0]
        scores = tf.matmul(x, tf.reshape(memory.keys, [-1, self._d_model]), transpose_b=True)
        # [N, H S] --> [N, H, S] --> [N, H S]
        scores = tf.reshape(scores, [num_beams, self._num_heads, -1])
        if bias_1HNS is not None:
            scores += transpose(bias_1HNS, [0, 2, 1, 3])[0]
        weights = tf.reshape(tf.nn.softmax(scores + memory.bias), [num_beams, -1])
        y = tf.matmul(weights, tf.reshape(memory.values, [-1, self._d_model]))
        return y if self._output_bias is None else y + self._output_bias

    def _heads(self, rows: tf.Tensor) -> tf.Tensor:
        return tf.reshape(rows, [self._num_heads, -1, rows.shape[1]])


def _bias(layer: attention.MultiHeadAttention, name: str) -> tf.Tensor | None:
    """Return a bias of an attention layer in float32, None where it has none."""
    if not isinstance(layer, imported.BiasedAttention):
        return None
    return tf.cast(tf.convert_to_tensor(getattr(layer, name)), tf.float32)


def encoder_projection(model: transformer.Transformer) -> linear.Project:
    """Return how the encoder, and cross-attention's keys and values, multiply by kernels: by large
    ones in 8-bit integers."""
    kernels = [layer.cross_attention.kv for layer in model.decoder_layers]
    for layer in model.encoder_layers:
        kernels += [layer.self_attention.qkv, layer.self_attention.output_kernel]
        kernels += [layer.feed_forward.kernel_1, layer.feed_forward.kernel_2]
    rounded = {
        kernel.path: matmuls.Int8Matmul(tf.convert_to_tensor(kernel))
        for kernel in kernels
        if matmuls.is_large(kernel)
    }

    def project(x, kernel, dtype):
        if kernel.path not in rounded:
            return linear.matmul(x, kernel, dtype)
        y = rounded[kernel.path](tf.reshape(x, [-1, kernel.shape[0]]))
        shape = tf.concat([tf.shape(x)[:-1], kernel.shape[1:]], 0)
        return tf.cast(tf.reshape(y, shape), dtype)

    return project


def softmax_weights(matrix: tf.Tensor, d_model: int) -> tuple[tf.Tensor, tf.Tensor | None]:
    """Return the softmax's kernel [D, W] and its bias [W], None where all would be 0.

    The matrix is [V, D], or [V, D + 1] with the logits' bias (`Transformer.logits.matrix`). As a
    row of the kernel a large bias would spoil the one scale of 8-bit integers. W is V rounded up,
    for a search by groups of columns; the columns added have a probability of 0.
    """
    num_rows, num_columns = matrix.shape
    num_spare = -num_rows % candidates.GROUP_SIZE
    kernel, bias = transpose(matrix, [1, 0]), None
    if num_columns > d_model:
        kernel, bias = kernel[:d_model], tf.cast(kernel[d_model], tf.float32)
    if num_spare:
        kernel = tf.pad(kernel, [[0, 0], [0, num_spare]])
        bias = tf.zeros([num_rows]) if bias is None else bias
        bias = tf.pad(bias, [[0, num_spare]], constant_values=attention.MASKED)
    return kernel, bias


def transpose(x: tf.Tensor, permutation: list[int]) -> tf.Tensor:
    """Transpose the bits as integers: oneDNN's transpose of small floats is 5 times slower."""
    integers = {2: tf.int16, 4: tf.int32}[x.dtype.size]
    return tf.bitcast(tf.transpose(tf.bitcast(x, integers), permutation), x.dtype)
