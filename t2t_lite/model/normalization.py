"""Layer normalisation (Ba et al. 2016, used in Section 3.1): (x - mean) / std * scale + bias.

Shapes: D features, the last axis.
"""

import keras
import tensorflow as tf

from t2t_lite.model import gradients, linear

# Added to the variance; models of other frameworks have another one.
EPSILON = 1e-6


@keras.saving.register_keras_serializable("t2t_lite")
class LayerNormalization(keras.layers.Layer):
    """Normalise the last axis in float32, whatever the compute type, with the biased variance."""

    def __init__(self, d_model: int, *, epsilon: float = EPSILON, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.d_model = d_model
        self.epsilon = epsilon
        self.supports_masking = True

    def build(self, input_shape=None):
        shape = (self.d_model,)
        self.scale = self.add_weight(name="scale", shape=shape, initializer="ones", dtype="float32")
        self.bias = self.add_weight(name="bias", shape=shape, initializer="zeros", dtype="float32")

    def call(self, x):
        """Normalise x [..., D]; return float32 [..., D]."""
        scale, bias = tf.convert_to_tensor(self.scale), tf.convert_to_tensor(self.bias)
        return layer_norm(tf.cast(x, tf.float32), scale, bias, epsilon=self.epsilon)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "d_model": self.d_model, "epsilon": self.epsilon}


def layer_norm(
    x: tf.Tensor, scale: tf.Tensor, bias: tf.Tensor, *, epsilon: float = EPSILON
) -> tf.Tensor:
    """Return u * scale + bias, float32 [..., D], of x [..., D] with scale and bias [D].

    The gradient in closed form, with g = dy * scale and u and r of `standardized`:
    dx = r (g - mean(g) - u mean(g u)), dscale = sum(dy u), dbias = sum(dy).
    """

    @gradients.by_hand
    def normalized(x, scale, bias):
        u, r = standardized(x, epsilon)

        def gradient(dy: tf.Tensor):
            g = dy * scale
            mean_g = tf.reduce_mean(g, -1, keepdims=True)
            mean_gu = tf.reduce_mean(g * u, -1, keepdims=True)
            dx = (g - mean_g - u * mean_gu) * r
            return dx, linear.column_sums(dy * u), linear.column_sums(dy)

        return u * scale + bias, gradient

    return normalized(x, scale, bias)


def standardized(x: tf.Tensor, epsilon: float = EPSILON) -> tuple[tf.Tensor, tf.Tensor]:
    """Return u = (x - mean(x)) r [..., D] and r = 1 / sqrt(var(x) + epsilon) [..., 1] of x."""
    centered = x - tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), -1, keepdims=True)
    r = tf.math.rsqrt(variance + epsilon)
    return centered * r, r
