"""Translate a file, a problem's test set, or what you type, with a trained model.

  t2t-lite-decoder --output_dir=run --decode_from_file=in.en --decode_to_file=out.de
  t2t-lite-decoder --output_dir=run --split=test
  t2t-lite-decoder --output_dir=run --decode_interactive

One output line for every input line, in order; "-" is the standard input or output. If a command
that writes a file is interrupted, give it again, and it does the lines that are missing.
"""

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from t2t_lite import errors, progress, registry
from t2t_lite.bin import command, prompt
from t2t_lite.decode import options
from t2t_lite.text import text_files

if TYPE_CHECKING:
    from t2t_lite.decode import files, formats, translator

FLAGS = command.new_flags()
flags.DEFINE_string("output_dir", None, "What t2t-lite-trainer wrote.", flag_values=FLAGS)
command.define_checkpoint_path(FLAGS)
flags.DEFINE_string(
    "decode_from_file", None, "The text, one sentence a line; may be compressed.", flag_values=FLAGS
)
flags.DEFINE_string("decode_to_file", None, "Where the outputs go.", flag_values=FLAGS)
flags.DEFINE_string(
    "decode_hparams",
    "",
    f"How to decode, as name=value with commas between; the first three are the run's own unless "
    f"given:\n{command.table(options.DecodeOptions)}",
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "split", None, "Decode this split of the problem and print its scores.", flag_values=FLAGS
)
flags.DEFINE_string(
    "target_language",
    None,
    "Code of the split's target language, such as de, for the Moses-tokenized scores; default: the "
    "problem's. parallel_text does not know its own: they then follow the English rules, and say "
    "so.",
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "data_dir", None, "Where the split is. Default: where training read it.", flag_values=FLAGS
)
flags.DEFINE_bool("decode_interactive", False, "Translate what you type.", flag_values=FLAGS)
flags.DEFINE_bool(
    "stream", False, "From a pipe: answer each line at once, not in batches.", flag_values=FLAGS
)
flags.DEFINE_bool(
    "jsonl",
    False,
    "Write JSON, one object a line: text, score, tokens, whether input or output was cut; with "
    "--decode_hparams=token_scores=true,alignments=true those too.",
    flag_values=FLAGS,
)
flags.DEFINE_bool(
    "moses_nbest",
    False,
    "Write a line for each output: the input's number from 0 ||| text ||| score.",
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "score_file",
    None,
    "Given outputs to score, one for each line of --decode_from_file (or lines of input, tab, "
    "output): writes log-probability, loss of a token and tokens, with tabs between.",
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "beam_pipeline_options",
    None,
    "Decode the plain file --decode_from_file on Apache Beam, with these of its options: "
    "runner=FlinkRunner,parallelism=8. The outputs are files of 20,000 lines, <decode_to_file>"
    "-00000-of-00050. All workers must see the files and the output_dir.",
    flag_values=FLAGS,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_run, FLAGS, doc=__doc__, required=["output_dir"], argv=argv)


def _run() -> None:
    _check_flags()
    changes = options.parse(FLAGS.decode_hparams)
    if FLAGS.beam_pipeline_options is not None:
        _decode_on_beam(changes)
        return
    with command.quiet_import():
        from t2t_lite.decode import devices, translator
        from t2t_lite.run import output_dir
    if FLAGS.decode_interactive and not changes.get("sampling"):
        beam_size = output_dir.read(FLAGS.output_dir).hparams.beam_size
        changes = {"return_beams": changes.get("beam_size", beam_size), **changes}
    one_by_one = FLAGS.decode_interactive or FLAGS.stream
    model = translator.Translator.from_output_dir(
        FLAGS.output_dir,
        FLAGS.checkpoint_path,
        devices=[""] if one_by_one else devices.for_batches(),
        **changes,
    )
    if FLAGS.decode_interactive:
        prompt.converse(model)
    elif FLAGS.score_file:
        _score(model)
    elif FLAGS.split:
        _decode_split(model)
    elif FLAGS.stream:
        _stream(model)
    else:
        _decode_file(model)


def _check_flags() -> None:
    tasks = {
        "--decode_from_file": FLAGS.decode_from_file and not FLAGS.score_file,
        "--split": FLAGS.split,
        "--decode_interactive": FLAGS.decode_interactive,
        "--score_file": FLAGS.score_file,
    }
    given = [name for name, value in tasks.items() if value]
    if len(given) != 1:
        raise errors.UserError(
            f"expected one of {', '.join(tasks)}; got {' and '.join(given) or 'none'}"
        )
    if given[0] in ("--decode_from_file", "--score_file") and not FLAGS.decode_to_file:
        raise errors.UserError(f'{given[0]} needs --decode_to_file ("-" is the standard output)')
    if FLAGS.decode_interactive and FLAGS.decode_to_file:
        raise errors.UserError(
            "--decode_interactive answers on the screen: leave out --decode_to_file"
        )
    if FLAGS.score_file == FLAGS.decode_from_file == "-":
        raise errors.UserError("the standard input is one file: --score_file or --decode_from_file")
    if FLAGS.stream and (FLAGS.decode_from_file, FLAGS.decode_to_file) != ("-", "-"):
        raise errors.UserError("--stream needs --decode_from_file=- and --decode_to_file=-")
    if FLAGS.jsonl and FLAGS.moses_nbest:
        raise errors.UserError("--jsonl or --moses_nbest: the output has one form")
    if (FLAGS.jsonl or FLAGS.moses_nbest) and not FLAGS.decode_from_file:
        raise errors.UserError("--jsonl and --moses_nbest are for --decode_from_file")
    files = {FLAGS.decode_from_file, FLAGS.decode_to_file}
    if FLAGS.beam_pipeline_options is not None and (
        given != ["--decode_from_file"] or "-" in files
    ):
        raise errors.UserError("--beam_pipeline_options is for --decode_from_file=FILE to a file")
    if (FLAGS.jsonl or FLAGS.moses_nbest) and FLAGS.score_file:
        raise errors.UserError("--jsonl and --moses_nbest do not go with --score_file")


def _form() -> "formats.Form":
    if FLAGS.jsonl:
        return "jsonl"
    return "moses" if FLAGS.moses_nbest else "text"


def _decode_on_beam(changes: dict[str, Any]) -> None:
    with command.quiet_import():
        from t2t_lite.decode import bulk
    job = bulk.Job(
        source=FLAGS.decode_from_file,
        target=FLAGS.decode_to_file,
        output_dir=FLAGS.output_dir,
        checkpoint_path=FLAGS.checkpoint_path,
        changes=changes,
        form=_form(),
    )
    start = time.monotonic()
    report = bulk.decode_file(job, FLAGS.beam_pipeline_options)
    report.seconds = time.monotonic() - start
    _summarize(report)


def _decode_file(model: "translator.Translator") -> None:
    from t2t_lite.decode import files

    source, target = _path(FLAGS.decode_from_file), FLAGS.decode_to_file
    with _progress() as show:
        if target == "-":
            report = files.Report(total=files.count_lines(source))
            lines = text_files.read_lines(source)
            _write(files.decode(model, lines, report, form=_form(), progress=show))
        else:
            report = files.decode_file(model, source, target, form=_form(), progress=show)
    _summarize(report)


def _stream(model: "translator.Translator") -> None:
    """Answer each line of the standard input as soon as it comes."""
    from t2t_lite.decode import files

    write, report = files.writer(model, _form()), files.Report()
    for index, text in enumerate(text_files.decode_lines(sys.stdin.buffer)):
        (translation,) = model.translate([text], first_index=index)
        result = files.result(translation, write(translation, index))
        _write([result.text])
        report.lossy += text_files.REPLACEMENT in text
        report.count(index + 1, result)
    _print_remarks(report)


def _decode_split(model: "translator.Translator") -> None:
    """Decode a split from the problem's raw text and print its scores."""
    from t2t_lite.data import manifest, remote
    from t2t_lite.decode import files
    from t2t_lite.run import output_dir

    run = output_dir.read(FLAGS.output_dir).run
    problem = registry.problem(run.problem)
    scorer = model.task.scorer(FLAGS.target_language or problem.target_language)
    data_dir = remote.local(FLAGS.data_dir or run.data_dir)
    text = manifest.problem_text(data_dir, problem, FLAGS.split)
    target, total = FLAGS.decode_to_file, len(text.sources)
    with _progress() as show:
        if target in (None, "-") or text_files.is_special(target):
            report = files.Report(total=total)
            outputs = list(files.decode(model, text.sources, report, progress=show))
        else:
            report = files.decode_lines(model, text.sources, target, total=total, progress=show)
            outputs = list(text_files.read_lines(target))
    if target == "-":
        _write(outputs)
    elif target and text_files.is_special(target):
        text_files.write_lines(target, outputs)
    _summarize(report)
    if model.options.return_beams > 1:
        outputs = [output.partition("\t")[0] for output in outputs]
    print(scorer(outputs, text.references))


def _score(model: "translator.Translator") -> None:
    from t2t_lite.decode import files

    scores = _path(FLAGS.score_file)
    source = _path(FLAGS.decode_from_file) if FLAGS.decode_from_file else None
    if FLAGS.decode_to_file != "-":
        for path in filter(None, (scores, source)):
            files.refuse_one_file(path, FLAGS.decode_to_file)
    pairs, total = files.read_pairs(scores, source), files.count_lines(scores)
    with _progress() as show:
        if FLAGS.decode_to_file == "-":
            report = files.Report(total=total)
            _write(files.score_pairs(model, pairs, report, progress=show))
        else:
            report = files.score_file(
                model, pairs, FLAGS.decode_to_file, total=total, progress=show
            )
    print(
        f"{report.lines:,} pairs, {report.tokens:,} tokens, {report.seconds:,.1f} s",
        file=sys.stderr,
    )
    _print_remarks(report)


def _path(flag: str) -> str:
    return "/dev/stdin" if flag == "-" else flag


def _write(lines: Iterable[str]) -> None:
    """Write lines to the standard output as UTF-8, whatever the terminal's encoding."""
    for text in lines:
        sys.stdout.buffer.write(text.encode("utf-8", errors="replace") + b"\n")
    sys.stdout.buffer.flush()


def _summarize(report: "files.Report") -> None:
    """Print what was done, and what a reader of the output should know."""
    seconds = max(report.seconds, 1e-9)
    print(
        f"{report.lines:,} lines, {report.seconds:,.1f} s: "
        f"{report.done / seconds:,.1f} sentences/s, {report.tokens / seconds:,.0f} tokens/s",
        file=sys.stderr,
    )
    _print_remarks(report)


def _print_remarks(report: "files.Report") -> None:
    """Print, a line each, what a reader of the output should know."""
    remarks = {
        "came from the interrupted run before": report.resumed,
        "are not valid UTF-8; what cannot be read was taken as U+FFFD": report.lossy,
        "have an output cut off at the length limit": report.unfinished,
        "have an output that was no tree and was repaired": report.repaired,
    }
    for remark, count in remarks.items():
        if count:
            print(f"{count:,} lines {remark}", file=sys.stderr)
    if report.truncated:
        numbers = ", ".join(map(str, report.truncated_lines))
        more = ", ..." if report.truncated > len(report.truncated_lines) else ""
        which = f": {numbers}{more}" if numbers else ""  # Beam names none
        print(
            f"{report.truncated:,} lines were longer than max_source_length and were cut{which}",
            file=sys.stderr,
        )
    if report.kept_as:
        print(
            "what an interrupted run of other lines or other settings left, or a damaged one, is "
            f"in {report.kept_as}",
            file=sys.stderr,
        )


@contextlib.contextmanager
def _progress() -> Iterator["files.Progress"]:
    """Yield what shows a report of work under way."""
    with progress.Progress("sentences", stream=sys.stderr) as shown:

        def show(report: "files.Report") -> None:
            seconds = max(report.seconds, 1e-9)
            figures = f"{report.done / seconds:,.1f}/s, {report.tokens / seconds:,.0f} tokens/s"
            shown.update(report.done, report.done + report.left, figures=figures)

        yield show


if __name__ == "__main__":
    sys.exit(main())
