"""Multi-head attention (Section 3.2): softmax(Q K^T / sqrt(d_k)) V, h times side by side.

Shapes: B batch, T queries, S memory positions, D d_model, H heads, K size of one head (d_k, d_v).

A layer's projections are fused: self-attention has one kernel "qkv" [D, H d_k + H d_k + H d_v],
cross-attention has "q" and "kv"; both have "output" [H d_v, D]. None has a bias.

Where a query may look is a float32 `bias` that broadcasts to [B, H, T, S]: 0 where it may,
-1e9 where it may not. It is made once a step, not once a layer.

In decoding the queries are the N beams of a sentence at one position, side by side (T = N).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from t2t_lite.model import dropout, linear

MASKED = -1e9
# The hyperparameters that an attention is made with.
HPARAMS = ("d_model", "num_heads", "d_k", "d_v", "qkv_gain", "attention_dropout")


class KeysValues(NamedTuple):
    """Keys [B, H, S, d_k] and values [B, H, S, d_v]."""

    keys: tf.Tensor
    values: tf.Tensor


# (queries [B, H, T, d_k], keys [B, H, S, d_k], bias) of an attention
Watch = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], None]


def padding_bias(ids: tf.Tensor) -> tf.Tensor:
    """Return [B, 1, 1, S] that hides PAD: ids [[5, 1, 0]] -> [[[[0, 0, -1e9]]]]."""
    return tf.where(tf.equal(ids, 0), MASKED, 0.0)[:, None, None, :]


def causal_bias(length: int | tf.Tensor) -> tf.Tensor:
    """Return [1, 1, T, T] that hides what comes after each query."""
    positions = tf.range(length)
    return tf.where(positions[:, None] >= positions[None, :], 0.0, MASKED)[None, None]


def same_segment_bias(query_segments: tf.Tensor, memory_segments: tf.Tensor) -> tf.Tensor:
    """Return [B, 1, T, S] that hides other sentences packed into the same row (ids from 1)."""
    same = tf.equal(query_segments[:, :, None], memory_segments[:, None, :])
    return tf.where(same, 0.0, MASKED)[:, None]


class _MultiHeadAttention(keras.layers.Layer):
    """What both kinds share: sizes, the attention itself and the output projection."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_k: int,
        d_v: int,
        qkv_gain: float = 1.0,
        attention_dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_k = d_k
        self.d_v = d_v
        self.qkv_gain = qkv_gain
        self.attention_dropout = attention_dropout

    def attend(self, queries, memory: KeysValues, bias=None, noise=None):
        """Let queries [B, H, T, d_k] attend to memory; return [B, T, D] in the compute type."""
        weights = attention_weights(queries, memory.keys, bias)
        weights = tf.cast(weights, self.compute_dtype)
        weights = dropout.dropout(weights, self.attention_dropout, noise)
        heads_BHTK = tf.matmul(weights, memory.values)
        # [B, H, T, K] --> [B, T, H, K] --> [B, T, H K]
        heads_BTHK = tf.transpose(heads_BHTK, [0, 2, 1, 3])
        shape = tf.shape(heads_BTHK)
        joined = tf.reshape(heads_BTHK, [shape[0], shape[1], self.num_heads * self.d_v])
        return self._project(joined, self.output_kernel)

    def get_config(self):
        return {**super().get_config(), **{name: getattr(self, name) for name in HPARAMS}}

    def _add_fused(self, name: str, sizes: Sequence[int]):
        """Add a kernel [D, sum(H * size)] whose parts are initialised each as its own kernel.

        That is Glorot's uniform, times `qkv_gain`.
        """
        widths = [self.num_heads * size for size in sizes]

        def initializer(shape, dtype=None):
            parts = [
                keras.initializers.VarianceScaling(self.qkv_gain**2, "fan_avg", "uniform")(
                    (shape[0], width), dtype
                )
                for width in widths
            ]
            return tf.concat(parts, axis=1)

        shape = (self.d_model, sum(widths))
        return self.add_weight(name=name, shape=shape, initializer=initializer)

    def _add_output(self):
        shape = (self.num_heads * self.d_v, self.d_model)
        return self.add_weight(name="output", shape=shape)

    def _project(self, x, kernel):
        return linear.project(x, tf.convert_to_tensor(kernel), self.compute_dtype)


@keras.saving.register_keras_serializable(package="t2t_lite")
class SelfAttention(_MultiHeadAttention):
    """Attention of a sequence over itself."""

    def build(self, input_shape=None):
        self.qkv = self._add_fused("qkv", [self.d_k, self.d_k, self.d_v])
        self.output_kernel = self._add_output()

    def call(self, x, bias=None, noise=None):
        """Attend from and to x [B, T, D]; return [B, T, D] in the compute type."""
        queries, memory = self.project(x)
        return self.attend(queries, memory, bias, noise)

    def project(self, x: tf.Tensor) -> tuple[tf.Tensor, KeysValues]:
        """Return the queries [B, H, T, d_k], keys and values of x [B, T, D]."""
        sizes = [self.d_k, self.d_k, self.d_v]
        q, k, v = split_heads(self._project(x, self.qkv), self.num_heads, sizes)
        return q, KeysValues(k, v)


@keras.saving.register_keras_serializable(package="t2t_lite")
class CrossAttention(_MultiHeadAttention):
    """Attention of the decoder over the encoder's output."""

    def build(self, input_shape=None):
        self.q = self._add_fused("q", [self.d_k])
        self.kv = self._add_fused("kv", [self.d_k, self.d_v])
        self.output_kernel = self._add_output()

    def call(self, x, memory, bias=None, noise=None, watch=None):
        """Attend from x [B, T, D] to memory (KeysValues); return [B, T, D].

        `watch` is called with what the weights are made from (see `Watch`).
        """
        queries = self.project(x)
        if watch:
            watch(queries, memory.keys, bias)
        return self.attend(queries, memory, bias, noise)

    def project(self, x: tf.Tensor) -> tf.Tensor:
        """Return the queries [B, H, T, d_k] of x [B, T, D]."""
        (queries,) = split_heads(self._project(x, self.q), self.num_heads, [self.d_k])
        return queries

    def memory(self, encoded: tf.Tensor) -> KeysValues:
        """Return the keys and values of encoded [B, S, D]; in decoding, once a sentence."""
        sizes = [self.d_k, self.d_v]
        return KeysValues(*split_heads(self._project(encoded, self.kv), self.num_heads, sizes))


def split_heads(x: tf.Tensor, num_heads: int, sizes: Sequence[int]) -> list[tf.Tensor]:
    """Cut fused projections [B, T, sum(H * size)] into one tensor [B, H, T, size] a size.

    Where all sizes are equal (all rows of Table 3 but B) one transpose serves all of them.
    """
    batch, length = tf.shape(x)[0], tf.shape(x)[1]
    if len(set(sizes)) == 1:
        # [B, T, n H K] --> [B, T, n, H, K] --> [n, B, H, T, K]
        x = tf.reshape(x, [batch, length, len(sizes), num_heads, sizes[0]])
        return tf.unstack(tf.transpose(x, [2, 0, 3, 1, 4]), num=len(sizes))
    parts = tf.split(x, [num_heads * size for size in sizes], axis=-1)
    return [split_heads(part, num_heads, [size])[0] for part, size in zip(parts, sizes)]


def attention_weights(queries: tf.Tensor, keys: tf.Tensor, bias: tf.Tensor | None) -> tf.Tensor:
    """Return softmax(Q K^T / sqrt(d_k) + bias) as float32 [B, H, T, S]."""
    scale = tf.constant(queries.shape[-1] ** -0.5, queries.dtype)
    scores = tf.cast(tf.matmul(queries * scale, keys, transpose_b=True), tf.float32)
    return tf.nn.softmax(scores if bias is None else scores + bias)
