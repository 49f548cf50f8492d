"""Linear maps of the last axis: x W and x W + b.

Shapes: N rows (all leading axes flattened), I and O input and output features.
"""

from collections.abc import Callable

import keras
import tensorflow as tf

from t2t_lite.model import gradients
from t2t_lite.model.replaceable import Replaceable

# (x [..., I], kernel [I, O], dtype) -> [..., O]
Project = Callable[[tf.Tensor, keras.Variable, str], tf.Tensor]


def matmul(x: tf.Tensor, kernel: keras.Variable, dtype: str) -> tf.Tensor:
    """Multiply the last axis of x [..., I] by kernel [I, O] in `dtype`; return [..., O].

    One flat matmul: a batched one would sum its kernel's gradient over the batch.
    """
    kernel = tf.convert_to_tensor(kernel)
    return tf.tensordot(tf.cast(x, dtype), tf.cast(kernel, dtype), axes=1)


project = Replaceable(matmul)


@gradients.by_hand
def add_bias(x: tf.Tensor, bias: tf.Tensor):
    """Add bias [O] to x [..., O].

    The gradient of the bias is the sum over rows, written as the product 1^T dy: TensorFlow's
    matrix product uses all cores, its BiasAddGrad does not.
    """

    def gradient(dy: tf.Tensor):
        return dy, tf.cast(column_sums(dy), bias.dtype)

    return tf.nn.bias_add(x, tf.cast(bias, x.dtype)), gradient


def column_sums(x: tf.Tensor) -> tf.Tensor:
    """Sum x [..., O] over all axes but the last, as the matrix product 1^T x; return [O]."""
    flat_NO = tf.reshape(x, [-1, x.shape[-1]])
    ones_1N = tf.ones([1, tf.shape(flat_NO)[0]], x.dtype)
    return tf.reshape(tf.matmul(ones_1N, flat_NO), [-1])
