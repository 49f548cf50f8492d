"""A model's weights, prepared for the steps of decoding.

They are cast, scaled, transposed and joined. The weights of cross-attention can also be multiplied
with the keys and values of one source ("folded"), which leaves fewer operations to each step.

Shapes: S source length, D d_model, H heads, K size of one head, V rows of the embedding, W columns
of the softmax.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.decode import candidates, matmuls
from t2t_lite.model import attention, linear, normalization, transformer


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
    def of(cls, layer: normalization.LayerNorm) -> "Norm":
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
    """A layer's matmuls, with 1 / sqrt(d_k) folded into the queries' weights, its norms, its
    activation, and for additive attention the vectors."""

    self_qkv: matmuls.Matmul
    self_output: matmuls.Matmul
    cross_q: matmuls.Matmul
    cross_output: matmuls.Matmul
    input_to_hidden: matmuls.Matmul
    hidden_to_output: matmuls.Matmul
    norms: tuple[Norm, Norm, Norm]
    self_additive: tf.Tensor | None
    cross_additive: tf.Tensor | None
    activation: Callable[[tf.Tensor], tf.Tensor]
    # Of folded cross-attention: W_q^T and W^O of each head [H, K, D], b_q [H, K, 1], b^O [D].
    folding_q: tf.Tensor
    folding_output: tf.Tensor
    folding_q_bias: tf.Tensor | None
    folding_output_bias: tf.Tensor | None

    def folded(self, keys: tf.Tensor, values: tf.Tensor, mask: tf.Tensor) -> FoldedMemory:
        """Fold cross-attention to keys and values [1, H, S, K], of which a mask [1, 1, 1, S] hides
        padding."""
        keys_HSK, values_HSK = (tf.cast(x[0], tf.float32) for x in (keys, values))
        d_model = self.folding_q.shape[2]
        bias_HS = tf.repeat(mask[0, :, 0], keys_HSK.shape[0], axis=0)
        if self.folding_q_bias is not None:
            bias_HS += tf.matmul(keys_HSK, self.folding_q_bias)[:, :, 0]
        return FoldedMemory(
            keys=tf.reshape(tf.matmul(keys_HSK, self.folding_q), [1, -1, d_model]),
            values=tf.reshape(tf.matmul(values_HSK, self.folding_output), [1, -1, d_model]),
            bias=bias_HS[None],
        )

    def add_cross_output_bias(self, x: tf.Tensor) -> tf.Tensor:
        """Return x + b^O of cross-attention."""
        return x if self.folding_output_bias is None else x + self.folding_output_bias

    @classmethod
    def of(cls, layer: transformer.DecoderLayer, dtype: tf.DType) -> "LayerWeights":
        """Prepare a layer's weights for matmuls in dtype."""
        self_attention, cross = layer.self_attention, layer.cross_attention
        feed_forward = layer.feed_forward

        def matmul(kernel, bias=None):
            if bias is not None:
                bias = tf.convert_to_tensor(bias)
            return matmuls.matmul(tf.convert_to_tensor(kernel), bias, dtype=dtype)

        def scaled(kernel):  # of either attention: they have one d_k and one function
            scale = self_attention.d_k**-0.5 if self_attention.function == "scaled_dot" else 1.0
            return tf.cast(kernel, tf.float32) * scale

        def query_bias(one):
            return scaled(tf.convert_to_tensor(one.q_bias)) if one.use_bias else None

        def output_bias(one):
            if not one.use_bias:
                return None
            return tf.cast(tf.convert_to_tensor(one.output_bias), tf.float32)

        def additive(one):
            return tf.convert_to_tensor(one.additive) if one.function == "additive" else None

        def heads(rows):
            return tf.reshape(rows, [cross.num_heads, -1, rows.shape[1]])

        qkv = tf.cast(tf.convert_to_tensor(self_attention.qkv), tf.float32)
        num_queries = self_attention.num_heads * self_attention.d_k
        qkv_bias, cross_bias = query_bias(self_attention), query_bias(cross)
        if qkv_bias is not None:
            qkv_bias = tf.pad(qkv_bias, [[0, qkv.shape[1] - num_queries]])
        return cls(
            self_qkv=matmul(
                tf.concat([scaled(qkv[:, :num_queries]), qkv[:, num_queries:]], 1), qkv_bias
            ),
            self_output=matmul(self_attention.output_kernel, output_bias(self_attention)),
            cross_q=matmul(scaled(tf.convert_to_tensor(cross.q)), cross_bias),
            cross_output=matmul(cross.output_kernel, output_bias(cross)),
            input_to_hidden=matmul(feed_forward.kernel_1, feed_forward.bias_1),
            hidden_to_output=matmul(feed_forward.kernel_2, feed_forward.bias_2),
            norms=(
                Norm.of(layer.self_attention_norm),
                Norm.of(layer.cross_attention_norm),
                Norm.of(layer.feed_forward_norm),
            ),
            self_additive=additive(self_attention),
            cross_additive=additive(cross),
            activation=feed_forward.activation,
            folding_q=heads(transpose(scaled(tf.convert_to_tensor(cross.q)), [1, 0])),
            folding_output=heads(tf.cast(tf.convert_to_tensor(cross.output_kernel), tf.float32)),
            folding_q_bias=None if cross_bias is None else heads(cross_bias[:, None]),
            folding_output_bias=output_bias(cross),
        )


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
            return linear.project(x, kernel, dtype)
        y = rounded[kernel.path](tf.reshape(x, [-1, kernel.shape[0]]))
        shape = tf.concat([tf.shape(x)[:-1], kernel.shape[1:]], 0)
        return tf.cast(tf.reshape(y, shape), dtype)

    return project


def softmax_weights(matrix: tf.Tensor, d_model: int) -> tuple[tf.Tensor, tf.Tensor | None]:
    """Return the softmax's kernel [D, W] and its bias [W], None where all would be 0.

    The matrix is [V, D], or [V, D + 1] with the logits' bias (`Transformer.softmax_matrix`). As a
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
