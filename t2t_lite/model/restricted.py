"""Restricted self-attention (Section 4, Table 1): a position sees r positions to either side.

That is 2 r + 1 positions with its own. In a decoder it sees r before it. Positions are cut into
blocks of r, and each block attends to itself and to its neighbours, which hold all that it may see;
a band hides the rest of them. So time and memory grow with n r instead of n^2, and the path between
distant positions with n / r.

    r = 2, causal       keys   0 1 2 3 4 5
    block of queries 2, 3      x x x .        3 sees 1, 2, 3
    block of queries 4, 5          x x x .    4 sees 2, 3, 4

Shapes: B batch, H heads, T positions, K size of one head; C blocks of R positions, W positions of a
block and its neighbours: 2 R where it is causal, else 3 R.
"""

import functools
from collections.abc import Callable

import keras
import tensorflow as tf

from t2t_lite.model import attention


@keras.saving.register_keras_serializable("t2t_lite")
class RestrictedAttention(attention.MultiHeadAttention):
    """Self-attention that looks at most `window` positions away; if causal, only before."""

    def __init__(self, *args, window: int, **kwargs):
        super().__init__(*args, **kwargs)
        self.window = window

    def call(self, query, value=None, attention_mask=None, training=False):
        """Attend from query [B, T, D] to itself; the mask is one of padding, [B, T]."""
        if value is not None or (attention_mask is not None and attention_mask.shape.rank != 2):
            raise ValueError(
                "restricted attention is self-attention, with a mask of padding only: expected no "
                f"value and a mask [B, T]; got {value} and {attention_mask}"
            )
        queries, keys, values = self.heads(query)
        bias = None if attention_mask is None else attention.mask_bias(attention_mask)
        attend = functools.partial(self.attend, training=training)
        band = {"window": self.window, "causal": self.causal}
        if attention.is_recording():  # weights of blocks are not those of a sentence
            hidden = attention.mask_bias(band_mask(tf.shape(keys)[2], **band))
            heads = attend(queries, keys, values, hidden if bias is None else hidden + bias)
        else:
            heads = in_blocks(attend, queries, keys, values, bias, **band)
        return self.output_map(heads)

    def get_config(self):
        return {**super().get_config(), "window": self.window}


def band_mask(length: int | tf.Tensor, window: int, *, causal: bool) -> tf.Tensor:
    """Return [1, T, T], True for positions at most `window` away; if causal, none that come
    after."""
    positions = tf.range(length)
    return _band(positions, positions, window, causal=causal)[None]


def in_blocks(
    attend: Callable[[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor],
    queries: tf.Tensor,
    keys: tf.Tensor,
    values: tf.Tensor,
    bias: tf.Tensor | None,
    *,
    window: int,
    causal: bool,
) -> tf.Tensor:
    """Return what attention with `band_mask` returns, [B, H, T, d_v], in O(T window) time and
    memory.

    Args:
      attend: attention of queries, keys, values and a bias, of any batch and lengths.
      queries: [B, H, T, d_k].
      keys: [B, H, T, d_k].
      values: [B, H, T, d_v].
      bias: float32 [B, 1, 1, T] that hides padding, or None.
      window: how many positions away one may look.
      causal: whether only what is before a position may be seen, and itself.
    """
    batch, length = tf.shape(queries)[0], tf.shape(queries)[2]
    size = tf.minimum(window, length)
    num_blocks = -(-length // size)
    num_sides = 1 if causal else 2
    spare = num_blocks * size - length
    blocks = _cut(tf.pad(queries, [[0, 0], [0, 0], [0, spare], [0, 0]]), size, num_blocks)

    def with_neighbours(x: tf.Tensor, fill: float = 0.0) -> tf.Tensor:
        """[B, H, T, K] --> [B C, H, W, K]"""
        after = spare + (num_sides - 1) * size
        padded = tf.pad(x, [[0, 0], [0, 0], [size, after], [0, 0]], constant_values=fill)
        shifted = [
            _cut(padded[:, :, i * size : (i + num_blocks) * size], size, num_blocks)
            for i in range(num_sides + 1)
        ]
        return tf.concat(shifted, axis=2)

    # Positions before the first and after the last are hidden as padding is.
    padding = tf.zeros([batch, 1, 1, length]) if bias is None else bias
    hidden_BC1W1 = with_neighbours(tf.transpose(padding, [0, 1, 3, 2]), attention.MASKED)
    band = _band(tf.range(size, 2 * size), tf.range((num_sides + 1) * size), window, causal=causal)
    bias_BC1RW = attention.mask_bias(band[None, None]) + tf.transpose(hidden_BC1W1, [0, 1, 3, 2])
    heads = attend(blocks, with_neighbours(keys), with_neighbours(values), bias_BC1RW)
    # [B C, H, R, K] --> [B, C, H, R, K] --> [B, H, C, R, K] --> [B, H, T, K]
    num_heads, depth = values.shape[1], values.shape[3]
    heads = tf.reshape(heads, [batch, num_blocks, num_heads, size, depth])
    heads = tf.transpose(heads, [0, 2, 1, 3, 4])
    return tf.reshape(heads, [batch, num_heads, num_blocks * size, depth])[:, :, :length]


def _cut(x: tf.Tensor, size: tf.Tensor, num_blocks: tf.Tensor) -> tf.Tensor:
    """[B, H, C R, K] --> [B, H, C, R, K] --> [B, C, H, R, K] --> [B C, H, R, K]"""
    num_heads, depth = x.shape[1], x.shape[3]
    x = tf.reshape(x, [-1, num_heads, num_blocks, size, depth])
    x = tf.transpose(x, [0, 2, 1, 3, 4])
    return tf.reshape(x, [-1, num_heads, size, depth])


def _band(queries: tf.Tensor, keys: tf.Tensor, window: int, *, causal: bool) -> tf.Tensor:
    distance = queries[:, None] - keys[None, :]
    is_seen = tf.abs(distance) <= window
    if causal:
        is_seen &= distance >= 0
    return is_seen
