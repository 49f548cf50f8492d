"""Heads that propose several tokens at once (Stern et al. 2018, "Blockwise Parallel Decoding").

A decoder's state at position t predicts token t. Head i (from 1) guesses token t + i from the same
state, given token t. First all heads together look at the source, by one more cross-attention; then
each has a feed-forward sub-layer, whose output goes through the softmax that the model has:

    x = LayerNorm(e + CrossAttention(e)), with e = state + embedding of token t
    head_i = LayerNorm_i(state + max(0, x W1_i + b1_i) W2_i + b2_i)

The paper's heads see the state alone. But when they are asked, token t is known; and what comes
after it is in the source, where the state has looked for token t only. Before the first token there
is neither state nor token: a learnt vector, `start`, guesses the first P tokens from the source.

Shapes: B batch, T positions, S source length, D d_model, F d_ff, H heads of attention of size K, P
parallel heads.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

from t2t_lite.model import attention, feed_forward, linear, normalization

NAME = "parallel_heads"


class Memory(NamedTuple):
    """What the heads see of the source: keys and values [B, H, S, K], a mask that hides padding."""

    keys: tf.Tensor
    values: tf.Tensor
    mask: tf.Tensor


class ParallelHeads(keras.layers.Layer):
    """All P heads, side by side: W1 of all is one kernel [D, P F], W2 one of [P F, D].

    Args:
      num_heads: P.
      cross_attention: that of all heads, made for this.
      d_model: D.
      d_ff: F.
      activation: as of the feed-forward networks.
    """

    def __init__(
        self,
        num_heads: int,
        cross_attention: attention.MultiHeadAttention,
        *,
        d_model: int,
        d_ff: int,
        activation: str = "relu",
        **kwargs,
    ):
        super().__init__(autocast=False, name=NAME, **kwargs)
        self.num_heads = num_heads
        self.d_model = d_model
        self.d_ff = d_ff
        self.activation = feed_forward.ACTIVATIONS[activation]
        self.cross_attention = cross_attention
        self.norm = normalization.LayerNorm(d_model, name="norm", dtype="float32")

    def build(self, input_shape=None):
        self.cross_attention.build()
        self.norm.build()
        width, per_head = self.num_heads * self.d_ff, (self.num_heads, self.d_model)
        self.kernel_1 = self.add_weight(name="kernel_1", shape=(self.d_model, width))
        self.bias_1 = self.add_weight(name="bias_1", shape=(width,), initializer="zeros")
        self.kernel_2 = self.add_weight(name="kernel_2", shape=(width, self.d_model))
        self.bias_2 = self.add_weight(name="bias_2", shape=per_head, initializer="zeros")
        self.scale = self.add_weight(name="scale", shape=per_head, initializer="ones")
        self.bias = self.add_weight(name="bias", shape=per_head, initializer="zeros")
        self.start = self.add_weight(
            name="start",
            shape=(self.d_model,),
            initializer=keras.initializers.RandomNormal(stddev=1.0),
        )

    def call(self, states, embedded, memory):
        """Return the heads' states, float32 [B, T, P, D].

        Args:
          states: float32 [B, T, D], the decoder's.
          embedded: float32 [B, T, D], the embeddings of the tokens that these predicted.
          memory: the source's Memory.
        """
        x = states + embedded
        keys_values = memory.keys, memory.values
        attended = self.cross_attention(x, keys_values=keys_values, attention_mask=memory.mask)
        x = self.norm(x + tf.cast(attended, tf.float32))
        hidden = linear.project(x, self.kernel_1, self.compute_dtype)
        hidden = self.activation(linear.add_bias(hidden, tf.convert_to_tensor(self.bias_1)))
        # [B, T, P F] --> [P, B T, F], one product a head
        hidden = tf.reshape(hidden, [-1, self.num_heads, self.d_ff])
        hidden = tf.transpose(hidden, [1, 0, 2])
        kernel_PFD = tf.reshape(
            tf.convert_to_tensor(self.kernel_2), [self.num_heads, self.d_ff, self.d_model]
        )
        y = tf.cast(tf.matmul(hidden, tf.cast(kernel_PFD, self.compute_dtype)), tf.float32)
        # [P, B T, D] --> [B, T, P, D]
        shape = [tf.shape(x)[0], tf.shape(x)[1], self.num_heads, self.d_model]
        y = tf.reshape(tf.transpose(y, [1, 0, 2]), shape)
        y += states[:, :, None] + tf.cast(tf.convert_to_tensor(self.bias_2), tf.float32)
        normalized, _ = normalization.standardized(y)
        scale, bias = (
            tf.cast(tf.convert_to_tensor(weight), tf.float32) for weight in (self.scale, self.bias)
        )
        return normalized * scale + bias
