"""Heads that propose several tokens at once (Stern et al. 2018, "Blockwise Parallel Decoding").

A decoder's state at position t predicts token t. Head i (from 1) guesses token t + i from the same
state, given token t, by one more feed-forward sub-layer, whose output goes through the softmax that
the model has:

    x = state + embedding of token t
    head_i = LayerNorm_i(state + max(0, x W1_i + b1_i) W2_i + b2_i)

The paper's heads see the state alone; but when they are asked, token t is known.

Shapes: D d_model, F d_ff, P heads; all leading axes are flattened into N.
"""

import keras
import tensorflow as tf

from t2t_lite.model import feed_forward, linear, normalization

NAME = "parallel_heads"


class ParallelHeads(keras.layers.Layer):
    """All P heads, side by side: W1 of all is one kernel [D, P F], W2 one of [P F, D].

    Args:
      num_heads: P.
      d_model: D.
      d_ff: F.
      activation: as of the feed-forward networks.
    """

    def __init__(
        self, num_heads: int, d_model: int, d_ff: int, *, activation: str = "relu", **kwargs
    ):
        super().__init__(autocast=False, name=NAME, **kwargs)
        self.num_heads = num_heads
        self.d_model = d_model
        self.d_ff = d_ff
        self.activation = feed_forward.ACTIVATIONS[activation]

    def build(self, input_shape=None):
        width, per_head = self.num_heads * self.d_ff, (self.num_heads, self.d_model)
        self.kernel_1 = self.add_weight(name="kernel_1", shape=(self.d_model, width))
        self.bias_1 = self.add_weight(name="bias_1", shape=(width,), initializer="zeros")
        self.kernel_2 = self.add_weight(name="kernel_2", shape=(width, self.d_model))
        self.bias_2 = self.add_weight(name="bias_2", shape=per_head, initializer="zeros")
        self.scale = self.add_weight(name="scale", shape=per_head, initializer="ones")
        self.bias = self.add_weight(name="bias", shape=per_head, initializer="zeros")

    def call(self, states, embedded):
        """Return the heads' states, float32 [..., P, D].

        Args:
          states: float32 [..., D], the decoder's.
          embedded: float32 [..., D], the embedding of the token that each state's position has.
        """
        hidden = linear.project(
            states + embedded, tf.convert_to_tensor(self.kernel_1), self.compute_dtype
        )
        hidden = self.activation(linear.add_bias(hidden, tf.convert_to_tensor(self.bias_1)))
        # [..., P F] --> [P, N, F], one product a head
        hidden = tf.reshape(hidden, [-1, self.num_heads, self.d_ff])
        hidden_PNF = tf.transpose(hidden, [1, 0, 2])
        kernel_PFD = tf.reshape(
            tf.convert_to_tensor(self.kernel_2), [self.num_heads, self.d_ff, self.d_model]
        )
        y_PND = tf.cast(tf.matmul(hidden_PNF, tf.cast(kernel_PFD, self.compute_dtype)), tf.float32)
        shape = tf.concat([tf.shape(states)[:-1], [self.num_heads, self.d_model]], 0)
        y = tf.reshape(tf.transpose(y_PND, [1, 0, 2]), shape)
        y += states[..., None, :] + tf.cast(tf.convert_to_tensor(self.bias_2), tf.float32)
        normalized, _ = normalization.standardized(y)
        scale, bias = (
            tf.cast(tf.convert_to_tensor(weight), tf.float32) for weight in (self.scale, self.bias)
        )
        return normalized * scale + bias
