"""Dropout (Section 5.4) from few random bits.

A step of training makes one `Noise` from a seed; every dropout site of the model asks it for a
mask in the order of the graph. So a step's masks depend on nothing but the seed: a resumed run
draws what the uninterrupted one would, without a state to save.
"""

import tensorflow as tf


class Noise:
    """The random bits of one training step.

    Args:
      seed: int32 [2], different for every step and replica.
    """

    def __init__(self, seed: tf.Tensor):
        self._seed = seed
        self._sites = 0

    def keep_mask(self, shape: tf.Tensor, rate: float, dtype: tf.DType) -> tf.Tensor:
        """Return a mask of `shape`: 0 with probability `rate`, else 1 / (1 - rate).

        Sixteen random bits an element are compared with rate * 2^16, a rate exact to 1e-5; a
        uniform float an element takes twice the bits and a conversion. The scale is of `dtype`: in
        bfloat16 off by up to 0.2 %.
        """
        self._sites += 1
        size = tf.reduce_prod(shape)
        bits = tf.random.stateless_uniform(
            [(size + 1) // 2],
            seed=self._seed + [self._sites * 1_000_003, 0],
            minval=None,
            maxval=None,
            dtype=tf.uint32,
        )
        uniform = tf.reshape(tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size], shape)
        keep = uniform >= tf.constant(round(rate * 2**16), tf.uint16)
        return tf.cast(keep, dtype) * tf.constant(1 / (1 - rate), dtype)


def dropout(x: tf.Tensor, rate: float, noise: Noise | None) -> tf.Tensor:
    """Zero each element with probability `rate` and scale the rest; the identity without noise."""
    if noise is None or rate == 0:
        return x
    return x * noise.keep_mask(tf.shape(x), rate, x.dtype)
