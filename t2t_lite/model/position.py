"""Position encodings (Section 3.5 and row E of Table 3).

`sinusoid` is the paper's: PE(pos, 2i) = sin(pos / 10000^(2i / D)), PE(pos, 2i + 1) = cos(same).
`sinusoid_t2t`: all sines, then all cosines, wavelengths in D / 2 - 1 intervals, not D / 2.
`learned` is a table of vectors.
"""

import math

import keras
import tensorflow as tf


class PositionEncoding(keras.layers.Layer):
    """Turn positions into vectors.

    Args:
      kind: "sinusoid", "sinusoid_t2t" or "learned".
      d_model: width of the vectors; even for the sinusoids.
      max_length: rows of the learned table; a position beyond takes the last row.
      first: the number of the first position.
    """

    def __init__(self, kind: str, d_model: int, *, max_length: int = 256, first: int = 0, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.kind = kind
        self.d_model = d_model
        self.max_length = max_length
        self.first = first

    def build(self, input_shape=None):
        if self.kind == "learned":
            # The standard deviation of the token embeddings, which are scaled by sqrt(D) after.
            initializer = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
            shape = (self.max_length, self.d_model)
            self.table = self.add_weight(
                name="table", shape=shape, initializer=initializer, dtype="float32"
            )

    def call(self, positions):
        """Map int32 positions [...], counted from 0, to float32 vectors [..., D]."""
        positions += self.first
        if self.kind == "learned":
            table = tf.convert_to_tensor(self.table) * self.d_model**0.5
            return tf.gather(table, tf.minimum(positions, self.max_length - 1))
        if self.kind == "sinusoid":
            return sinusoid(positions, self.d_model)
        return sinusoid_halves(positions, self.d_model)


def sinusoid(positions: tf.Tensor, d_model: int) -> tf.Tensor:
    """Return the paper's encoding [..., D]: position 0 is 0, 1, 0, 1, ..."""
    rates = [10_000 ** (-2 * i / d_model) for i in range(d_model // 2)]
    angles = tf.cast(positions, tf.float32)[..., None] * tf.constant(rates)
    pairs = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)  # [..., D / 2, 2]
    return tf.reshape(pairs, tf.concat([tf.shape(positions), [d_model]], 0))


def sinusoid_halves(positions: tf.Tensor, d_model: int) -> tf.Tensor:
    """Return the encoding `sinusoid_t2t` [..., D]: position 0 is 0, ..., 0, 1, ..., 1."""
    step = math.log(10_000) / max(d_model // 2 - 1, 1)
    rates = [math.exp(-i * step) for i in range(d_model // 2)]
    angles = tf.cast(positions, tf.float32)[..., None] * tf.constant(rates)
    return tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)
