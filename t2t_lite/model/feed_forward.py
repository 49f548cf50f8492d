"""Position-wise feed-forward network (Section 3.3): max(0, x W1 + b1) W2 + b2."""

import keras
import tensorflow as tf

from t2t_lite.model import dropout, linear

ACTIVATIONS = {"relu": tf.nn.relu, "swish": tf.nn.silu}


class FeedForward(keras.layers.Layer):
    """Two linear maps with a ReLU (or another activation) between; [..., d_model] -> [..., d_ff] ->
    [..., d_model]."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "relu",
        relu_dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.d_model = d_model
        self.d_ff = d_ff
        self.activation = ACTIVATIONS[activation]
        self.relu_dropout = relu_dropout

    def build(self, input_shape=None):
        self.kernel_1 = self.add_weight(name="kernel_1", shape=(self.d_model, self.d_ff))
        self.bias_1 = self.add_weight(name="bias_1", shape=(self.d_ff,), initializer="zeros")
        self.kernel_2 = self.add_weight(name="kernel_2", shape=(self.d_ff, self.d_model))
        self.bias_2 = self.add_weight(name="bias_2", shape=(self.d_model,), initializer="zeros")

    def call(self, x, noise=None, project: linear.Project = linear.project):
        """Map x [..., D] to [..., D] in the compute type; `noise` drops hidden units."""

        def affine(x, kernel, bias):
            y = project(x, kernel, self.compute_dtype)
            return linear.add_bias(y, tf.convert_to_tensor(bias))

        hidden = affine(x, self.kernel_1, self.bias_1)
        hidden = dropout.dropout(self.activation(hidden), self.relu_dropout, noise)
        return affine(hidden, self.kernel_2, self.bias_2)
