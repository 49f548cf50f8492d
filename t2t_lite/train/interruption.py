"""A polite stop: SIGTERM or Ctrl-C ends training after the step at hand."""

import contextlib
import signal
import threading
from collections.abc import Iterator


class Interruption:
    """Which signal asked to stop, or None."""

    def __init__(self) -> None:
        self.signal: str | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextlib.contextmanager
def listening() -> Iterator[Interruption]:
    """Note SIGTERM and SIGINT instead of dying of them; a second one kills as usual."""
    asked = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield asked  # only the main thread may handle signals
        return

    def note(number, _):
        asked.signal = signal.Signals(number).name
        restore()

    handlers = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore():
        for number, handler in handlers.items():
            signal.signal(number, handler)

    try:
        yield asked
    finally:
        restore()
