"""Multi-head attention (Section 3.2): softmax(Q K^T / sqrt(d_k)) V, h times side by side.

Shapes: B batch, T queries, S keys and values, D d_model, H heads, K size of one head (d_k, d_v);
scores_BHTS is [B, H, T, S].

A mask is boolean as in Keras, True where a query may attend. Its shape is [B, S], [B, T, S] or
[B, H, T, S], or broadcasts to one of them.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from t2t_lite.model import dropout as dropouts
from t2t_lite.model import linear
from t2t_lite.text import vocabulary

MASKED = -1e9  # added to a score, leaves a weight of exactly 0


def padding_mask(ids: Any) -> Any:
    """Return [B, S], True for tokens: ids [[5, 1, 0]] -> [[True, True, False]]."""
    return keras.ops.not_equal(ids, vocabulary.PAD_ID)


def causal_mask(length: int | tf.Tensor, num_keys: int | tf.Tensor | None = None) -> tf.Tensor:
    """Return [1, T, S], True for keys at a query's own position and before; S is T by default."""
    keys = tf.range(length if num_keys is None else num_keys)
    return (tf.range(length)[:, None] >= keys[None, :])[None]


def mask_bias(mask: tf.Tensor) -> tf.Tensor:
    """Return what a mask adds to scores: 0 where a query may attend, else -1e9; float32, broadcasts
    to [B, H, T, S]."""
    if mask.dtype != tf.bool or mask.shape.rank not in (2, 3, 4):
        raise ValueError(
            "an attention mask is boolean, True where a query may attend, of shape [B, S], "
            f"[B, T, S] or [B, H, T, S]; got {mask.dtype.name} {mask.shape}"
        )
    missing_axes = {2: (1, 2), 3: (1,), 4: ()}[mask.shape.rank]
    for axis in missing_axes:
        mask = tf.expand_dims(mask, axis)
    return tf.where(mask, 0.0, MASKED)


def scaled_dot_product(queries: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """Return the scores Q K^T / sqrt(d_k), float32 [B, H, T, S] (Section 3.2.1).

    Args:
      queries: Q [B, H, T, d_k].
      keys: K [B, H, S, d_k].
    """
    queries *= tf.constant(queries.shape[-1] ** -0.5, queries.dtype)
    return tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32)


@keras.saving.register_keras_serializable("t2t_lite")
class MultiHeadAttention(keras.layers.Layer):
    """Concat(head_1, ..., head_h) W^O, each head an attention of its own (Section 3.2.2).

    The projections W^Q, W^K and W^V of all heads are fused: one kernel "qkv"
    [D, H d_k + H d_k + H d_v], or "q" and "kv" where most calls attend to another sequence.
    "output" is W^O [H d_v, D]. There are no biases.

    Args:
      d_model: D.
      num_heads: H.
      d_k: size of one head's queries and keys.
      d_v: size of one head's values.
      cross: store W^Q apart, which is faster in attention to another sequence.
      causal: hide what comes after a query.
      qkv_gain: scale of the initial W^Q, W^K and W^V relative to Glorot initialisation.
      dropout: rate of dropout on the attention weights.
      seed_generator: for dropout; see Dropout.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_k: int,
        d_v: int,
        cross: bool = False,
        causal: bool = False,
        qkv_gain: float = 1.0,
        dropout: float = 0.0,
        seed_generator: keras.random.SeedGenerator | None = None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_k = d_k
        self.d_v = d_v
        self.cross = cross
        self.causal = causal
        self.qkv_gain = qkv_gain
        self.dropout = dropouts.Dropout(dropout, seed_generator, name="dropout")
        self.supports_masking = True

    def build(self, input_shape=None):
        if self.cross:
            self.q = self._add_fused("q", [self.d_k])
            self.kv = self._add_fused("kv", [self.d_k, self.d_v])
        else:
            self.qkv = self._add_fused("qkv", [self.d_k, self.d_k, self.d_v])
        shape = (self.num_heads * self.d_v, self.d_model)
        self.output_kernel = self.add_weight(name="output", shape=shape)

    def call(self, query, value=None, attention_mask=None, training=False):
        """Attend from query [B, T, D] to value [B, S, D], or to the query itself.

        Args:
          query: [B, T, D].
          value: [B, S, D]; None in self-attention.
          attention_mask: boolean, True where a query may attend: see the module.
          training: whether to drop attention weights.

        Returns:
          [B, T, D] in the compute type.
        """
        queries, keys, values = self.heads(query, value)
        bias = self.bias(attention_mask, tf.shape(queries)[2], tf.shape(keys)[2])
        return self.output_map(self.attend(queries, keys, values, bias, training))

    def heads(self, query, value=None) -> list[tf.Tensor]:
        """Return Q [B, H, T, d_k], K [B, H, S, d_k] and V [B, H, S, d_v]."""
        if value is None and not self.cross:
            sizes = [self.d_k, self.d_k, self.d_v]
            return split_heads(self._project(query, self.qkv), self.num_heads, sizes)
        return [self.queries(query), *self.keys_values(query if value is None else value)]

    def queries(self, query: tf.Tensor) -> tf.Tensor:
        """Return Q [B, H, T, d_k]."""
        kernel = self.q if self.cross else self.qkv[:, : self.num_heads * self.d_k]
        return split_heads(self._project(query, kernel), self.num_heads, [self.d_k])[0]

    def keys_values(self, value: tf.Tensor) -> list[tf.Tensor]:
        """Return K [B, H, S, d_k] and V [B, H, S, d_v]."""
        kernel = self.kv if self.cross else self.qkv[:, self.num_heads * self.d_k :]
        return split_heads(self._project(value, kernel), self.num_heads, [self.d_k, self.d_v])

    def bias(self, mask, num_queries: tf.Tensor, num_keys: tf.Tensor) -> tf.Tensor | None:
        """Return what is added to scores, float32, broadcasts to [B, H, T, S]; None for nothing."""
        bias = None if mask is None else mask_bias(mask)
        if not self.causal:
            return bias
        hidden = mask_bias(causal_mask(num_queries, num_keys))
        return hidden if bias is None else bias + hidden

    def scores(self, queries: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        """Return how well each query goes with each key, float32 [B, H, T, S]."""
        return scaled_dot_product(queries, keys)

    def attend(self, queries, keys, values, bias=None, training=False) -> tf.Tensor:
        """Return the heads softmax(scores + bias) V [B, H, T, d_v] (Section 3.2.1)."""
        scores = self.scores(queries, keys)
        weights = tf.nn.softmax(scores if bias is None else scores + bias)
        _record(self, weights)
        weights = self.dropout(tf.cast(weights, values.dtype), training=training)
        return tf.matmul(weights, values)

    def output_map(self, heads: tf.Tensor) -> tf.Tensor:
        """Return Concat(heads) W^O [B, T, D] of heads [B, H, T, d_v]."""
        return self._project(join_heads(heads), self.output_kernel)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.d_model)

    def get_config(self):
        names = ("d_model", "num_heads", "d_k", "d_v", "cross", "causal", "qkv_gain")
        config = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **config, "dropout": self.dropout.rate}

    def _project(self, x: tf.Tensor, kernel) -> tf.Tensor:
        return linear.project(x, kernel, self.compute_dtype)

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


# Decoding transposes in a way that has no gradient.
Transpose = Callable[[tf.Tensor, list[int]], tf.Tensor]


def split_heads(
    x: tf.Tensor, num_heads: int, sizes: Sequence[int], transpose: Transpose = tf.transpose
) -> list[tf.Tensor]:
    """Cut fused projections [B, T, sum(H * size)] into one tensor [B, H, T, size] a size.

    Where all sizes are equal (all rows of Table 3 but B) one transpose serves all of them.
    """
    if len(set(sizes)) == 1:
        # [B, T, n H K] --> [B, T, n, H, K] --> [n, B, H, T, K]
        length = x.shape[1] or tf.shape(x)[1]
        x = tf.reshape(x, [-1, length, len(sizes), num_heads, sizes[0]])
        return tf.unstack(transpose(x, [2, 0, 3, 1, 4]), num=len(sizes))
    parts = tf.split(x, [num_heads * size for size in sizes], axis=-1)
    return [split_heads(part, num_heads, [size], transpose)[0] for part, size in zip(parts, sizes)]


def join_heads(heads: tf.Tensor, transpose: Transpose = tf.transpose) -> tf.Tensor:
    """Concatenate heads [B, H, T, d_v] to [B, T, H d_v]."""
    num_heads, depth = heads.shape[1], heads.shape[3]
    length = heads.shape[2] or tf.shape(heads)[2]
    return tf.reshape(transpose(heads, [0, 2, 1, 3]), [-1, length, num_heads * depth])


_recorded: contextvars.ContextVar[dict[str, tf.Tensor] | None] = contextvars.ContextVar(
    "recorded", default=None
)


@contextlib.contextmanager
def recording() -> Iterator[dict[str, tf.Tensor]]:
    """Record the attention weights [B, H, T, S] of the layers that are called in this context.

    They are those before dropout, float32, under the layers' names in a checkpoint. In a
    tf.function both the call and the use belong inside it.

    >>> with attention.recording() as weights:
    ...     model(inputs, targets)
    >>> weights["decoder_0/cross_attention"]     # [B, H, T, S]
    """
    recorded: dict[str, tf.Tensor] = {}
    token = _recorded.set(recorded)
    try:
        yield recorded
    finally:
        _recorded.reset(token)


def is_recording() -> bool:
    """Return whether weights are recorded here: see `recording`."""
    return _recorded.get() is not None


def _record(layer: keras.layers.Layer, weights: tf.Tensor) -> None:
    recorded = _recorded.get()
    if recorded is not None:
        # "transformer/decoder_0/cross_attention": the model's own name is left out.
        recorded[layer.path.partition("/")[2] or layer.name] = weights
