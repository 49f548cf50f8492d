"""Dropout (Section 5.4) from few random bits."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("t2t_lite")
class Dropout(keras.layers.Layer):
    """Zero each element with probability `rate` in training, and scale the rest by 1 / (1 - rate).

    Args:
      rate: from 0, below 1.
      seed_generator: gives each call its seed; the layers of a model share one. Default: its own.
    """

    def __init__(
        self, rate: float, seed_generator: keras.random.SeedGenerator | None = None, **kwargs
    ):
        super().__init__(autocast=False, **kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be at least 0 and below 1, got {rate}")
        self.rate = rate
        self.seed_generator = seed_generator or keras.random.SeedGenerator()
        self.supports_masking = True

    def build(self, input_shape=None):
        """There is nothing to build."""

    def call(self, x, training=False):
        """Return x [...] with dropout if `training`, else x."""
        if not training or self.rate == 0:
            return x
        return x * keep_mask(tf.shape(x), self.rate, x.dtype, seed=self.seed_generator.next())

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}


def keep_mask(shape: tf.Tensor, rate: float, dtype: tf.DType, *, seed: tf.Tensor) -> tf.Tensor:
    """Return a mask of `shape`: 0 with probability `rate`, else 1 / (1 - rate).

    Sixteen random bits an element are compared with rate * 2^16, a rate exact to 1e-5; a uniform
    float an element takes twice the bits and a conversion. The scale is of `dtype`: in bfloat16 off
    by up to 0.2 %.
    """
    size = tf.reduce_prod(shape)
    bits = tf.random.stateless_uniform(
        [(size + 1) // 2], seed=seed, minval=None, maxval=None, dtype=tf.uint32
    )
    uniform = tf.reshape(tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size], shape)
    keep = uniform >= tf.constant(round(rate * 2**16), tf.uint16)
    return tf.cast(keep, dtype) * tf.constant(1 / (1 - rate), dtype)
