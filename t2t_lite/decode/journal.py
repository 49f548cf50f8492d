"""Results already made, so that an interrupted job goes on where it stopped.

Beside the file that is to be written, `<file>.partial` holds what the job is (one line of JSON) and
then a line of JSON for each result as it comes: [index, text].
"""

import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any


class Journal:
    """The results of one job, by index; a context manager that closes the file.

    Args:
      target: the file that the job will write.
      job: whatever makes the results what they are; results of another job are discarded.
    """

    def __init__(self, target: str | os.PathLike[str], job: Mapping[str, Any]):
        target = pathlib.Path(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        self.path = target.with_name(target.name + ".partial")
        header = json.dumps(job, sort_keys=True)
        self.results = _read(self.path, header)
        self._file = self.path.open("a" if self.results else "w", encoding="utf-8")
        # The line feed ends a line that was torn by the interruption.
        self._file.write("\n" if self.results else header + "\n")

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, results: Iterable[tuple[int, str]]) -> None:
        """Note results; they are on disk when this returns."""
        for index, text in results:
            self.results[index] = text
            self._file.write(json.dumps([index, text]) + "\n")
        self._file.flush()

    def delete(self) -> None:
        """Remove the file: the job is done."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def _read(path: pathlib.Path, header: str) -> dict[int, str]:
    """Return the results of the same job; lines that were torn are passed over."""
    try:
        first, *lines = path.read_text("utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return {}
    if first != header:
        return {}
    results = {}
    for line in lines:
        try:
            index, text = json.loads(line)
        except ValueError:
            continue
        results[index] = text
    return results
