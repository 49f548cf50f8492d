"""Position-wise feed-forward network (Section 3.3): max(0, x W1 + b1) W2 + b2."""

import keras
import tensorflow as tf

from t2t_lite.model import dropout as dropouts
from t2t_lite.model import linear

ACTIVATIONS = {"relu": tf.nn.relu, "swish": tf.nn.silu}


@keras.saving.register_keras_serializable("t2t_lite")
class FeedForward(keras.layers.Layer):
    """Two linear maps with a ReLU between: [..., d_model] -> [..., d_ff] -> [..., d_model].

    Args:
      d_model: size of inputs and outputs.
      d_ff: size of the hidden layer.
      activation: "relu", or "swish" as in some models of other systems.
      dropout: rate of dropout on the hidden layer.
      seed_generator: for dropout; see Dropout.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        seed_generator: keras.random.SeedGenerator | None = None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.d_model = d_model
        self.d_ff = d_ff
        self.activation = activation
        self.activate = ACTIVATIONS[activation]
        self.dropout = dropouts.Dropout(dropout, seed_generator, name="dropout")
        self.supports_masking = True

    def build(self, input_shape=None):
        self.kernel_1 = self.add_weight(name="kernel_1", shape=(self.d_model, self.d_ff))
        self.bias_1 = self.add_weight(name="bias_1", shape=(self.d_ff,), initializer="zeros")
        self.kernel_2 = self.add_weight(name="kernel_2", shape=(self.d_ff, self.d_model))
        self.bias_2 = self.add_weight(name="bias_2", shape=(self.d_model,), initializer="zeros")

    def call(self, x, training=False):
        """Map x [..., D] to [..., D] in the compute type."""
        hidden = self.activate(self._affine(x, self.kernel_1, self.bias_1))
        hidden = self.dropout(hidden, training=training)
        return self._affine(hidden, self.kernel_2, self.bias_2)

    def _affine(self, x, kernel, bias) -> tf.Tensor:
        y = linear.project(x, kernel, self.compute_dtype)
        return linear.add_bias(y, tf.convert_to_tensor(bias))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        config = {name: getattr(self, name) for name in ("d_model", "d_ff", "activation")}
        return {**super().get_config(), **config, "dropout": self.dropout.rate}
