"""A polite stop: SIGTERM, Ctrl-C or a lost connection ends training after the step at hand."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from t2t_lite import quiet

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Interruption:
    """The name of the `signal` that asked to stop, or None."""

    def __init__(self) -> None:
        self.signal: str | None = None


@contextlib.contextmanager
def listening() -> Iterator[Interruption]:
    """Record the first such signal instead of dying of it; a second one kills as usual.

    Ignored signals, such as SIGHUP under nohup, stay ignored.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption  # only the main thread may handle signals
        return

    def remember(number, _):
        interruption.signal = signal.Signals(number).name
        if number == signal.SIGHUP:
            _leave_terminal()
        restore()

    handled = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    earlier = {number: signal.signal(number, remember) for number in handled}

    def restore():
        for number, handler in earlier.items():
            signal.signal(number, handler)

    try:
        yield interruption
    finally:
        restore()


def _leave_terminal() -> None:
    """Stop writing to a closed terminal: that would fail before the checkpoint is saved."""
    for descriptor in (1, 2):
        if os.isatty(descriptor):
            quiet.silence(descriptor)
