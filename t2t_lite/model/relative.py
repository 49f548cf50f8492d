"""Relative position bias: a learned bias of attention scores for each distance (Raffel et al. 2020,
Section 2.1; here one for each distance up to a limit, which all further ones share).

Shapes: B batch, T queries, S keys, H heads.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

from t2t_lite.model import attention


@keras.saving.register_keras_serializable("t2t_lite")
class RelativeAttention(attention.MultiHeadAttention):
    """Multi-head attention whose scores get a bias for the distance from query to key.

    Args:
      first: the furthest distance to the left with a bias of its own, at most 0.
      last: the furthest distance to the right, at least 0.
    """

    def __init__(self, *args, first: int, last: int, **kwargs):
        super().__init__(*args, **kwargs)
        self.first = first
        self.last = last

    def build(self, input_shape=None):
        super().build()
        self.relative_bias = self.add_weight(
            name="relative_bias",
            shape=(self.num_heads, self.last - self.first + 1),
            initializer="zeros",
            dtype="float32",
        )

    def bias(self, mask, num_queries, num_keys):
        """Return the bias of the mask plus that of the distances."""
        distances = tf.range(num_keys)[None] - tf.range(num_queries)[:, None]
        bias = self.distance_bias(distances[None])
        hidden = super().bias(mask, num_queries, num_keys)
        return bias if hidden is None else hidden + bias

    def distance_bias(self, distances: tf.Tensor) -> tf.Tensor:
        """Return the bias, float32 [B, H, T, S], of int32 distances [B, T, S]."""
        places = tf.clip_by_value(distances, self.first, self.last) - self.first
        # A matmul with the table has a fast gradient, which a gather would not have.
        num_places = self.last - self.first + 1
        one_hot = tf.reshape(tf.one_hot(places, num_places), [-1, num_places])
        table = tf.convert_to_tensor(self.relative_bias)
        bias = tf.matmul(table, one_hot, transpose_b=True)
        # [H, B T S] --> [H, B, T, S] --> [B, H, T, S]
        bias = tf.reshape(bias, tf.concat([[self.num_heads], tf.shape(distances)], 0))
        return tf.transpose(bias, [1, 0, 2, 3])

    def get_config(self):
        return {**super().get_config(), "first": self.first, "last": self.last}


class Words(NamedTuple):
    """The mask of a source with its words: see `next_word`."""

    mask: tf.Tensor  # bool [B, S]
    numbers: tf.Tensor  # int32 [B, S], or minus those passed [B, T, S]: the distances


class NextWordAttention(RelativeAttention):
    """Attention over the source; its mask is `Words` with distances."""

    def bias(self, mask: Words, num_queries, num_keys):
        """Return the bias of padding plus that of the distances to the next word."""
        if not isinstance(mask, Words):
            raise ValueError("hparams.next_word needs words: make the model by next_word.create")
        return attention.mask_bias(mask.mask) + self.distance_bias(mask.numbers)
