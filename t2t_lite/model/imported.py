"""Parts that only models of other systems have: see config.ImportedModel.

Shapes: B batch, S source length, T queries, D d_model, H heads, V rows of the softmax.
"""

import math
from typing import Literal

import keras
import tensorflow as tf

from t2t_lite.model import attention, embedding, linear, position
from t2t_lite.text import vocabulary


@keras.saving.register_keras_serializable("t2t_lite")
class BiasedAttention(attention.MultiHeadAttention):
    """Multi-head attention with biases of queries [H d_k] and of outputs [D].

    One bias of all keys would leave the softmax as it is, one of values is one of outputs.
    """

    def build(self, input_shape=None):
        super().build()
        sizes = {"q_bias": self.num_heads * self.d_k, "output_bias": self.d_model}
        self.q_bias, self.output_bias = (
            self.add_weight(name=name, shape=(size,), initializer="zeros")
            for name, size in sizes.items()
        )

    def heads(self, query, value=None):
        queries, keys, values = super().heads(query, value)
        bias = tf.reshape(tf.convert_to_tensor(self.q_bias), [self.num_heads, 1, self.d_k])
        return [queries + tf.cast(bias, queries.dtype), keys, values]

    def output_map(self, heads):
        return linear.add_bias(super().output_map(heads), tf.convert_to_tensor(self.output_bias))


class StackInput(embedding.StackInput):
    """The input of a stack, otherwise numbered and with a learned vector.

    Args:
      first: the number of the first position.
      vector: where a learned vector is added: nowhere, "everywhere" or at the "start".
      reads_eos: whether the stack reads EOS, or takes it for padding.
    """

    def __init__(
        self,
        *args,
        first: int = 0,
        vector: Literal["", "everywhere", "start"] = "",
        reads_eos: bool = True,
        **kwargs,
    ):
        super().__init__(*args, **kwargs)
        self.first = first
        self.vector_place = vector
        self.reads_eos = reads_eos

    def build(self, input_shape=None):
        if self.vector_place:
            shape = (self.embedding.d_model,)
            self.vector = self.add_weight(
                name="vector", shape=shape, initializer="zeros", dtype="float32"
            )

    def sum(self, ids, position):
        x = super().sum(self._read(ids), position + self.first)
        if not self.vector_place:
            return x
        vector = tf.convert_to_tensor(self.vector)
        if self.vector_place == "start":
            vector = tf.where((position == 0)[..., None], vector, 0.0)
        return x + vector

    def mask(self, ids):
        return super().mask(self._read(ids))

    def _read(self, ids: tf.Tensor) -> tf.Tensor:
        """Return ids [B, S] with EOS replaced by PAD, except where EOS is the only token."""
        if self.reads_eos:
            return ids
        is_hidden = (ids == vocabulary.EOS_ID) & (tf.range(tf.shape(ids)[1]) > 0)
        return tf.where(is_hidden, vocabulary.PAD_ID, ids)


class BiasedLogits(embedding.Logits):
    """Logits with a bias for each id, "bias" [V].

    It is a last column of the matrix, times an input of 1, so that the loss needs to know nothing
    of it.
    """

    def build(self, input_shape=None):
        shape = (self.embedding.num_rows,)
        self.bias = self.add_weight(name="bias", shape=shape, initializer="zeros", dtype="float32")

    def matrix(self):
        matrix = super().matrix()
        bias = tf.cast(tf.convert_to_tensor(self.bias), matrix.dtype)
        return tf.concat([matrix, bias[:, None]], axis=1)

    def inputs(self, states):
        return tf.concat([states, tf.ones_like(states[..., :1])], axis=-1)


@keras.saving.register_keras_serializable("t2t_lite")
class SinusoidHalves(position.PositionalEncoding):
    """The paper's sinusoids, all sines before all cosines (transformers' MarianMTModel)."""

    def _intervals(self) -> int:
        return self.d_model // 2

    def call(self, positions):
        """Map int32 positions [...] to float32 [..., D]: position 0 is 0, ..., 0, 1, ..., 1."""
        step = math.log(10_000) / self._intervals()
        rates = [math.exp(-i * step) for i in range(self.d_model // 2)]
        angles = tf.cast(positions, tf.float32)[..., None] * tf.constant(rates)
        return tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)


@keras.saving.register_keras_serializable("t2t_lite")
class T2TSinusoids(SinusoidHalves):
    """All sines, then all cosines, wavelengths in D / 2 - 1 intervals, not D / 2."""

    def _intervals(self) -> int:
        return max(self.d_model // 2 - 1, 1)
