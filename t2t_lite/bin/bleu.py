"""Score a file of translations against a file of references, line for line.

Prints BLEU under each protocol in use, and chrF2, with the signatures that make a figure
comparable; bleu_compound_split is the figure that the paper reports. Give plain text: not
tokenized, not in subwords. Files may be compressed (.gz, .xz, .bz2, .zst).
"""

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import flags

from t2t_lite.bin import command
from t2t_lite.text import text_files

if TYPE_CHECKING:
    from t2t_lite.evaluate import bleu

FLAGS = command.new_flags()
flags.DEFINE_string("translation", None, "The translations, one a line.", flag_values=FLAGS)
flags.DEFINE_string("reference", None, "The references, one a line.", flag_values=FLAGS)
flags.DEFINE_string(
    "target_language",
    None,
    "Code of the language translated into, such as de: the Moses tokenizer of bleu_moses and "
    "bleu_compound_split depends on it. Without it they follow the English rules, and say so.",
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "compare",
    None,
    "Other translations of the same text: prints both scores, each with its 95 % interval, and "
    "the p-value of their difference (paired bootstrap, 1,000 resamples).",
    flag_values=FLAGS,
)
flags.DEFINE_bool(
    "confidence",
    False,
    "Print each score with its 95 % interval, as 97.19 ± 0.88 (bootstrap, 1,000 resamples).",
    flag_values=FLAGS,
)
flags.DEFINE_bool("json", False, "Print one JSON object instead of lines.", flag_values=FLAGS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(
        _print_scores, FLAGS, doc=__doc__, required=["translation", "reference"], argv=argv
    )


def _print_scores() -> None:
    from t2t_lite.evaluate import bleu  # with sacreBLEU: --help need not wait for it

    translation, reference, *others = _read_texts(
        [FLAGS.translation, FLAGS.reference] + [FLAGS.compare] * bool(FLAGS.compare)
    )
    language = FLAGS.target_language or ""
    if not language:
        print(
            "bleu_moses and bleu_compound_split depend on the language translated into, and follow "
            "the English rules here: give --target_language, such as de",
            file=sys.stderr,
        )
    if others:
        comparisons = bleu.compare(translation, others[0], reference, target_language=language)
        table = {c.score.name: _compared_entry(c) for c in comparisons}
        lines = ["translation    compared with  p-value"] + [_compared_line(c) for c in comparisons]
    else:
        scores = bleu.scores(
            translation, reference, target_language=language, confidence=FLAGS.confidence
        )
        table = {score.name: _entry(score) for score in scores}
        lines = [f"{_figure(score)}  {score.label}" for score in scores]
    if FLAGS.json:
        print(json.dumps({"lines": len(reference), "scores": table}, indent=2))
    else:
        print("\n".join(lines))


def _read_texts(paths: Sequence[str]) -> list[list[str]]:
    """Read the files, warn of lossy lines, and insist on as many lines in each."""
    from t2t_lite.evaluate import bleu

    texts = {path: list(text_files.read_lines(path)) for path in paths}
    bleu.check_counts({path: len(lines) for path, lines in texts.items()})
    for path, lines in texts.items():
        num_lossy = sum(text_files.REPLACEMENT in line for line in lines)
        if num_lossy:
            print(
                f"{path}: {num_lossy:,} of {len(lines):,} lines are not valid UTF-8; they are "
                "scored with U+FFFD for what cannot be read",
                file=sys.stderr,
            )
    return [texts[path] for path in paths]


def _figure(score: "bleu.Score") -> str:
    interval = "" if score.half_width is None else f" ± {score.half_width:.2f}"
    return f"{score.value:6.2f}{interval}"


def _compared_line(comparison: "bleu.Comparison") -> str:
    score, other = comparison.score, comparison.other
    figures = f"{_figure(score):13}  {_figure(other):13}  {comparison.p_value:7.4f}"
    return f"{figures}  {score.label}"


def _entry(score: "bleu.Score") -> dict[str, object]:
    fields = dataclasses.asdict(score)
    left_out = ("name", "remark")
    return {k: value for k, value in fields.items() if k not in left_out and value is not None}


def _compared_entry(comparison: "bleu.Comparison") -> dict[str, object]:
    other = _entry(comparison.other)
    return _entry(comparison.score) | {"other": other, "p_value": comparison.p_value}


if __name__ == "__main__":
    sys.exit(main())
