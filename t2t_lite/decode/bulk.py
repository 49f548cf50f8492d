"""Decode a file on many machines with Apache Beam; the lines are those that one machine writes.

The file is cut into the same windows as on one machine, so that batches are the same. A worker
process has one model and writes the outputs of each window as one part, under its final name:

    out.de-00000-of-00050 ... out.de-00049-of-00050    20,000 lines each
    out.de.job.json                                    the job: model, options, source

Beam may repeat a window; the part is the same. After an interruption the same call resumes with the
missing parts. All workers must see the files and the output_dir.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from t2t_lite import errors, pipelines
from t2t_lite.decode import files, translator
from t2t_lite.decode import translation as translations
from t2t_lite.text import text_files

apache_beam = pipelines.apache_beam
from apache_beam.utils import shared  # noqa: E402  # pyright: ignore  (it is there)

# Figures of a report that are sums over its lines.
_FIGURES = ("blank", "lossy", "done", "truncated", "unfinished", "repaired", "unlabelled", "tokens")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A file to decode, the model and the options."""

    source: str
    target: str
    output_dir: str
    checkpoint_path: str | None
    changes: Mapping[str, Any]  # of the decoding options
    form: translations.Form = "text"
    columns: Sequence[str] = ("text",)

    def model(self) -> translator.Translator:
        """Load the model."""
        return translator.Translator.from_output_dir(
            self.output_dir, self.checkpoint_path, **self.changes
        )

    def part(self, index: int, count: int) -> pathlib.Path:
        """Return the file of a window's outputs."""
        return pathlib.Path(f"{self.target}-{index:05d}-of-{count:05d}")


def decode_file(job: Job, options: str) -> files.Report:
    """Translate a file with Beam's `options` (see pipelines.options); return the report.

    It counts lines that were cut and does not name them. Raises UserError for a compressed file,
    which a worker cannot read in part, for an empty one, and where another job's parts are.
    """
    parsed = pipelines.options(options)
    text_files.refuse_target(job.target, job.source)
    offsets, count = _offsets(job.source)
    num_windows = len(offsets) - 1
    _begin(job)
    missing = [i for i in range(num_windows) if not job.part(i, num_windows).exists()]
    report = files.Report(total=count, lines=count)
    report.resumed = count - sum(_num_lines(i, count) for i in missing)
    if not missing:
        return report
    pipeline = apache_beam.Pipeline(options=parsed)
    windows = [(i, i * files.WINDOW, offsets[i], offsets[i + 1]) for i in missing]
    _ = (
        pipeline
        | apache_beam.Create(windows)
        | apache_beam.Reshuffle()
        | apache_beam.ParDo(_Decode(job, num_windows))
    )
    with pipelines.running(parsed):
        result = pipeline.run()
        result.wait_until_finish()
    report.done = sum(_num_lines(i, count) for i in missing)
    with contextlib.suppress(NotImplementedError):  # some runners do not count: Dask's
        for counter in result.metrics().query()["counters"]:
            setattr(report, counter.key.metric.name, counter.result)
    return report


class _Decode(apache_beam.DoFn):
    """Decodes windows (number, first line, first byte, byte after the last) into their parts."""

    def __init__(self, job: Job, num_windows: int):
        self._job = job
        self._num_windows = num_windows
        self._shared = shared.Shared()
        self._counters = {
            name: apache_beam.metrics.Metrics.counter("t2t_lite", name) for name in _FIGURES
        }

    def setup(self) -> None:
        self._model = self._shared.acquire(self._job.model)  # one for all threads of a process

    def process(self, element: tuple[int, int, int, int]) -> None:
        index, first_line, start, end = element
        lines = text_files.read_range(self._job.source, start, end)
        report = files.Report()
        decoding = files.Decoding(self._model, self._job.form, self._job.columns)
        outputs = files.outputs(decoding, lines, report, first_line=first_line)
        path = self._job.part(index, self._num_windows)
        text_files.write_lines(path, files.lines_of(outputs))
        for name, counter in self._counters.items():
            counter.inc(getattr(report, name))


def _offsets(source: str) -> tuple[list[int], int]:
    """Return where the windows of a plain file begin, where the last ends, and the lines."""
    name = pathlib.Path(source).name
    if not os.path.isfile(source) or text_files.plain_name(name) != name:
        raise errors.UserError(
            f"{source}: expected a plain file, of which each worker reads its own part; unpack it"
        )
    offsets, count = text_files.line_offsets(source, files.WINDOW)
    if not count:
        raise errors.UserError(f"{source} is empty: expected one sentence a line")
    return offsets, count


def _num_lines(index: int, count: int) -> int:
    return min(files.WINDOW, count - index * files.WINDOW)


def _begin(job: Job) -> None:
    """Record the job, or raise UserError where the parts of another job are."""
    record = {
        **files.Decoding(job.model(), job.form, job.columns).job,
        "source_sha256": text_files.sha256(job.source),
    }
    path = pathlib.Path(f"{job.target}.job.json")
    if not path.exists():
        text_files.write_json(path, record)
    elif json.loads(path.read_bytes()) != record:
        raise errors.UserError(
            f"{path} is of other lines, another model or other options: give another "
            "--decode_to_file, or remove it and the parts beside it"
        )
