"""Attention that knows how far away things are: learnt biases of its scores.

A head's scores get a bias for each distance between what is looked at and where one stands (Raffel
et al. 2020, Section 2.1; here one for each distance up to a limit, which what is further away has
too, and a table for each layer). In self-attention that is a distance between positions. A parser's
attention over the source stands at the word that comes next: an output has one symbol for each
word, in their order, so the symbols that are written tell its number. Attention must count else to
find it, and loses count in long sentences.

Shapes: B sentences, S source length, T queries, M what they look at, H heads.
"""

from typing import Protocol

import keras
import tensorflow as tf


class WordOrder(Protocol):
    """Which word comes next, of rows that may hold several sentences, each ended by EOS."""

    def numbers(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return int32 [B, S]: of which word each id is a part, from 0; EOS is one of its own."""
        ...

    def passes(self, ids: tf.Tensor) -> tf.Tensor:
        """Return bool, of the shape of target ids: after which it is the next word's turn."""
        ...


class RelativeBias(keras.layers.Layer):
    """The biases of all layers of a stack.

    Args:
      num_layers: of the stack.
      num_heads: H.
      first: the distance of the furthest thing before that has a bias of its own, at most 0.
      last: that of the furthest thing after, at least 0.
    """

    def __init__(self, num_layers: int, num_heads: int, first: int, last: int, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.first = first
        self.last = last

    def build(self, input_shape=None):
        shape = (self.num_layers, self.num_heads, self.last - self.first + 1)
        self.table = self.add_weight(
            name="table", shape=shape, initializer="zeros", dtype="float32"
        )

    def call(self, distances):
        """Return each layer's biases, float32 [B, H, T, M], of int32 distances [B, T, M]."""
        places = tf.clip_by_value(distances, self.first, self.last) - self.first
        # A product with the table has a fast gradient, which a gather would not have.
        one_hot = tf.reshape(tf.one_hot(places, self.table.shape[2]), [-1, self.table.shape[2]])
        table = tf.reshape(tf.convert_to_tensor(self.table), [-1, self.table.shape[2]])
        biases = tf.matmul(table, one_hot, transpose_b=True)
        shape = tf.concat([[self.num_layers, self.num_heads], tf.shape(distances)], 0)
        # [L, H, B, T, M] --> [L, B, H, T, M]
        biases = tf.transpose(tf.reshape(biases, shape), [0, 2, 1, 3, 4])
        return tf.unstack(biases, num=self.num_layers)


def distances(length: int | tf.Tensor) -> tf.Tensor:
    """Return int32 [1, T, T]: how far each of so many positions is after each other one."""
    positions = tf.range(length)
    return (positions[None] - positions[:, None])[None]
