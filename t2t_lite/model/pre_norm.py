"""Layer normalisation before each sub-layer and after each stack, where the paper has it after
each sub-layer (Xiong et al. 2020)."""

import keras
import tensorflow as tf

from t2t_lite.model import normalization
from t2t_lite.model import residual as residuals


def residual(
    x: tf.Tensor, sublayer: residuals.Map, norm: residuals.Map, dropout: residuals.Map
) -> tf.Tensor:
    """Return x + Dropout(Sublayer(LayerNorm(x))); the arguments are those of the paper's."""
    return x + tf.cast(dropout(sublayer(norm(x))), tf.float32)


@keras.saving.register_keras_serializable("t2t_lite")
class FinalNorm(normalization.LayerNormalization):
    """The norm after a stack, called as the last of its layers."""

    def call(self, x, *_, **__):
        """Normalise x [..., D]; return float32 [..., D]."""
        return super().call(x)
