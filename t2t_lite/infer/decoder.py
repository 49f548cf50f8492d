"""Files in, files out: decoding and scoring line for line (floor 4).

A line ends at "\\n" and nowhere else; every input line has exactly one output line, in its order.
"""

import dataclasses
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from t2t_lite import errors
from t2t_lite.data import text_files
from t2t_lite.infer import journal, scoring, translator

Path = str | os.PathLike[str]


@dataclasses.dataclass
class Report:
    """What a file's lines were, and what decoding them took."""

    lines: int = 0
    blank: int = 0
    lossy: int = 0  # not valid UTF-8
    truncated: int = 0  # longer than max_source_length
    unfinished: int = 0  # outputs cut off at the length limit
    resumed: int = 0  # already there from an interrupted run
    tokens: int = 0  # of the outputs
    seconds: float = 0.0


# Called with the report so far, after every batch; `done` lines of `total` have their output.
Progress = Callable[[Report, int, int], None]


def _silent(report: Report, done: int, total: int) -> None:
    pass


def decode_file(
    model: translator.Translator, source: Path, target: Path, *, progress: Progress = _silent
) -> Report:
    """Translate a file; the target appears when it is complete.

    What is done is kept beside the target, so that the same call after an interruption goes on.
    Raises UserError for an empty file.
    """
    lines = read_lines(source)
    job = {"source": _digest(lines), "checkpoints": model.name, "options": str(model.options)}
    with journal.Journal(target, job) as done:
        report = _report(lines)
        report.resumed = len(done.results)
        for index, text in _decode(model, lines, report, done.results.keys()):
            done.add([(index, text)])
            progress(report, len(done.results), len(lines) - report.blank)
        text_files.write_lines(target, [done.results.get(i, "") for i in range(len(lines))])
        done.delete()
    return report
