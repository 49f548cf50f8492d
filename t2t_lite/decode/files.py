"""Files in, files out: decoding and scoring, line for line.

A line ends at "\\n" and nowhere else; every input line has exactly one output line, in order. Lines
are read in windows, so that a file of any size takes the same memory. Results are kept beside the
target until all are there: the same call resumes after an interruption (see journal).

    decode_file  source file -> lines -> write
    write        lines -> outputs -> target file, by way of a journal
    outputs      windows of lines -> batches of results (by Decoding or Scoring) -> output lines
"""

import contextlib
import dataclasses
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from t2t_lite import errors
from t2t_lite.decode import forced, journal, options, translator
from t2t_lite.decode import translation as translations
from t2t_lite.text import labels, text_files

Path = str | os.PathLike[str]
# Lines of a window: enough to make batches of like length, and some 30 MB.
WINDOW = 20_000
# Options that change the speed of decoding and not its outputs.
_OF_SPEED = ("batch_size", "batch_tokens")
_NAMED = 10  # line numbers that a report names
# What a column of an input line can be: the text, what its output begins with, and its target
# language. Empty fields are as if there were no such column. JSONL: lines are JSON objects with
# these keys, others are not read.
COLUMNS = ("text", "prefix", "target_language")
JSONL = ("jsonl",)


@dataclasses.dataclass
class Report:
    """Counts of a job's lines, and what it took.

    Counts of lines that were cut or repaired include those from an interrupted run.
    """

    total: int | None = None  # all lines, None while unknown
    lines: int = 0  # read so far
    blank: int = 0  # nothing to decode
    lossy: int = 0  # not valid UTF-8
    resumed: int = 0  # done by an interrupted run
    done: int = 0  # decoded by this run
    truncated: int = 0  # inputs longer than max_source_length
    truncated_lines: list[int] = dataclasses.field(default_factory=list)  # the first, from 1
    unfinished: int = 0  # outputs cut off at the length limit
    repaired: int = 0  # a parser's outputs that were not trees
    unlabelled: int = 0  # inputs without the target language that the model wants
    tokens: int = 0  # of the best outputs of this run
    seconds: float = 0.0
    kept_as: os.PathLike[str] | None = None  # the copy of a journal of another job

    @property
    def left(self) -> int:
        """The number of lines still to decode, among those that are known."""
        return (self.total or self.lines) - self.blank - self.resumed - self.done

    def count(self, number: int, result: journal.Result) -> None:
        """Count what was cut or repaired of a line, by its number from 1."""
        self.unfinished += "unfinished" in result.marks
        self.repaired += "repaired" in result.marks
        self.unlabelled += "unlabelled" in result.marks
        if "truncated" in result.marks:
            self.truncated += 1
            if self.truncated <= _NAMED:
                self.truncated_lines = sorted([*self.truncated_lines, number])


# Called with the report so far after every batch.
Progress = Callable[[Report], None]
# (place in the window, result, tokens of the output; 0 for a line with nothing to decode)
Batch = list[tuple[int, journal.Result, int]]


class Work(Protocol):
    """What becomes of lines: `Decoding` or `Scoring`.

    `job` identifies it in a journal; `skips_blank` tells whether a blank line is not decoded.
    """

    job: Mapping[str, Any]
    skips_blank: bool

    def batches(self, window: list[Any], places: list[int], first: int) -> Iterator[Batch]:
        """Yield the results of the lines at some places of a window, which begins at line `first`
        (from 0) of the file, as they come."""
        ...


def decode_file(
    model: translator.Translator,
    source: Path,
    target: Path,
    *,
    form: translations.Form = "text",
    columns: Sequence[str] = ("text",),
    progress: Progress | None = None,
) -> Report:
    """Translate a file; the target appears when it is complete.

    Raises UserError for an empty file, and where source and target are one file.
    """
    text_files.refuse_target(target, source)
    lines, total = text_files.read_lines(source), count_lines(source)
    return write(Decoding(model, form, columns), lines, target, total=total, progress=progress)


def write(
    work: Work,
    lines: Iterable[Any],
    target: Path,
    *,
    total: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Write the outputs of lines (of pairs for Scoring); to a file by way of a journal, which is
    removed at the end. A device or a pipe gets each window as soon as it is done."""
    report = Report(total=total)
    if text_files.is_special(target):
        text_files.write_lines(target, lines_of(outputs(work, lines, report, progress=progress)))
        return report
    text_files.refuse_target(target)
    with journal.Journal(target, work.job) as kept:
        for _ in outputs(work, lines, report, kept, progress=progress):
            pass
        text_files.write_lines(target, lines_of(kept.outputs()))
        kept.delete()
        report.kept_as = kept.kept_as
    return report


def outputs(
    work: Work,
    lines: Iterable[Any],
    report: Report,
    kept: journal.Journal | None = None,
    *,
    first_line: int = 0,
    progress: Progress | None = None,
) -> Iterator[str]:
    """Yield an output for every line, window by window, and keep the report.

    That is one line, or in the form "moses" one for each hypothesis with line feeds between.
    `first_line` is the number of the first one in its file, from 0.
    """
    start, windows = time.monotonic(), text_files.windows(lines, WINDOW)
    for first, window in zip(itertools.count(first_line, WINDOW), windows):
        texts = ["\t".join(line) if isinstance(line, tuple) else line for line in window]
        results = kept.begin(texts) if kept else {}
        is_blank = [work.skips_blank and not text.strip() for text in texts]
        report.lines += len(window)
        report.blank += sum(is_blank)
        report.lossy += sum(text_files.REPLACEMENT in text for text in texts)
        report.resumed += sum(not is_blank[place] for place in results)
        for place, result in sorted(results.items()):
            report.count(first + place + 1, result)
        places = [place for place in range(len(window)) if place not in results]
        for batch in work.batches(window, places, first):
            new = [(place, result) for place, result, _ in batch]
            results.update(new)
            if kept:
                kept.add(new)
            for place, result, num_tokens in batch:
                report.count(first + place + 1, result)
                report.done += num_tokens > 0
                report.tokens += num_tokens
            report.seconds = time.monotonic() - start
            if progress:
                progress(report)
        yield from (results[place].text for place in range(len(window)))


def lines_of(texts: Iterable[str]) -> Iterator[str]:
    """Yield the lines of outputs: one each, or in the form "moses" one for each hypothesis."""
    for text in texts:
        yield from text.split("\n")


class Decoding:
    """Translates lines with a model, and writes them in a form.

    `columns` names what stands between the tabs of a line; see COLUMNS.
    """

    skips_blank: bool = True

    def __init__(
        self,
        model: translator.Translator,
        form: translations.Form = "text",
        columns: Sequence[str] = ("text",),
    ):
        self._model = model
        self._form: translations.Form = form
        self._columns = check_columns(columns)
        self.job: Mapping[str, Any] = {
            "decode": model.fingerprint or model.name,
            "options": _identity(model),
            "form": form,
            "columns": list(columns),
        }

    def batches(self, window: list[str], places: list[int], first: int) -> Iterator[Batch]:
        """See Work; blank lines, whose output does not depend on the model, come last."""
        blank = set(places)
        rows = [
            self.read(line, first + place) if place in blank else ("", "")
            for place, line in enumerate(window)
        ]
        texts, prefixes = zip(*rows) if rows else ((), ())
        for batch in self._model.translate_batches(texts, prefixes=prefixes, first_index=first):
            blank.difference_update(place for place, _ in batch)
            yield [
                (place, self.result(item, first + place), len(item.ids)) for place, item in batch
            ]
        if blank:
            yield [
                (place, self.result(translator.BLANK, first + place), 0) for place in sorted(blank)
            ]

    def read(self, line: str, number: int) -> tuple[str, str]:
        """Return the text of the line of a number (from 0), and what its output begins with."""
        row = _row(line, self._columns, number) if line.strip() else {}
        text, language = row.get("text", ""), row.get("target_language")
        if language and text.strip():
            text = f"{labels.of_language(language, self._model.vocabulary.labels)} {text}"
        return text, row.get("prefix") or self._model.options.prefix

    def result(self, translation: translator.Translation, number: int) -> journal.Result:
        """Return the output for the line of a number (from 0), and what is to be said of it."""
        return journal.Result.marked(
            self._line(translation, number),
            truncated=translation.truncated,
            unfinished=not translation.finished,
            repaired=translation.repairs,
            unlabelled=self._model.vocabulary.lacks_label(translation.source_ids),
        )

    def _line(self, translation: translator.Translation, number: int) -> str:
        if self._form == "moses":
            asked = {name: getattr(self._model.options, name) for name in options.DETAILS}
            return translations.moses(translation, number, self._model.vocabulary, **asked)
        if self._form == "jsonl":
            return translations.json_line(translation, self._model.vocabulary)
        return translations.line(translation, is_nbest=self._model.options.return_beams > 1)


class Scoring:
    """Scores pairs (input, output) with a model, even empty outputs: log-probability, loss of a
    token and tokens, with tabs between."""

    skips_blank: bool = False

    def __init__(self, model: translator.Translator):
        self._model = model
        self.job: Mapping[str, Any] = {
            "score": model.fingerprint or model.name,
            "options": _identity(model),
        }

    def batches(
        self, window: list[tuple[str, str]], places: list[int], first: int
    ) -> Iterator[Batch]:
        """See Work."""
        inputs, targets = ([window[place][side] for place in places] for side in (0, 1))
        for batch in self._model.score_batches(inputs, targets):
            yield [(places[index], self._result(score), score.num_tokens) for index, score in batch]

    def _result(self, score: forced.PairScore) -> journal.Result:
        return journal.Result.marked(
            f"{score.log_probability:.6f}\t{score.loss:.6f}\t{score.num_tokens}",
            truncated=score.truncated,
            unfinished=score.target_truncated,
        )


def _identity(model: translator.Translator) -> dict[str, Any]:
    """Return the options on which a line's output depends."""
    chosen = dataclasses.asdict(model.options)
    return {name: value for name, value in chosen.items() if name not in _OF_SPEED}


def _row(line: str, columns: Sequence[str], number: int) -> Mapping[str, str]:
    """Return the fields of a line by their columns."""
    if columns == JSONL:
        with contextlib.suppress(ValueError, RecursionError, KeyError, TypeError):
            given = dict(json.loads(line))
            row = {name: given.get(name) or "" for name in COLUMNS} | {"text": given["text"]}
            if all(isinstance(field, str) for field in row.values()):
                return row
        expected, got = '{"text": "...", "prefix": "...", "target_language": "..."}', line[:60]
    else:
        fields = line.split("\t") if len(columns) > 1 else [line]
        if len(fields) == len(columns):
            return dict(zip(columns, fields))
        expected = f"{len(columns)} columns with tabs between ({', '.join(columns)})"
        got = len(fields)
    raise errors.UserError(f"line {number + 1}: expected {expected}, got {got}")


def check_columns(columns: Sequence[str]) -> Sequence[str]:
    """Return the names of an input's columns; raise UserError where they are not such."""
    columns = tuple(columns)
    if columns == JSONL:
        return columns
    if "text" not in columns or len({*columns}) < len(columns) or {*columns} - {*COLUMNS}:
        raise errors.UserError(
            f"--columns names text and others of {', '.join(COLUMNS)}, in the order of the lines' "
            f"columns, or is jsonl; got {','.join(columns)}"
        )
    return columns


def count_lines(path: Path) -> int | None:
    """Return how many lines a file has, None for a pipe; raise UserError for an empty one."""
    if text_files.is_special(path):
        return None
    total = sum(1 for _ in text_files.read_lines(path))
    if not total:
        raise errors.UserError(f"{path} is empty: expected one sentence a line")
    return total


def read_pairs(score_path: Path, source: Path | None) -> Iterator[tuple[str, str]]:
    """Yield the pairs to score.

    Args:
      score_path: the outputs, one a line; without `source`, lines "input TAB output".
      source: the inputs, one a line.
    """
    if source is not None:
        counts = count_lines(source), count_lines(score_path)
        if None not in counts and counts[0] != counts[1]:
            raise errors.UserError(
                f"{source} has {errors.counted(counts[0] or 0, 'line')}, {score_path} "
                f"has {counts[1]}: "
                "expected an output for every input"
            )
        yield from text_files.read_pairs(source, score_path)
        return
    for number, text in enumerate(text_files.read_lines(score_path), start=1):
        before, tab, after = text.partition("\t")
        if not tab:
            raise errors.UserError(
                f"{score_path}, line {number}: expected an input, a tab and an output "
                "(or give the inputs with --decode_from_file)"
            )
        yield before, after
