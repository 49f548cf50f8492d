"""A journal of results, so that an interrupted job resumes where it stopped.

A job works through its lines in windows. `<file>.partial`, beside the file that is to be written,
has lines of JSON: first the job, then for each window its number of lines and their digest, and its
results as they come: the window's number, the line's place in it, the output and its marks:

    {"model": ...}
    {"lines": 20000, "sha256": "..."}
    [0, 17, "Ein Hund rennt."]
    [0, 16, "Zwei Hunde", "unfinished"]

Only one window is ever held in memory. A journal that was made for another job, or for other lines,
is copied under another name first; so is one whose earlier windows are damaged.
"""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from t2t_lite import errors


class Result(NamedTuple):
    """A line's output, and marks for the report: "truncated" and others."""

    text: str
    marks: tuple[str, ...] = ()

    @classmethod
    def marked(cls, text: str, **marks: object) -> "Result":
        """Return a result with those marks that are true."""
        return cls(text, tuple(mark for mark, is_true in marks.items() if is_true))


class Journal:
    """The results of one job, window by window; a context manager that closes the file.

    While it is open no other process can open the journal of the same target: UserError.

    Args:
      target: the file that the job will write.
      job: everything on which the results depend.

    Attributes:
      kept_as: the copy of a journal that does not fit, None if there was none.
    """

    def __init__(self, target: str | os.PathLike[str], job: Mapping[str, Any]):
        target = pathlib.Path(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.path = target.with_name(target.name + ".partial")
        self.kept_as: pathlib.Path | None = None
        self._header = json.dumps(job, sort_keys=True)
        # Windows that are already there are read while they are passed, later ones are appended.
        self._file = _open_locked(self.path, target)
        first_line = _first_line(self.path)
        if first_line and first_line != f"{self._header}\n":
            if first_line.endswith("\n"):  # else its writer was killed before anything was done
                self._keep_copy()
            os.truncate(self.path, 0)
        self._lengths: list[int] = []  # of the windows that were begun
        self._old_windows = _windows(self.path)
        self._next_window = next(self._old_windows, None)
        if not self.path.stat().st_size:
            self._file.write(self._header + "\n")

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def begin(self, lines: Sequence[str]) -> dict[int, Result]:
        """Begin the next window; return the results that it has already, by place in the window."""
        results = self._begin(lines)
        self._lengths.append(len(lines))
        return results

    def _begin(self, lines: Sequence[str]) -> dict[int, Result]:
        window = {"lines": len(lines), "sha256": _digest(lines)}
        if self._next_window is None:
            self._file.write(f"\n{json.dumps(window)}\n")
            return {}
        old, self._next_window = self._next_window, next(self._old_windows, None)
        if old.header == window:
            return old.results
        # Other lines: what was made of those before stays, the rest is another job's.
        self._cut(old)
        return self._begin(lines)

    def add(self, results: Iterable[tuple[int, Result]]) -> None:
        """Write results of the window by place; a killed process loses none of them."""
        number = len(self._lengths) - 1
        # The line feed in front ends a line that an interruption tore.
        lines = [
            f"\n{json.dumps([number, place, text, *marks])}" for place, (text, marks) in results
        ]
        if lines and self._next_window is not None:
            # Only damage leaves a line open before a later window; appended, it would be in that.
            self._cut(self._next_window)
        self._file.writelines(lines)
        self._file.flush()

    def _cut(self, window: "_Window") -> None:
        """Copy the journal, and remove a window and those behind it."""
        self._keep_copy()
        os.truncate(self.path, window.start)
        self._old_windows, self._next_window = iter(()), None

    def outputs(self) -> Iterator[str]:
        """Yield the result of every line in order, "" where a line has none."""
        self._file.flush()
        # A journal of more lines than came this time has windows that nobody began.
        for length, window in zip(self._lengths, _windows(self.path)):
            yield from (window.results.get(place, Result("")).text for place in range(length))

    @property
    def is_empty(self) -> bool:
        """Whether there is no result, of this time or an earlier one."""
        self._file.flush()
        return not any(window.results for window in _windows(self.path))

    def delete(self) -> None:
        """Remove the file: the job is done. Windows that were not begun this time are copied."""
        if self._next_window is not None:
            self._keep_copy()
        self.path.unlink(missing_ok=True)
        self._file.close()

    def _keep_copy(self) -> None:
        """Copy the journal under a name that is free."""
        number = 1
        while (copy := self.path.with_name(f"{self.path.name}.{number}")).exists():
            number += 1
        shutil.copyfile(self.path, copy)
        self.kept_as = copy


class _Window:
    """One window of a journal: its header, its results by place, and where it starts."""

    def __init__(self, header: dict[str, Any], start: int):
        self.header = header
        self.start = start
        self.results: dict[int, Result] = {}


def _windows(path: pathlib.Path) -> Iterator[_Window]:
    """Yield a journal's windows; lines that were torn are passed over."""
    window, count, position = None, 0, 0
    with path.open("rb") as file:
        for number, line in enumerate(file):
            start, position = position, position + len(line)
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if number and isinstance(entry, dict) and {"lines", "sha256"} <= entry.keys():
                if window:
                    yield window
                window, count = _Window(entry, start), count + 1
            elif window:
                window.results.update(_results(entry, count - 1))
    if window:
        yield window


def _results(entry: Any, number: int) -> dict[int, Result]:
    """Return the result that a line of JSON holds, by place, if it is of the window of a number.

    One of another window stands there where that window's own header is lost.
    """
    match entry:
        case [int(window), int(place), str(text), *marks] if window == number:
            return {place: Result(text, tuple(mark for mark in marks if isinstance(mark, str)))}
    return {}


def _open_locked(path: pathlib.Path, target: pathlib.Path) -> IO[str]:
    """Open a journal to append to it; the lock goes with the process."""
    try:
        file = path.open("a", encoding="utf-8")
    except IsADirectoryError as error:
        raise errors.UserError(f"{path} is a folder: remove it, or give another file") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise errors.UserError(
            f"another process writes {target}: wait for it, or give another file"
        ) from error
    except OSError:
        pass  # a file system without locks
    return file


def _first_line(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return file.readline().decode("utf-8", errors="replace")


def _digest(lines: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8", errors="surrogatepass") + b"\n")
    return digest.hexdigest()
