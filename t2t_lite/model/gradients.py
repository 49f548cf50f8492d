"""Gradients that are written by hand, and graphs that need none.

TensorFlow keeps all of a graph in which tf.custom_gradient was called, weights too, for as long as
the process lives. A service that loads models anew would grow with each, so decoding leaves it out.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

_are_needed: contextvars.ContextVar[bool] = contextvars.ContextVar("are_needed", default=True)


def by_hand(function: Callable[..., tuple[tf.Tensor, Callable]]) -> Callable[..., Any]:
    """Return tf.custom_gradient(function), or in `not_needed` what it computes alone."""
    with_gradient = tf.custom_gradient(function)

    @functools.wraps(function)
    def called(*args):
        return with_gradient(*args) if _are_needed.get() else function(*args)[0]

    return called


@contextlib.contextmanager
def not_needed() -> Iterator[None]:
    """Let no layer that is called in this context have a gradient by hand."""
    token = _are_needed.set(False)
    try:
        yield
    finally:
        _are_needed.reset(token)
