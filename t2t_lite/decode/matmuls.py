"""Matmuls with a decoder's weights: x W + b in float32, in bfloat16 or in 8-bit integers.

With few rows (the beams of one sentence) a matmul takes as long as reading its weights does, so
8-bit weights are up to four times as fast. Small kernels stay in floating point: rounding the input
would take longer than reading them.

Shapes: R rows, I and O input and output features.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite import errors

Matmul = Callable[[tf.Tensor], tf.Tensor]

# Weights of the smallest kernel that is worth rounding, and of the largest constant.
_LARGE = 2**17
_LARGEST = 127.0
_ZERO = 128


def matmul(
    kernel: tf.Tensor,
    bias: tf.Tensor | None = None,
    *,
    dtype: tf.DType,
    bounds: tf.Tensor | None = None,
) -> Matmul:
    """Return the function x [R, I] -> x W + b [R, O].

    Args:
      kernel: W [I, O]; for int8 its value must be known, so make the matmul outside tf.functions.
      bias: b [O], or None.
      dtype: float32, bfloat16, or int8: large kernels in 8-bit integers, small ones in float32;
        the result is float32 then.
      bounds: for int8 [I], how large |x[i]| gets, where that is known.

    Raises ValueError for int8 and a kernel whose value is not known.
    """
    if dtype == tf.int8:
        if not _is_known(kernel):
            raise ValueError("8-bit matmuls need known weights: freeze the translator")
        if is_large(kernel):
            return Int8Matmul(kernel, bias, bounds)
        dtype = tf.float32
    return FloatMatmul(tf.cast(kernel, dtype), None if bias is None else tf.cast(bias, dtype))


class FloatMatmul:
    """x W + b in the type of W."""

    def __init__(self, kernel: tf.Tensor, bias: tf.Tensor | None):
        # In bfloat16 a kernel whose columns lie in one piece is read faster, by up to a third.
        self._transposed = kernel.dtype == tf.bfloat16
        self._kernel = constant(tf.transpose(kernel) if self._transposed else kernel)
        self._bias = None if bias is None else constant(bias)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Return [R, O] of x [R, I] of any type."""
        x = tf.cast(x, self._kernel.dtype)
        y = tf.matmul(x, self._kernel, transpose_b=self._transposed)
        return y if self._bias is None else tf.nn.bias_add(y, self._bias)


class Int8Matmul:
    """x W + b with 8-bit integers for x and W.

    Each column of W has one scale, and each row of x has one, computed when it comes:

        x[i] ~ c[i] a / 127 with a = max |x|,  W[i, o] ~ q[i, o] s[o]
        y[o] ~ a s[o] / 127 (sum over i of c[i] q[i, o]) + b[o]

    The integer sums are exact, so a row's result does not depend on the other rows.

    Where `bounds` of x's features are known, as of a layer norm's output, x and W have one scale
    each. A feature's bound is multiplied into its row of W, larger inputs count as the bound, and
    TensorFlow's operation multiplies by the scales and adds the bias itself. That saves a pass over
    [R, O], which for a softmax costs more than the coarser rounding does.

    TensorFlow's operation takes the left factor unsigned, so c + 128 is multiplied, and the
    operation's own bias takes 128 times the column's sum off again.
    """

    def __init__(
        self, kernel: tf.Tensor, bias: tf.Tensor | None = None, bounds: tf.Tensor | None = None
    ):
        weights = tf.cast(kernel, tf.float32).numpy()
        self._scales = self._bias = self._factors = None
        if bounds is None:
            largest = np.abs(weights).max(axis=0)
            scales = np.where(largest > 0, largest, 1) / _LARGEST
            self._scales = (scales / _LARGEST).astype(np.float32)[None]
            self._bias = None if bias is None else constant(tf.cast(bias, tf.float32))
            self._unit, added = 1.0, 0
        else:
            limits = np.maximum(tf.cast(bounds, tf.float32).numpy(), np.finfo(np.float32).tiny)
            self._factors = (_LARGEST / limits).astype(np.float32)
            weights = weights * limits[:, None]
            scales = max(np.abs(weights).max(), np.finfo(np.float32).tiny) / _LARGEST
            unit = scales / _LARGEST  # the value of an integer sum of 1
            self._unit = float(unit)
            added = (
                np.zeros(weights.shape[1]) if bias is None else tf.cast(bias, tf.float32).numpy()
            )
            # A bias of -1e9, which hides a column, does not fit into an integer; -2^30 units do.
            added = np.clip(np.round(added / unit), -(2**30), 2**30).astype(np.int64)
        self._integers = np.round(weights / scales).astype(np.int8)
        offsets = added - _ZERO * self._integers.sum(axis=0, dtype=np.int64)
        self._offsets = offsets.astype(np.int32)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Return float32 [R, O] of x [R, I] of any type."""
        x = tf.cast(x, tf.float32)
        # Casting rounds down what is above zero: a half more rounds to the nearest.
        if self._scales is None:
            shifted = x * self._factors + (_ZERO + 0.5)
            return self.sums(tf.cast(tf.clip_by_value(shifted, 0.0, 255.0), tf.uint8))
        largest = tf.reduce_max(tf.abs(x), axis=1, keepdims=True)
        shifted = x * tf.math.divide_no_nan(_LARGEST, largest) + (_ZERO + 0.5)
        # The outer product: as a matmul it takes half as long as by broadcasting.
        scales = tf.matmul(largest, self._scales)
        y = self.sums(tf.cast(shifted, tf.uint8)) * scales
        return y if self._bias is None else y + self._bias

    def sums(self, codes: tf.Tensor) -> tf.Tensor:
        """Return float32 [R, O]: the unit times the sum over i of (codes[i] - 128) q[i, o], plus
        the bias where it has bounds, of codes uint8 [R, I].

        The weights are constants of the graph where they are used, even in a loop: only then does
        the operation keep them in the order in which it reads them.
        """
        return tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
            a=tf.bitcast(codes, tf.quint8),
            b=tf.bitcast(tf.constant(self._integers), tf.qint8),
            bias=tf.bitcast(tf.constant(self._offsets), tf.qint32),
            # With these ranges one step of the left factor is the unit, of the right factor 1.
            min_a=0.0,
            max_a=255.0 * self._unit,
            min_b=-_LARGEST,
            max_b=_LARGEST,
            min_freezed_output=-1.0,  # for integer outputs
            max_freezed_output=1.0,
            Toutput=tf.float32,
            input_quant_mode="SCALED",
        )


@functools.cache
def has_integers() -> bool:
    """Return whether this machine multiplies 8-bit integers exactly.

    Processors without AVX512 VNNI, AVX VNNI or AMX do not: TensorFlow's operation has no output
    there, or wrong sums, because they overflow. So it is tried before it is used.
    """
    with tf.init_scope():
        return bool(_is_exact())


def require_precision(precision: str) -> None:
    """Raise UserError where this machine cannot compute in a precision."""
    if precision == "mixed_int8" and tf.config.list_physical_devices("GPU"):
        raise errors.UserError(
            "precision=mixed_int8 is for processors: take precision=bfloat16 on a GPU, or "
            "CUDA_VISIBLE_DEVICES=-1 in the environment for the processor"
        )
    if precision == "mixed_int8" and not has_integers():
        raise errors.UserError(
            "precision=mixed_int8 needs a processor that multiplies 8-bit integers (AVX512 VNNI, "
            "AVX VNNI or AMX), which this one does not: take precision=mixed"
        )


def assert_integers() -> tf.Operation:
    """Return an operation that fails on a machine that does not multiply 8-bit integers exactly."""
    message = (
        "this processor does not multiply 8-bit integers: export with --precision=mixed or bfloat16"
    )
    return tf.debugging.Assert(_is_exact(), [message])


def _is_exact() -> tf.Tensor:
    """Return whether a matmul is right whose sums overflow in 16 bits."""
    with tf.init_scope():
        ones = Int8Matmul(tf.ones([64, 16]))
    sums = ones.sums(tf.fill([1, 64], tf.constant(255, tf.uint8)))
    return tf.math.count_nonzero(sums == 64 * (255 - _ZERO) * _LARGEST) == 16


def constant(tensor: tf.Tensor) -> Any:
    """Return a NumPy array, which becomes a constant of every graph that uses it, if a tensor is
    small and its value is known (it was made outside tf.functions); else the tensor.

    A loop need not hand on a graph's constants from step to step, which takes time.
    """
    return tensor.numpy() if not is_large(tensor) and _is_known(tensor) else tensor


def is_large(tensor: Any) -> bool:
    """Return whether a tensor or variable is large enough to be rounded as a kernel, and too large
    for a constant."""
    return math.prod(tensor.shape) >= _LARGE


def _is_known(tensor: tf.Tensor) -> bool:
    return hasattr(tensor, "numpy")
