"""Position encodings (Section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i / D)), PE(pos, 2i + 1) = cos(same)

Shapes: D d_model.
"""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("t2t_lite")
class PositionalEncoding(keras.layers.Layer):
    """Turn positions into vectors, the paper's sinusoids.

    Args:
      d_model: D, even.
    """

    def __init__(self, d_model: int, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.d_model = d_model

    def call(self, positions):
        """Map int32 positions [...], counted from 0, to float32 vectors [..., D]."""
        return sinusoid(positions, self.d_model)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.d_model)

    def get_config(self):
        return {**super().get_config(), "d_model": self.d_model}


def sinusoid(positions: tf.Tensor, d_model: int) -> tf.Tensor:
    """Return the paper's encoding [..., D]: position 0 is 0, 1, 0, 1, ..."""
    rates = [10_000 ** (-2 * i / d_model) for i in range(d_model // 2)]
    angles = tf.cast(positions, tf.float32)[..., None] * tf.constant(rates)
    pairs = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)  # [..., D / 2, 2]
    return tf.reshape(pairs, tf.concat([tf.shape(positions), [d_model]], 0))


@keras.saving.register_keras_serializable("t2t_lite")
class LearnedPositions(PositionalEncoding):
    """A learned vector for each position (row E of Table 3).

    Args:
      d_model: D.
      max_length: rows of the table; a position beyond takes the last row.
    """

    def __init__(self, d_model: int, *, max_length: int = 256, **kwargs):
        super().__init__(d_model, **kwargs)
        self.max_length = max_length

    def build(self, input_shape=None):
        # The standard deviation of the token embeddings, which are scaled by sqrt(D) after.
        initializer = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        shape = (self.max_length, self.d_model)
        self.table = self.add_weight(
            name="table", shape=shape, initializer=initializer, dtype="float32"
        )

    def call(self, positions):
        """Map int32 positions [...], counted from 0, to float32 vectors [..., D]."""
        table = tf.convert_to_tensor(self.table) * self.d_model**0.5
        return tf.gather(table, tf.minimum(positions, self.max_length - 1))

    def get_config(self):
        return {**super().get_config(), "max_length": self.max_length}
