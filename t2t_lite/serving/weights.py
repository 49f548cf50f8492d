"""A model's weights as they are saved: as they are, or as int8 with scales.

An int8 kernel [I, O] has one scale for each output, W[i, o] ~ q[i, o] * scale[o], so that the
largest weight of a column is 127; embeddings and positions have one for each row. The graph
multiplies anew in each call, in the model's own type: a quarter of float32's size, no faster.
"""

import contextlib
from collections.abc import Sequence

import keras
import tensorflow as tf

from t2t_lite.model import transformer

_LARGEST = 127.0


class Weights(tf.Module):
    """The variables of some models, to be saved with a graph that uses them."""

    def __init__(self, models: Sequence[transformer.Transformer]):
        super().__init__()
        self._variables = [variable.value for variable in _variables(models)]

    def used(self) -> contextlib.AbstractContextManager:
        """Return a context in which the models compute with these weights."""
        return contextlib.nullcontext()


class Int8Weights(tf.Module):
    """The same with every matrix rounded to int8."""

    def __init__(self, models: Sequence[transformer.Transformer]):
        super().__init__()
        # Not as an attribute: Keras' own variables would be saved too.
        variables = _variables(models)
        matrices = [variable for variable in variables if len(variable.shape) == 2]
        self._others = [v.value for v in variables if len(v.shape) != 2]
        rounded = [quantize(v.value, axis=_summed_axis(v)) for v in matrices]
        self._integers = [tf.Variable(integers, trainable=False) for integers, _ in rounded]
        self._scales = [tf.Variable(scale, trainable=False) for _, scale in rounded]
        self._restored = lambda: [
            (matrix, tf.cast(tf.cast(integers, tf.float32) * scale, matrix.dtype))
            for matrix, integers, scale in zip(matrices, self._integers, self._scales)
        ]

    def used(self) -> contextlib.AbstractContextManager:
        """Return a context in which the models compute with these weights."""
        return keras.StatelessScope(state_mapping=self._restored())


def quantize(matrix: tf.Tensor, *, axis: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return int8 and float32 scales with matrix ~ int8 * scales; maxima are over `axis`.

    The error of a weight is at most half a scale: max |W| / 254.
    """
    matrix = tf.cast(matrix, tf.float32)
    largest = tf.reduce_max(tf.abs(matrix), axis=axis, keepdims=True)
    scales = tf.where(largest > 0, largest, 1.0) / _LARGEST
    return tf.cast(tf.round(matrix / scales), tf.int8), scales


def _variables(models: Sequence[transformer.Transformer]) -> list[keras.Variable]:
    return [variable for model in models for variable in model.trainable_variables]


def _summed_axis(variable: keras.Variable) -> int:
    """Return the axis that one scale covers: a row of a table, a column of a kernel."""
    return 1 if variable.name in ("matrix", "table") else 0
