"""Normal numbers, the same in each test whichever came before (model/conftest.py)."""

import numpy as np
import tensorflow as tf

_RANDOM = np.random.default_rng(0)


def restart() -> None:
    """Begin with the first draw again."""
    _RANDOM.bit_generator.state = np.random.default_rng(0).bit_generator.state


def normal(*shape: int) -> tf.Tensor:
    """Draw a tensor."""
    return tf.constant(_RANDOM.normal(size=shape), tf.float32)
