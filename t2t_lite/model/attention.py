"""Multi-head attention (Section 3.2): softmax(Q K^T / sqrt(d_k)) V, h times side by side.

Shapes: B batch, T queries, S memory positions (keys and values), D d_model, H heads, K size of one
head (d_k, d_v); scores_BHTS is [B, H, T, S].

Where a query may look is a float32 `mask` that broadcasts to [B, H, T, S]: 0 where it may,
-1e9 where it may not. It is made once a step, not once a layer.

Two things are not the base model's, and stand in modules of their own: other functions of query and
key than the scaled dot product (`compatibility`), and restricted self-attention (`restricted`).
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from t2t_lite import config
from t2t_lite.model import compatibility, dropout, linear, restricted
from t2t_lite.text import vocabulary

MASKED = restricted.MASKED

# From queries [B, H, T, K] and keys [B, H, S, K] to float32 scores [B, H, T, S].
Compatibility = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def padding_mask(ids: tf.Tensor) -> tf.Tensor:
    """Return [B, 1, 1, S] that hides PAD: ids [[5, 1, 0]] -> [[[[0, 0, -1e9]]]]."""
    return tf.where(tf.equal(ids, vocabulary.PAD_ID), MASKED, 0.0)[:, None, None, :]


def causal_mask(length: int | tf.Tensor) -> tf.Tensor:
    """Return [1, 1, T, T] that hides what comes after each query."""
    positions = tf.range(length)
    return tf.where(positions[:, None] >= positions[None, :], 0.0, MASKED)[None, None]


def scaled_dot_product_attention(
    queries: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    mask: tf.Tensor | None = None,
    *,
    scores: Compatibility = compatibility.scaled_dot,
    dropout_rate: float = 0.0,
    noise: dropout.Noise | None = None,
) -> tf.Tensor:
    """Return softmax(Q K^T / sqrt(d_k)) V of each head, [B, H, T, d_v] (Section 3.2.1).

    Args:
      queries: [B, H, T, d_k].
      keys: [B, H, S, d_k].
      values: [B, H, S, d_v].
      mask: float32, broadcasts to [B, H, T, S]; None hides nothing.
      scores: what stands in place of Q K^T / sqrt(d_k).
      dropout_rate: of the weights, with `noise`.
      noise: the random bits of a training step; None: no dropout.
    """
    weights = tf.cast(attention_weights(queries, keys, mask, scores), values.dtype)
    return tf.matmul(dropout.dropout(weights, dropout_rate, noise), values)


def attention_weights(
    queries: tf.Tensor,
    keys: tf.Tensor,
    mask: tf.Tensor | None,
    scores: Compatibility = compatibility.scaled_dot,
) -> tf.Tensor:
    """Return softmax(Q K^T / sqrt(d_k) + mask) as float32 [B, H, T, S]."""
    scores_BHTS = scores(queries, keys)
    return tf.nn.softmax(scores_BHTS if mask is None else scores_BHTS + mask)


class MultiHeadAttention(keras.layers.Layer):
    """Concat(head_1, ..., head_h) W^O, each head an attention of its own (Section 3.2.2).

    Projections are fused. Self-attention, over x itself, has one kernel "qkv" [D, H d_k + H d_k +
    H d_v]; cross-attention, over a memory, has "q" and "kv"; both have "output" [H d_v, D]. None
    has a bias, or queries and outputs have one, "q_bias" [H d_k] and "output_bias" [D]: the same
    bias of all keys would leave a softmax as it is, one of values is one of outputs. Additive
    attention has a vector for each head, "additive" [H, d_k].

    Args:
      d_model: D.
      num_heads: H.
      d_k: size of one head's queries and keys.
      d_v: size of one head's values.
      cross: whether it attends over a memory.
      qkv_gain: initial queries, keys and values: deviation over Glorot's.
      attention_dropout: rate of the weights' dropout.
      use_bias: whether queries and outputs have biases.
      function: "scaled_dot", "dot" or "additive": see compatibility.
      window: of self-attention, how many positions away it looks; 0 for any. See restricted.
      causal: with a window, whether it looks only at what is before; without one a mask says so.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_k: int,
        d_v: int,
        cross: bool = False,
        qkv_gain: float = 1.0,
        attention_dropout: float = 0.0,
        use_bias: bool = False,
        function: config.AttentionFunction = "scaled_dot",
        window: int = 0,
        causal: bool = False,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_k = d_k
        self.d_v = d_v
        self.cross = cross
        self.qkv_gain = qkv_gain
        self.attention_dropout = attention_dropout
        self.use_bias = use_bias
        self.function = function
        self.window = window
        self.causal = causal

    def build(self, input_shape=None):
        if self.cross:
            self.q = self._add_fused("q", [self.d_k])
            self.kv = self._add_fused("kv", [self.d_k, self.d_v])
        else:
            self.qkv = self._add_fused("qkv", [self.d_k, self.d_k, self.d_v])
        shape = (self.num_heads * self.d_v, self.d_model)
        self.output_kernel = self.add_weight(name="output", shape=shape)
        if self.use_bias:
            sizes = {"q_bias": self.num_heads * self.d_k, "output_bias": self.d_model}
            self.q_bias, self.output_bias = (
                self.add_weight(name=name, shape=(size,), initializer="zeros")
                for name, size in sizes.items()
            )
        if self.function == "additive":
            # Glorot's uniform, of a kernel [d_k, 1] a head.
            limit = (6 / (self.d_k + 1)) ** 0.5
            self.additive = self.add_weight(
                name="additive",
                shape=(self.num_heads, self.d_k),
                initializer=keras.initializers.RandomUniform(-limit, limit),
            )

    def call(
        self,
        x,
        memory=None,
        *,
        attention_mask=None,
        noise=None,
        project: linear.Project = linear.project,
    ):
        """Attend from x [B, T, D] to memory [B, S, D], or to x itself.

        Args:
          x: [B, T, D].
          memory: [B, S, D] in cross-attention, otherwise None.
          attention_mask: float32, broadcasts to [B, H, T, S].
          noise: the random bits of a training step; None: no dropout.
          project: how x is multiplied by a kernel.

        Returns:
          [B, T, D] in the compute type.
        """
        if self.cross:
            (queries,) = self._heads(x, self.q, [self.d_k], project)
            keys, values = self.keys_values(memory, project)
        else:
            sizes = [self.d_k, self.d_k, self.d_v]
            queries, keys, values = self._heads(x, self.qkv, sizes, project)
        if self.use_bias:
            queries += tf.cast(self.query_bias(), queries.dtype)
        # For pictures; nothing is computed unless they ask.
        _record(self, Attended(queries, keys, attention_mask, self._weights))
        attend = functools.partial(
            scaled_dot_product_attention,
            scores=self.scores,
            dropout_rate=self.attention_dropout,
            noise=noise,
        )
        if self.window:
            attend = functools.partial(
                restricted.in_blocks, attend, window=self.window, causal=self.causal
            )
        heads_BHTK = attend(queries, keys, values, attention_mask)
        # [B, H, T, K] --> [B, T, H, K] --> [B, T, H K]
        heads_BTHK = tf.transpose(heads_BHTK, [0, 2, 1, 3])
        shape = tf.shape(heads_BTHK)
        joined = tf.reshape(heads_BTHK, [shape[0], shape[1], self.num_heads * self.d_v])
        outputs = project(joined, self.output_kernel, self.compute_dtype)
        if self.use_bias:
            outputs = linear.add_bias(outputs, tf.convert_to_tensor(self.output_bias))
        return outputs

    def query_bias(self) -> tf.Tensor:
        """Return the bias of the queries [H, 1, d_k]."""
        return tf.reshape(tf.convert_to_tensor(self.q_bias), [self.num_heads, 1, self.d_k])

    def scores(self, queries: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        """Return how well each of queries [B, H, T, d_k] goes with each of keys [B, H, S, d_k]:
        float32 [B, H, T, S]."""
        if self.function == "additive":
            return compatibility.additive(queries, keys, tf.convert_to_tensor(self.additive))
        return getattr(compatibility, self.function)(queries, keys)

    def _weights(self, queries, keys, mask) -> tf.Tensor:
        if self.window:
            band = restricted.band_mask(tf.shape(keys)[2], self.window, causal=self.causal)
            mask = band if mask is None else band + mask
        return attention_weights(queries, keys, mask, self.scores)

    def keys_values(
        self, memory: tf.Tensor, project: linear.Project = linear.project
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return cross-attention's keys [B, H, S, d_k] and values [B, H, S, d_v] of a memory
        [B, S, D]."""
        keys, values = self._heads(memory, self.kv, [self.d_k, self.d_v], project)
        return keys, values

    def _heads(self, x, kernel, sizes: Sequence[int], project) -> list[tf.Tensor]:
        """Return one tensor [B, H, T, size] a size of x [B, T, D] times a fused kernel."""
        return _split_heads(project(x, kernel, self.compute_dtype), self.num_heads, sizes)

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


def _split_heads(x: tf.Tensor, num_heads: int, sizes: Sequence[int]) -> list[tf.Tensor]:
    """Cut fused projections [B, T, sum(H * size)] into one tensor [B, H, T, size] a size.

    Where all sizes are equal (all rows of Table 3 but B) one transpose serves all of them.
    """
    batch, length = tf.shape(x)[0], tf.shape(x)[1]
    if len(set(sizes)) == 1:
        # [B, T, n H K] --> [B, T, n, H, K] --> [n, B, H, T, K]
        x = tf.reshape(x, [batch, length, len(sizes), num_heads, sizes[0]])
        return tf.unstack(tf.transpose(x, [2, 0, 3, 1, 4]), num=len(sizes))
    parts = tf.split(x, [num_heads * size for size in sizes], axis=-1)
    return [_split_heads(part, num_heads, [size])[0] for part, size in zip(parts, sizes)]


class Attended(NamedTuple):
    """What the weights of one call of a layer come from, by `compute`: see attention_weights."""

    queries: tf.Tensor
    keys: tf.Tensor
    mask: tf.Tensor | None
    compute: Callable[[tf.Tensor, tf.Tensor, tf.Tensor | None], tf.Tensor]

    def weights(self) -> tf.Tensor:
        """Return the weights of all heads, without dropout: float32 [B, H, T, S]."""
        return self.compute(self.queries, self.keys, self.mask)


_attended: contextvars.ContextVar[dict[str, Attended] | None] = contextvars.ContextVar(
    "attended", default=None
)


@contextlib.contextmanager
def recording() -> Iterator[dict[str, Attended]]:
    """Record what the layers of a model attend to while it is called in this context.

    Layers are named as in a checkpoint. Only weights that are asked for are computed. In a
    tf.function both the call and the use belong inside it.

    >>> with attention.recording() as attended:
    ...     model(inputs, targets)
    >>> attended["decoder_0/cross_attention"].weights()     # [B, H, T, S]
    """
    attended: dict[str, Attended] = {}
    token = _attended.set(attended)
    try:
        yield attended
    finally:
        _attended.reset(token)


def _record(layer: keras.layers.Layer, inputs: Attended) -> None:
    attended = _attended.get()
    if attended is not None:
        # "transformer/decoder_0/cross_attention": the model's own name is left out.
        attended[layer.path.partition("/")[2] or layer.name] = inputs
