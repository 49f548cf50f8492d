"""Products with a decoder's weights: in float32, in bfloat16, or of 8-bit integers.

With few rows (the beams of one sentence) a product takes as long as reading its weights does, so
8-bit weights are up to four times as fast; with many rows a processor's units for small integers
are faster too.

Integers: a column of a kernel has one scale, set once, so that its largest weight is 127; a row of
the input has one, set anew in each product. The sum of the products of two integers is exact, so a
row's result does not depend on the other rows:

    x[i] ~ c[i] a / 127 with a = max |x|,  W[i, o] ~ q[i, o] s[o]
    y[o] ~ a s[o] / 127 (sum over i of c[i] q[i, o])

TensorFlow's operation takes the left factor unsigned, so c + 128 is multiplied, and 128 times the
column's sum, which the operation adds as its bias, is taken off again.

Where bounds of the input's features are known, as of what a layer norm returns, the softmax's
product needs neither scale: a feature's bound is multiplied into its row of W, so that all of x and
all of W have one scale each, which the operation itself multiplies with (`BoundedInt8Product`). A
pass over [R, V] would cost more than rounding a little more coarsely does.

Only processors with instructions for it (AVX512 VNNI, AVX VNNI, AMX) do this. On others
TensorFlow's operation has no output, or, where its oneDNN operations are forced on, sums that are
wrong because they overflow. So it is tried before it is used: `has_integers`, `assert_integers`.

A small kernel stays in floating point: the operations that round the input would take longer than
reading it does.

What a graph holds as a constant its loops need not hand on from step to step, which takes time too;
so small tensors whose values are known become constants.

Shapes: R rows, I and O input and output features.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite import errors

Product = Callable[[tf.Tensor], tf.Tensor]

# Weights of the smallest kernel that is worth rounding, and of the largest constant.
_LARGE = 2**17
_LARGEST = 127.0
_ZERO = 128


def product(
    kernel: tf.Tensor,
    bias: tf.Tensor | None = None,
    *,
    dtype: tf.DType,
    small_dtype: tf.DType = tf.float32,
    bounds: tf.Tensor | None = None,
) -> Product:
    """Return the function x [R, I] -> x W + b [R, O], of type `dtype`; of integers it is float32.

    Args:
      kernel: W [I, O]; for int8 its value must be known, so make the product outside tf.functions.
      bias: b [O], or None.
      dtype: in what it is computed: float32, bfloat16 or int8.
      small_dtype: in what that of a small kernel is computed if dtype is int8.
      bounds: [I], how large |x[i]| gets, where that is known: for int8.

    Raises ValueError for int8 and a kernel whose value is not known.
    """
    if dtype == tf.int8:
        if not _is_known(kernel):
            raise ValueError("products of integers need known weights: freeze the translator")
        if is_large(kernel):
            return (
                Int8Product(kernel, bias)
                if bounds is None
                else BoundedInt8Product(kernel, bias, bounds)
            )
        dtype = small_dtype
    return FloatProduct(tf.cast(kernel, dtype), None if bias is None else tf.cast(bias, dtype))


@functools.cache
def has_integers() -> bool:
    """Return whether this machine multiplies 8-bit integers exactly."""
    with tf.init_scope():
        return bool(_is_exact())


def require_precision(precision: str) -> None:
    """Raise UserError where this machine cannot compute in a precision."""
    if precision == "mixed_int8" and not has_integers():
        raise errors.UserError(
            "precision=mixed_int8 needs a processor that multiplies 8-bit integers (AVX512 VNNI, "
            "AVX VNNI or AMX), which this one does not: take precision=mixed"
        )


def assert_integers() -> tf.Operation:
    """Return what fails in a graph on a machine that does not multiply 8-bit integers exactly."""
    message = (
        "this processor does not multiply 8-bit integers: export with --precision=mixed or bfloat16"
    )
    return tf.debugging.Assert(_is_exact(), [message])


def _is_exact() -> tf.Tensor:
    """Return whether a product comes out right whose sums overflow if they are of 16 bits."""
    with tf.init_scope():
        ones = Int8Product(tf.ones([64, 16]), None)
    sums = ones.sums(tf.fill([1, 64], tf.constant(255, tf.uint8)))
    return tf.math.count_nonzero(sums == 64 * (255 - _ZERO) * _LARGEST) == 16


def constant(tensor: tf.Tensor) -> Any:
    """Return what becomes a constant of every graph that uses it, if the value of tensor is known
    (it was made outside tf.functions) and small; else the tensor."""
    return tensor.numpy() if not is_large(tensor) and _is_known(tensor) else tensor


def is_large(tensor: Any) -> bool:
    """Return whether a tensor or variable is large enough to be rounded as a kernel, and too large
    for a constant."""
    return math.prod(tensor.shape) >= _LARGE


def _is_known(tensor: tf.Tensor) -> bool:
    return hasattr(tensor, "numpy")


class FloatProduct:
    """x W + b in the type of W."""

    def __init__(self, kernel: tf.Tensor, bias: tf.Tensor | None):
        # In bfloat16 a kernel whose columns lie in one piece is read faster, by up to a third.
        self._transposed = kernel.dtype == tf.bfloat16
        self._kernel = constant(tf.transpose(kernel) if self._transposed else kernel)
        self._bias = None if bias is None else constant(bias)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Return [R, O] of x [R, I], whose type is anything."""
        x = tf.cast(x, self._kernel.dtype)
        y = tf.matmul(x, self._kernel, transpose_b=self._transposed)
        return y if self._bias is None else tf.nn.bias_add(y, self._bias)


class Int8Product:
    """x W + b with 8-bit integers for x and W, each with scales of its own, see above."""

    def __init__(self, kernel: tf.Tensor, bias: tf.Tensor | None):
        weights = tf.cast(kernel, tf.float32).numpy()
        largest = np.abs(weights).max(axis=0)
        scales = np.where(largest > 0, largest, 1) / _LARGEST
        self._weights = _Int8Weights(np.round(weights / scales))
        self._scales = (scales / _LARGEST).astype(np.float32)[None]
        self._bias = None if bias is None else constant(tf.cast(bias, tf.float32))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Return float32 [R, O] of x [R, I], whose type is anything."""
        x = tf.cast(x, tf.float32)
        largest = tf.reduce_max(tf.abs(x), axis=1, keepdims=True)
        # Casting rounds down what is above zero: a half more rounds to the nearest.
        shifted = x * tf.math.divide_no_nan(_LARGEST, largest) + (_ZERO + 0.5)
        # The outer product: as a product of matrices it takes half as long as by broadcasting.
        scales = tf.matmul(largest, self._scales)
        y = self.sums(tf.cast(shifted, tf.uint8)) * scales
        return y if self._bias is None else y + self._bias

    def sums(self, codes: tf.Tensor) -> tf.Tensor:
        """Return float32 [R, O]: sum_i (codes[i] - 128) q[i, o] of codes uint8 [R, I]."""
        return self._weights.sums(codes)


class BoundedInt8Product:
    """x W + b with 8-bit integers for x and W, and one scale for all of either.

    What is beyond its bound counts as the bound.
    """

    def __init__(self, kernel: tf.Tensor, bias: tf.Tensor | None, bounds: tf.Tensor):
        limits = np.maximum(tf.cast(bounds, tf.float32).numpy(), np.finfo(np.float32).tiny)
        weights = tf.cast(kernel, tf.float32).numpy() * limits[:, None]
        scale = max(np.abs(weights).max(), np.finfo(np.float32).tiny) / _LARGEST
        step = scale / _LARGEST  # what a sum of 1 stands for
        added = np.zeros(weights.shape[1]) if bias is None else tf.cast(bias, tf.float32).numpy()
        # A bias that hides a column, -1e9, would not fit into an integer; -2^30 steps hide it, too.
        added = np.clip(np.round(added / step), -(2**30), 2**30).astype(np.int64)
        self._weights = _Int8Weights(np.round(weights / scale), added=added, step=step)
        self._factors = (_LARGEST / limits).astype(np.float32)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Return float32 [R, O] of x [R, I], whose type is anything."""
        shifted = tf.cast(x, tf.float32) * self._factors + (_ZERO + 0.5)
        return self._weights.sums(tf.cast(tf.clip_by_value(shifted, 0.0, 255.0), tf.uint8))


class _Int8Weights:
    """The right factor q [I, O] of a product of integers, what is added to a sum, and its unit."""

    def __init__(self, integers: np.ndarray, *, added: np.ndarray | int = 0, step: float = 1.0):
        self._integers = integers.astype(np.int8)
        offsets = added - _ZERO * self._integers.sum(axis=0, dtype=np.int64)
        self._offsets = offsets.astype(np.int32)
        self._step = float(step)

    def sums(self, codes: tf.Tensor) -> tf.Tensor:
        """Return float32 [R, O]: step * (added[o] + sum_i (codes[i] - 128) q[i, o]) of codes uint8
        [R, I].

        The weights are constants of the graph where they are used, even in a loop: only such does
        the operation keep in the order in which it reads them.
        """
        return tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
            a=tf.bitcast(codes, tf.quint8),
            b=tf.bitcast(tf.constant(self._integers), tf.qint8),
            bias=tf.bitcast(tf.constant(self._offsets), tf.qint32),
            # Such ranges that one step of the left factor is `step`, of the right one 1.
            min_a=0.0,
            max_a=255.0 * self._step,
            min_b=-_LARGEST,
            max_b=_LARGEST,
            min_freezed_output=-1.0,  # for integer outputs
            max_freezed_output=1.0,
            Toutput=tf.float32,
            input_quant_mode="SCALED",
        )
