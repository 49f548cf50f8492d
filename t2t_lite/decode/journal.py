"""Results already made, so that an interrupted job goes on where it stopped.

A job works through its lines in windows. Beside the file that is to be written, `<file>.partial`
has lines of JSON: first what the job is, then of each window its number of lines and their digest,
and behind that its results as they come:

    {"model": ...}
    {"lines": 20000, "sha256": "..."}
    [17, "Ein Hund rennt."]

Only one window is ever held in memory. A journal that was made for another job, or for other lines,
is copied under another name first.
"""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from t2t_lite import errors


class Journal:
    """The results of one job, window by window; a context manager that closes the file.

    While it is open no other process can open the journal of the same target: UserError.

    Args:
      target: the file that the job will write.
      job: whatever makes the results what they are.

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

    def begin(self, lines: Sequence[str]) -> dict[int, str]:
        """Begin the next window; return the results that it has already, by place in the window."""
        results = self._begin(lines)
        self._lengths.append(len(lines))
        return results

    def _begin(self, lines: Sequence[str]) -> dict[int, str]:
        window = {"lines": len(lines), "sha256": _digest(lines)}
        if self._next_window is None:
            self._file.write(f"\n{json.dumps(window)}\n")
            return {}
        old, self._next_window = self._next_window, next(self._old_windows, None)
        if old.header == window:
            return old.results
        # Other lines: what was made of those before stays, the rest is another job's.
        self._keep_copy()
        os.truncate(self.path, old.start)
        self._old_windows, self._next_window = iter(()), None
        return self._begin(lines)

    def add(self, results: Iterable[tuple[int, str]]) -> None:
        """Note results of the window by place; they are handed to the system when this returns."""
        # The line feed in front ends a line that an interruption tore.
        self._file.writelines(f"\n{json.dumps([place, text])}" for place, text in results)
        self._file.flush()

    def outputs(self) -> Iterator[str]:
        """Yield the result of every line in order, "" where a line has none."""
        self._file.flush()
        # A journal of more lines than came this time has windows that nobody began.
        for length, window in zip(self._lengths, _windows(self.path)):
            yield from (window.results.get(place, "") for place in range(length))

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
        self.results: dict[int, str] = {}


def _windows(path: pathlib.Path) -> Iterator[_Window]:
    """Yield a journal's windows; lines that were torn are passed over."""
    window, position = None, 0
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
                window = _Window(entry, start)
            elif window and isinstance(entry, list) and len(entry) == 2:
                place, text = entry
                if isinstance(place, int) and isinstance(text, str):
                    window.results[place] = text
    if window:
        yield window


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
