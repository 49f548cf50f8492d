"""Functions of the layers that decoding replaces, as by others for rounded weights."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any


class Replaceable:
    """A function, or what stands in its place in a context."""

    def __init__(self, function: Callable[..., Any]):
        self._current = contextvars.ContextVar(function.__name__, default=function)

    def __call__(self, *args: Any) -> Any:
        return self._current.get()(*args)

    @contextlib.contextmanager
    def replaced_by(self, function: Callable[..., Any]) -> Iterator[None]:
        """Let the layers that are called in this context call `function`."""
        token = self._current.set(function)
        try:
            yield
        finally:
            self._current.reset(token)
