"""Files in, files out: decoding and scoring, line for line.

A line ends at "\\n" and nowhere else; every input line has exactly one output line, in its order.
"""

import dataclasses
import hashlib
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from t2t_lite import errors
from t2t_lite.decode import journal, scoring, translator
from t2t_lite.text import text_files

Path = str | os.PathLike[str]


@dataclasses.dataclass
class Report:
    """What the lines of a job were, and what it took."""

    lines: int = 0
    blank: int = 0  # nothing to decode
    lossy: int = 0  # not valid UTF-8
    resumed: int = 0  # already there from an interrupted run
    done: int = 0  # decoded by this run
    truncated: int = 0  # of these, inputs longer than max_source_length
    unfinished: int = 0  # of these, outputs cut off at the length limit
    repaired: int = 0  # of these, a parser's outputs that were no trees
    tokens: int = 0  # of the best outputs
    seconds: float = 0.0

    @property
    def left(self) -> int:
        """The number of lines still to decode."""
        return self.lines - self.blank - self.resumed - self.done


# Called with the report so far after every batch.
Progress = Callable[[Report], None]


def _silent(report: Report) -> None:
    pass


def decode_file(
    model: translator.Translator, source: Path, target: Path, *, progress: Progress = _silent
) -> Report:
    """Translate a file; the target appears when it is complete.

    What is done is kept beside the target, so that the same call after an interruption goes on
    (unless the target is a device or a pipe). Raises UserError for an empty file.
    """
    lines = read_lines(source)
    if text_files.is_special(target):
        translations, report = decode_lines(model, lines, progress=progress)
        text_files.write_lines(target, map(line, translations))
        return report
    job = {
        "lines": _digest(lines),
        "model": model.name,
        "weights": model.fingerprint,
        "options": str(model.options),
    }
    with journal.Journal(target, job) as kept:
        report = _report(lines)
        report.resumed = len(kept.results)
        for batch in _decode(model, lines, report, skip=kept.results.keys()):
            kept.add((index, line(translation)) for index, translation in batch)
            progress(report)
        text_files.write_lines(target, (kept.results.get(i, "") for i in range(len(lines))))
        kept.delete()
    return report


def decode_lines(
    model: translator.Translator, lines: Sequence[str], *, progress: Progress = _silent
) -> tuple[list[translator.Translation], Report]:
    """Translate lines that are in memory."""
    report = _report(lines)
    results = [translator.BLANK] * len(lines)
    for batch in _decode(model, lines, report):
        for index, translation in batch:
            results[index] = translation
        progress(report)
    return results, report


def score_pairs(
    model: translator.Translator,
    pairs: Sequence[tuple[str, str]],
    *,
    progress: Progress = _silent,
) -> tuple[list[str], Report]:
    """Return a line for each (input, output): log-probability, loss of a token, tokens; by tabs."""
    report = Report(
        lines=len(pairs),
        lossy=sum(text_files.REPLACEMENT in text for pair in pairs for text in pair),
    )
    start = time.monotonic()
    results = [""] * len(pairs)
    inputs, outputs = zip(*pairs)
    for batch in scoring.Scorer(model).score(inputs, outputs):
        for index, score in batch:
            results[index] = f"{score.log_probability:.6f}\t{score.loss:.6f}\t{score.num_tokens}"
            report.tokens += score.num_tokens
            report.truncated += score.truncated
        report.done += len(batch)
        report.seconds = time.monotonic() - start
        progress(report)
    return results, report


def read_lines(path: Path) -> list[str]:
    """Return a file's lines; raise UserError where it has none."""
    lines = list(text_files.read_lines(path))
    if not lines:
        raise errors.UserError(f"{path} is empty: expected one sentence a line")
    return lines


def read_pairs(score_path: Path, source: Path | None) -> list[tuple[str, str]]:
    """Return the pairs to score.

    Args:
      score_path: the outputs, one a line; without `source`, lines "input TAB output".
      source: the inputs, one a line.
    """
    lines = read_lines(score_path)
    if source is not None:
        inputs = read_lines(source)
        if len(inputs) != len(lines):
            raise errors.UserError(
                f"{source} has {len(inputs)} lines, {score_path} has {len(lines)}: "
                "expected an output for every input"
            )
        return list(zip(inputs, lines))
    pairs = [text.partition("\t") for text in lines]
    for number, (_, tab, _) in enumerate(pairs, start=1):
        if not tab:
            raise errors.UserError(
                f"{score_path}, line {number}: expected an input, a tab and an output "
                "(or give the inputs with --decode_from_file)"
            )
    return [(before, after) for before, _, after in pairs]


def line(translation: translator.Translation) -> str:
    """Return the output line: the text, or with n-best text and score by turns, tabs between.

    In n-best lines a tab of the text itself becomes a space. Line feeds become spaces always.
    """
    if len(translation.hypotheses) == 1:
        return translation.text.replace("\n", " ")
    fields = ((h.text.replace("\t", " "), f"{h.score:.6f}") for h in translation.hypotheses)
    return "\t".join(field for pair in fields for field in pair).replace("\n", " ")


def _decode(
    model: translator.Translator,
    lines: Sequence[str],
    report: Report,
    *,
    skip: Container[int] = (),
) -> Iterator[list[tuple[int, translator.Translation]]]:
    """Yield batches as they come and keep the report."""
    start = time.monotonic()
    wanted = ["" if index in skip else text for index, text in enumerate(lines)]
    for batch in model.translate_batches(wanted):
        translations = [translation for _, translation in batch]
        report.done += len(batch)
        report.truncated += sum(t.truncated for t in translations)
        report.unfinished += sum(not t.finished for t in translations)
        report.repaired += sum(t.repairs > 0 for t in translations)
        report.tokens += sum(len(t.ids) for t in translations)
        report.seconds = time.monotonic() - start
        yield batch


def _report(lines: Sequence[str]) -> Report:
    return Report(
        lines=len(lines),
        blank=sum(not text.strip() for text in lines),
        lossy=sum(text_files.REPLACEMENT in text for text in lines),
    )


def _digest(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in lines:
        digest.update(text.encode("utf-8", errors="surrogatepass") + b"\n")
    return digest.hexdigest()
