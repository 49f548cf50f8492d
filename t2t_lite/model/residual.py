"""The residual connection around every sub-layer (Sections 3.1 and 5.4):
LayerNorm(x + Dropout(Sublayer(x)))."""

from collections.abc import Callable

import tensorflow as tf

from t2t_lite.model import dropout


def residual(
    x: tf.Tensor,
    sublayer: Callable[[tf.Tensor], tf.Tensor],
    norm: Callable[[tf.Tensor], tf.Tensor],
    *,
    pre_norm: bool = False,
    dropout_rate: float = 0.0,
    noise: dropout.Noise | None = None,
) -> tf.Tensor:
    """Return LayerNorm(x + Dropout(Sublayer(x))); if pre_norm, x + Dropout(Sublayer(LayerNorm(x))).

    Args:
      x: float32 [..., D], the residual stream.
      sublayer: maps [..., D] to [..., D], of any type.
      norm: layer normalisation, [..., D] to float32 [..., D].
      pre_norm: whether the sub-layer's input is normalised instead of the sum.
      dropout_rate: of the sub-layer's output, with `noise`.
      noise: the random bits of a training step.

    Returns:
      float32 [..., D].
    """
    y = sublayer(norm(x) if pre_norm else x)
    y = x + tf.cast(dropout.dropout(y, dropout_rate, noise), tf.float32)
    return y if pre_norm else norm(y)
