"""Progress of long work: a bar on a terminal, elsewhere a plain line now and then."""

import math
import time
from typing import IO

import tqdm

from t2t_lite import quiet

# Plain lines come after 1, 2, 4, 8, 16 and 32 seconds, then at this interval.
_LINE_SECONDS = 30


class Progress:
    """Shows how far one piece of work is; a context manager.

        with progress.Progress("sentences", stream=sys.stderr) as shown:
            shown.update(40, 200, figures="1,234 tokens/s")

        sentences 40/200  1,234 tokens/s  2:05 left

    Args:
      name: name of the work, or of what is counted.
      stream: where to show it; None: nowhere.
      first: how much was done before.
      announce: print a plain line as the work begins.

    If the reader of a pipe closes it (Ctrl-C ends `tee` before the work is saved), nothing more is
    shown and `reader_has_left` becomes true.
    """

    def __init__(
        self, name: str, *, stream: IO[str] | None, first: int = 0, announce: bool = False
    ):
        self._name = name
        self._stream = stream
        self._first = first
        self._start = self._line_time = time.monotonic()
        self._bar = None
        self.reader_has_left = False
        if stream is not None and stream.isatty():
            self._bar = tqdm.tqdm(
                desc=name, initial=first, unit="", file=stream, dynamic_ncols=True
            )
        elif announce:
            self.line(name)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(
        self,
        done: int,
        total: int = 0,
        *,
        figures: str = "",
        seconds_each: float | None = None,
        is_last: bool = False,
    ) -> None:
        """Show that `done` of `total` are done (0: the total is unknown), and some figures.

        A plain line is shown only if the last one is old enough, or if `is_last`. Its time left
        follows from `seconds_each`; None: from the mean so far; NaN: it is left out.
        """
        if self._bar is not None:
            self._bar.total = total or None
            self._bar.set_postfix_str(figures, refresh=False)
            self._bar.update(done - self._bar.n)
        elif is_last or self._is_time():
            self.line(self._text(done, total, figures, seconds_each))
            self._line_time = time.monotonic()

    def line(self, text: str) -> None:
        """Show one line without tearing the bar."""
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        elif self._stream is not None:
            try:
                print(text, file=self._stream, flush=True)
            except BrokenPipeError:
                # The stream's buffer must be flushed somewhere at exit.
                quiet.silence(self._stream.fileno())
                self._stream, self.reader_has_left = None, True

    def close(self) -> None:
        """Close the bar; it stays on the screen."""
        if self._bar is not None:
            self._bar.close()

    def _is_time(self) -> bool:
        """Return whether it is time for another plain line."""
        until_last = self._line_time - self._start
        return time.monotonic() - self._line_time >= min(max(until_last, 1), _LINE_SECONDS)

    def _text(self, done: int, total: int, figures: str, seconds_each: float | None) -> str:
        parts = [f"{self._name} {done}/{total}" if total else f"{self._name} {done}", figures]
        seconds = time.monotonic() - self._start
        # Work begins with compiling, so an earlier estimate would be wrong.
        if seconds_each is None and done > self._first and seconds >= _LINE_SECONDS:
            seconds_each = seconds / (done - self._first)
        if total and seconds_each is not None and not math.isnan(seconds_each):
            parts.append(f"{_duration((total - done) * seconds_each)} left")
        return "  ".join(filter(None, parts))


def _duration(seconds: float) -> str:
    """Return 3:05 for 185 seconds, 1:00:00 for an hour."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
