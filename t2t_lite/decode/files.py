"""Files in, files out: decoding and scoring, line for line.

A line ends at "\\n" and nowhere else; every input line has exactly one output line, in its order.
Lines are taken in windows, so that a file of any size takes the same memory, and what is done is
kept beside the target until all is: the same call after an interruption goes on (see journal).
"""

import collections
import dataclasses
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from t2t_lite import errors
from t2t_lite.decode import formats, journal, scoring, translator
from t2t_lite.text import text_files

Path = str | os.PathLike[str]
# Lines of a window: enough to make batches of like length, and some 30 MB.
WINDOW = 20_000
# Options that change how fast a line is decoded, not what comes of it.
_NO_DIFFERENCE = ("batch_size", "batch_tokens")
_NAMED = 10  # line numbers that a report names


@dataclasses.dataclass
class Report:
    """What the lines of a job were, and what it took."""

    total: int | None = None  # lines in all; None while nobody knows
    lines: int = 0  # read so far
    blank: int = 0  # nothing to decode
    lossy: int = 0  # not valid UTF-8
    resumed: int = 0  # already there from an interrupted run
    done: int = 0  # decoded by this run
    truncated: int = 0  # of both, inputs longer than max_source_length
    truncated_lines: list[int] = dataclasses.field(default_factory=list)  # the first, from 1
    unfinished: int = 0  # of both, outputs cut off at the length limit
    repaired: int = 0  # of both, a parser's outputs that were no trees
    tokens: int = 0  # of the best outputs of this run
    seconds: float = 0.0
    kept_as: os.PathLike[str] | None = None  # the copy of a journal that did not fit

    @property
    def left(self) -> int:
        """The number of lines still to decode, of those that are known."""
        return (self.total or self.lines) - self.blank - self.resumed - self.done

    def count(self, number: int, result: journal.Result) -> None:
        """Count what was cut or repaired of a line, by its number from 1."""
        self.unfinished += "unfinished" in result.marks
        self.repaired += "repaired" in result.marks
        if "truncated" in result.marks:
            self.truncated += 1
            if self.truncated <= _NAMED:
                self.truncated_lines = sorted([*self.truncated_lines, number])


# Called with the report so far after every batch.
Progress = Callable[[Report], None]


def _silent(report: Report) -> None:
    pass


def decode_file(
    model: translator.Translator,
    source: Path,
    target: Path,
    *,
    form: formats.Form = "text",
    progress: Progress = _silent,
) -> Report:
    """Translate a file; the target appears when it is complete.

    Raises UserError for an empty file, and where source and target are one file.
    """
    refuse_one_file(source, target)
    return decode_lines(
        model,
        text_files.read_lines(source),
        target,
        form=form,
        total=count_lines(source),
        progress=progress,
    )


def decode_lines(
    model: translator.Translator,
    lines: Iterable[str],
    target: Path,
    *,
    form: formats.Form = "text",
    total: int | None = None,
    progress: Progress = _silent,
) -> Report:
    """Translate lines into a file; a device or a pipe gets each window as soon as it is done."""
    report = Report(total=total)
    job = {"decode": model.fingerprint or model.name, "options": identity(model)}
    if form != "text":
        job["form"] = form
    _write(
        target,
        job,
        lambda kept: decode(model, lines, report, kept, form=form, progress=progress),
        report,
    )
    return report


def decode(
    model: translator.Translator,
    lines: Iterable[str],
    report: Report,
    kept: journal.Journal | None = None,
    *,
    form: formats.Form = "text",
    first_line: int = 0,
    progress: Progress = _silent,
) -> Iterator[str]:
    """Yield an output for every line, window by window, and keep the report.

    That is one line, or in the form "moses" one for each hypothesis with line feeds between.
    `first_line` is the number of the first one in its file, from 0.
    """
    start = time.monotonic()
    write = writer(model, form)
    for first, window in _windows(lines, first_line):
        results = kept.begin(window) if kept else {}
        _count(report, window, results, first)
        missing = ["" if place in results else text for place, text in enumerate(window)]
        for batch in model.translate_batches(missing, first_index=first):
            new = [(place, result(item, write(item, first + place))) for place, item in batch]
            for place, each in new:
                report.count(first + place + 1, each)
            report.done += len(batch)
            report.tokens += sum(len(item.ids) for _, item in batch)
            report.seconds = time.monotonic() - start
            _keep(results, new, kept)
            progress(report)
        # A blank line's output is the same whatever the model; most often it is nothing.
        blanks = {
            place: journal.Result(write(translator.BLANK, first + place))
            for place in range(len(window))
            if place not in results
        }
        if kept:
            _keep(results, [(place, each) for place, each in blanks.items() if each.text], kept)
        yield from ({**blanks, **results}[place].text for place in range(len(window)))


def score_file(
    model: translator.Translator,
    pairs: Iterable[tuple[str, str]],
    target: Path,
    *,
    total: int | None = None,
    progress: Progress = _silent,
) -> Report:
    """Write a line for each (input, output): see `score_pairs`."""
    report = Report(total=total)
    job = {"score": model.fingerprint or model.name, "options": identity(model)}
    _write(
        target, job, lambda kept: score_pairs(model, pairs, report, kept, progress=progress), report
    )
    return report


def score_pairs(
    model: translator.Translator,
    pairs: Iterable[tuple[str, str]],
    report: Report,
    kept: journal.Journal | None = None,
    *,
    progress: Progress = _silent,
) -> Iterator[str]:
    """Yield a line for each (input, output): log-probability, loss of a token, tokens; by tabs."""
    start = time.monotonic()
    scorer = scoring.Scorer(model)
    for first, window in _windows(pairs):
        texts = ["\t".join(pair) for pair in window]
        results = kept.begin(texts) if kept else {}
        _count(report, texts, results, first)
        report.blank = 0  # a blank output has a probability too
        missing = [place for place in range(len(window)) if place not in results]
        inputs, outputs = ([window[place][side] for place in missing] for side in (0, 1))
        for batch in scorer.score(inputs, outputs):
            new = []
            for index, score in batch:
                place = missing[index]
                figures = f"{score.log_probability:.6f}\t{score.loss:.6f}\t{score.num_tokens}"
                kept_score = journal.Result.marked(
                    figures, truncated=score.truncated, unfinished=score.target_truncated
                )
                new.append((place, kept_score))
                report.tokens += score.num_tokens
                report.count(first + place + 1, kept_score)
            report.done += len(batch)
            report.seconds = time.monotonic() - start
            _keep(results, new, kept)
            progress(report)
        yield from (results[place].text for place in range(len(window)))


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
                f"{source} has {counts[0]} lines, {score_path} has {counts[1]}: "
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


def writer(
    model: translator.Translator, form: formats.Form = "text"
) -> Callable[[translator.Translation, int], str]:
    """Return a function that writes a translation of the input of a number (from 0)."""
    if form == "moses":
        return formats.moses
    if form == "jsonl":
        return lambda translation, _: formats.json_line(model, translation)
    is_nbest = model.options.return_beams > 1
    return lambda translation, _: formats.line(translation, is_nbest=is_nbest)


def result(translation: translator.Translation, output: str) -> journal.Result:
    """Return what is kept of a translation: its output as it is written, and its marks."""
    return journal.Result.marked(
        output,
        truncated=translation.truncated,
        unfinished=not translation.finished,
        repaired=translation.repairs,
    )


def lines_of(outputs: Iterable[str]) -> Iterator[str]:
    """Yield the lines of outputs: one each, or in the form "moses" one for each hypothesis."""
    for output in outputs:
        yield from output.split("\n")


def _write(
    target: Path,
    job: dict[str, Any],
    outputs: Callable[[journal.Journal | None], Iterator[str]],
    report: Report,
) -> None:
    """Write output lines; to a file by way of a journal, which goes when the file is there."""
    if text_files.is_special(target):
        text_files.write_lines(target, lines_of(outputs(None)))
        return
    if os.path.isdir(target):
        raise errors.UserError(f"{target} is a folder: give a file to write to")
    with journal.Journal(target, job) as kept:
        collections.deque(outputs(kept), maxlen=0)
        text_files.write_lines(target, lines_of(kept.outputs()))
        kept.delete()
        report.kept_as = kept.kept_as


def _keep(
    results: dict[int, journal.Result],
    new: list[tuple[int, journal.Result]],
    kept: journal.Journal | None,
) -> None:
    results.update(new)
    if kept:
        kept.add(new)


def _count(
    report: Report, window: list[str], results: dict[int, journal.Result], first: int
) -> None:
    """Count a window's lines, and those that an interrupted run has done."""
    is_blank = [not text.strip() for text in window]
    report.lines += len(window)
    report.blank += sum(is_blank)
    report.lossy += sum(text_files.REPLACEMENT in text for text in window)
    report.resumed += sum(not is_blank[place] for place in results)
    for place, each in sorted(results.items()):
        report.count(first + place + 1, each)


def _windows(lines: Iterable[Any], start: int = 0) -> Iterator[tuple[int, list[Any]]]:
    """Yield (number of the first line, lines) of each window, counted from `start`."""
    lines = iter(lines)
    for first in itertools.count(start, WINDOW):
        window = list(itertools.islice(lines, WINDOW))
        if not window:
            return
        yield first, window


def identity(model: translator.Translator) -> dict[str, Any]:
    """Return the options on which a line's output depends."""
    options = dataclasses.asdict(model.options)
    return {name: value for name, value in options.items() if name not in _NO_DIFFERENCE}


def refuse_one_file(source: Path, target: Path) -> None:
    """Raise UserError where the output would take the input's place."""
    if os.path.isfile(source) and os.path.exists(target) and os.path.samefile(source, target):
        raise errors.UserError(f"{target} is what is read: give another file to write to")
