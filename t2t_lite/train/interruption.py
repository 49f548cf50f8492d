"""A polite stop: SIGTERM or Ctrl-C ends training after the step at hand."""

import contextlib
import signal
import threading
from collections.abc import Iterator


class Interruption:
    """The name of the `signal` that asked to stop, or None."""

    def __init__(self) -> None:
        self.signal: str | None = None


@contextlib.contextmanager
def listening() -> Iterator[Interruption]:
    """Keep SIGTERM and SIGINT in mind instead of dying of them; a second one kills as usual."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption  # only the main thread may handle signals
        return

    def remember(number, _):
        interruption.signal = signal.Signals(number).name
        restore()

    earlier = {
        number: signal.signal(number, remember) for number in (signal.SIGTERM, signal.SIGINT)
    }

    def restore():
        for number, handler in earlier.items():
            signal.signal(number, handler)

    try:
        yield interruption
    finally:
        restore()
