"""The residual connection around every sub-layer (Sections 3.1 and 5.4)."""

from collections.abc import Callable

import tensorflow as tf

# From [..., D] to [..., D]: a sub-layer, a norm or dropout.
Map = Callable[[tf.Tensor], tf.Tensor]


def residual(x: tf.Tensor, sublayer: Map, norm: Map, dropout: Map) -> tf.Tensor:
    """Return LayerNorm(x + Dropout(Sublayer(x))), float32 [..., D].

    Args:
      x: float32 [..., D], the residual stream.
      sublayer: returns any type.
      norm: layer normalisation, returns float32.
      dropout: of the sub-layer's output.
    """
    return norm(x + tf.cast(dropout(sublayer(x)), tf.float32))
