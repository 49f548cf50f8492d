"""Translate a file, a problem's test set, or what you type, with a trained model.

  t2t-lite-decoder --output_dir=run --decode_from_file=in.en --decode_to_file=out.de
  t2t-lite-decoder --output_dir=run --split=test
  t2t-lite-decoder --output_dir=run --decode_interactive

Writes one line for every input line, in the same order; with --moses_nbest one for every output. To
resume an interrupted command that writes a file, run it again: it translates the missing lines.
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
    from t2t_lite.decode import files, translator
    from t2t_lite.decode import translation as translations

FLAGS = command.new_flags()
command.define_run(FLAGS)
command.define_strings(
    FLAGS,
    decode_from_file=f'Input text, one sentence per line. {command.COMPRESSED} "-": standard '
    "input.",
    decode_to_file='File to write outputs to. "-": standard output. Required with '
    "--decode_from_file and --score_file; without it --split prints the scores only.",
    decode_hparams="Decoding options, as name=value,name=value; give the flag once. "
    f"{command.MODEL_DEFAULTS}\n{command.table(options.DecodeOptions)}",
    columns="Names of the columns of --decode_from_file, separated by commas, if its lines have "
    "several, separated by tabs: text (required), prefix (the output begins with it), "
    "target_language (as in --decode_hparams). Fields may be empty. jsonl: each line is a JSON "
    "object with these keys (give --columns=jsonl). Default: text.",
    split="Decode this split of the problem that the model has learnt, e.g. dev or test, and print "
    "its scores.",
    target_language="Language code of the references of --split, e.g. de. Only the scores depend "
    "on it; to choose the language to translate into, see --decode_hparams. Default: the "
    "problem's, or that in the corpus's file names (train.en-fr.tmx), else English rules.",
    data_dir=command.DATA_DIR,
    score_file="File of outputs to score instead of decoding, one per line, for the inputs of "
    "--decode_from_file; without --decode_from_file, lines of input, tab, output. Writes natural "
    "log-probability, loss per subword and number of subwords (EOS included), separated by tabs, "
    "to --decode_to_file.",
    beam_pipeline_options="Decode --decode_from_file on Apache Beam with these pipeline options, "
    "e.g. runner=FlinkRunner,parallelism=8. Writes files of 20,000 lines, "
    "<decode_to_file>-00000-of-00050. All workers must read --decode_from_file and --output_dir, "
    "and write to the folder of --decode_to_file, under the same paths.",
)
command.define_bools(
    FLAGS,
    decode_interactive="Translate what you type at a prompt.",
    stream="Translate each line of standard input as soon as it arrives, not in batches. Needs "
    "--decode_from_file=- and --decode_to_file=-.",
    jsonl="Write one JSON object per input line: text, score, tokens (the output's subwords), "
    "finished (false: cut at the length limit) and source_truncated. return_beams above 1 adds "
    "hypotheses, a list of all outputs; token_scores=true adds token_scores, "
    "alignments=true alignment and source_tokens.",
    moses_nbest="Write one line per output: number of the input line from 0 ||| text ||| score. "
    "With token_scores=true, WordScores= and for each word the sum of its subwords' "
    "log-probabilities come before the score: ||| WordScores= -0.1 -0.2 ||| -0.3. With "
    "alignments=true, word links follow the score, source-target from 0: ||| 0-0 1-2.",
)
flags.DEFINE_enum(
    "engine",
    "auto",
    ["auto", "graph", "litert"],
    "Engine of --decode_interactive and --stream. graph: TensorFlow. litert: LiteRT, for inputs "
    "of up to 64 subwords (TensorFlow translates longer ones), several times as fast for a small "
    "model; converts the model once. auto: LiteRT if its runtime is installed, with TensorFlow "
    "until the model is converted.",
    flag_values=FLAGS,
)
flags.DEFINE_enum(
    "xla",
    "auto",
    ["auto", "on", "off"],
    "Compile the search with XLA, TensorFlow's compiler, once for each of a few batch shapes. "
    "auto: on GPUs, for files.",
    flag_values=FLAGS,
)
REQUIRED = command.require(FLAGS, "output_dir")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_run, FLAGS, doc=__doc__, required=REQUIRED, argv=argv)


def _run() -> None:
    _check_flags()
    changes = options.parse(FLAGS.decode_hparams or "")
    _check_changes(changes)
    if FLAGS.beam_pipeline_options is not None:
        _decode_on_beam(changes)
        return
    with command.quiet_import():
        from t2t_lite.decode import devices, translator
        from t2t_lite.run import output_dir
        from t2t_lite.train import devices as training_devices
    if FLAGS.decode_interactive and not changes.get("sampling"):
        beam_size = output_dir.read(FLAGS.output_dir).hparams.beam_size
        changes = {"return_beams": changes.get("beam_size", beam_size), **changes}
    one_by_one = FLAGS.decode_interactive or FLAGS.stream
    if FLAGS.engine == "litert" and one_by_one:
        print("LiteRT: converting the model, unless it was before", file=sys.stderr)
    model = translator.Translator.from_output_dir(
        FLAGS.output_dir,
        FLAGS.checkpoint_path,
        devices=[""] if one_by_one else devices.for_batches(),
        engine=FLAGS.engine if one_by_one else "graph",
        **changes,
    )
    searches_files = not (one_by_one or FLAGS.score_file)
    if FLAGS.xla == "on" or (searches_files and training_devices.use_xla(FLAGS.xla)):
        _search_under_xla(model)
    if FLAGS.decode_interactive:
        print(f"engine: {_start_engine(model)}", file=sys.stderr)
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


def _search_under_xla(model: "translator.Translator") -> None:
    try:
        model.use_xla()
    except errors.UserError as error:
        if FLAGS.xla == "on":
            raise errors.UserError(f"--xla=on: {error}") from error
        print(f"without XLA: {error}", file=sys.stderr)


def _start_engine(model: "translator.Translator") -> str:
    """Begin to convert a model for LiteRT, where it is to be; say what translates."""
    if not model.engine:
        return "TensorFlow"
    if model.engine.ready():
        return "LiteRT, for up to 64 tokens"
    model.engine.start()
    return "TensorFlow, and LiteRT for up to 64 tokens when it has converted the model"


def _check_flags() -> None:
    tasks = {
        "--decode_from_file": FLAGS.decode_from_file and not FLAGS.score_file,
        "--split": FLAGS.split,
        "--decode_interactive": FLAGS.decode_interactive,
        "--score_file": FLAGS.score_file,
    }
    task, *others = [name for name, value in tasks.items() if value] or ["none"]
    if others or task == "none":
        got = " and ".join([task, *others])
        raise errors.UserError(f"expected one of {', '.join(tasks)}; got {got}")
    source, target = FLAGS.decode_from_file, FLAGS.decode_to_file
    decodes_file = task == "--decode_from_file"
    on_beam = FLAGS.beam_pipeline_options is not None
    mistakes = {
        f'{task} needs --decode_to_file ("-" is the standard output)': (
            not target and (decodes_file or task == "--score_file")
        ),
        "--decode_interactive does not go with --decode_to_file": (
            FLAGS.decode_interactive and target
        ),
        "--score_file and --decode_from_file cannot both be the standard input": (
            FLAGS.score_file == source == "-"
        ),
        "--stream needs --decode_from_file=- and --decode_to_file=-": (
            FLAGS.stream and (source, target) != ("-", "-")
        ),
        "--engine is for --decode_interactive and --stream; files are translated in batches": (
            FLAGS.engine != "auto" and not (FLAGS.decode_interactive or FLAGS.stream)
        ),
        "--xla=on is for searches in this process, without --engine, --score_file, "
        "--beam_pipeline_options": (
            FLAGS.xla == "on" and (FLAGS.engine != "auto" or FLAGS.score_file or on_beam)
        ),
        "--jsonl and --moses_nbest: give one of them, with --decode_from_file": (
            FLAGS.jsonl + FLAGS.moses_nbest > (1 if decodes_file else 0)
        ),
        "--target_language and --data_dir are for --split": (
            not FLAGS.split and (FLAGS.target_language or FLAGS.data_dir)
        ),
        "--columns is for --decode_from_file, without --score_file": (
            FLAGS.columns and not decodes_file
        ),
        "--beam_pipeline_options needs --decode_from_file=FILE and --decode_to_file=FILE": (
            on_beam and (not decodes_file or "-" in (source, target))
        ),
    }
    command.refuse(mistakes)


def _check_changes(changes: dict[str, Any]) -> None:
    """Raise UserError for decoding options that would do nothing."""
    details = [name for name in options.DETAILS if changes.get(name)]
    others = [name for name in changes if name not in options.OF_SCORING]
    of_search = [name for name in ("beam_size", "strict_ends", "early_stop") if name in changes]
    mistakes = {
        f"sampling does not search: leave out {', '.join(of_search)}": (
            changes.get("sampling") and of_search
        ),
        f"{', '.join(details)}: lines of text have no place for it; add --jsonl or --moses_nbest": (
            details and not (FLAGS.jsonl or FLAGS.moses_nbest or FLAGS.score_file)
        ),
        f"--score_file does not search: leave out {', '.join(others)}": FLAGS.score_file and others,
    }
    command.refuse(mistakes)


def _columns() -> Sequence[str]:
    return (FLAGS.columns or "text").split(",")


def _form() -> "translations.Form":
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
        columns=_columns(),
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
            decoding = files.Decoding(model, _form(), _columns())
            _write(files.outputs(decoding, lines, report, progress=show))
        else:
            report = files.decode_file(
                model, source, target, form=_form(), columns=_columns(), progress=show
            )
    _summarize(report)


def _stream(model: "translator.Translator") -> None:
    """Answer each line of the standard input as soon as it arrives."""
    from t2t_lite.decode import files

    decoding, report = files.Decoding(model, _form(), _columns()), files.Report()
    for index, text in enumerate(text_files.decode_lines(sys.stdin.buffer)):
        text, prefix = decoding.read(text, index)
        (translation,) = model.translate([text], prefixes=[prefix], first_index=index)
        result = decoding.result(translation, index)
        _write([result.text])
        report.lossy += text_files.REPLACEMENT in text
        report.count(index + 1, result)
    _print_remarks(report)


def _decode_split(model: "translator.Translator") -> None:
    """Decode a split from the problem's raw text and print its scores."""
    from t2t_lite.data import data_dir, remote
    from t2t_lite.decode import files
    from t2t_lite.run import output_dir

    run = output_dir.read(FLAGS.output_dir).run
    problem = registry.problem(run.problem)
    model.task.scorer(FLAGS.target_language or "")  # refuses at once what is not a code
    data = data_dir.read(remote.local(FLAGS.data_dir or run.data_dir), problem)
    language = FLAGS.target_language or data.target_language
    if data.target_language not in (language, ""):
        print(
            f"--target_language={language}: the data's targets are {data.target_language}",
            file=sys.stderr,
        )
    scorer, text = model.task.scorer(language), data.text(FLAGS.split)
    target, total = FLAGS.decode_to_file, len(text.sources)
    decoding = files.Decoding(model)
    with _progress() as show:
        if target in (None, "-") or text_files.is_special(target):
            report = files.Report(total=total)
            outputs = list(files.outputs(decoding, text.sources, report, progress=show))
        else:
            report = files.write(decoding, text.sources, target, total=total, progress=show)
            outputs = list(text_files.read_lines(target))
    if target == "-":
        _write(outputs)
    elif target and text_files.is_special(target):
        text_files.write_lines(target, outputs)
    _summarize(report)
    for remark in text.remarks(FLAGS.split):
        print(remark, file=sys.stderr)
    if model.options.return_beams > 1:
        outputs = [output.partition("\t")[0] for output in outputs]
    print(scorer(outputs, text.references))


def _score(model: "translator.Translator") -> None:
    from t2t_lite.decode import files

    scores, target = _path(FLAGS.score_file), FLAGS.decode_to_file
    source = _path(FLAGS.decode_from_file) if FLAGS.decode_from_file else None
    for path in filter(None, (scores, source)):
        if target != "-":
            text_files.refuse_target(target, path)
    pairs, total = files.read_pairs(scores, source), files.count_lines(scores)
    scoring = files.Scoring(model)
    with _progress() as show:
        if target == "-":
            report = files.Report(total=total)
            _write(files.outputs(scoring, pairs, report, progress=show))
        else:
            report = files.write(scoring, pairs, target, total=total, progress=show)
    print(
        f"{errors.counted(report.lines, 'pair')}, {report.tokens:,} tokens, "
        f"{report.seconds:,.1f} s",
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
    """Print speed and remarks."""
    seconds = max(report.seconds, 1e-9)
    print(
        f"{errors.counted(report.lines, 'line')}, {report.seconds:,.1f} s: "
        f"{report.done / seconds:,.1f} sentences/s, {report.tokens / seconds:,.0f} tokens/s",
        file=sys.stderr,
    )
    _print_remarks(report)


def _print_remarks(report: "files.Report") -> None:
    """Print how many lines were resumed, damaged, cut or repaired."""
    remarks = {
        "came from the interrupted run before": report.resumed,
        "of invalid UTF-8; invalid bytes were read as U+FFFD": report.lossy,
        "with an output cut off at the length limit": report.unfinished,
        "with an output that was not a tree and was repaired": report.repaired,
        "without a target language, which the model wants: begin them with its label, as "
        ">>deu<<, or give it as --decode_hparams=target_language=deu": report.unlabelled,
    }
    for remark, count in remarks.items():
        if count:
            print(f"{errors.counted(count, 'line')} {remark}", file=sys.stderr)
    if report.truncated:
        numbers = ", ".join(map(str, report.truncated_lines))
        more = ", ..." if report.truncated > len(report.truncated_lines) else ""
        which = f": {numbers}{more}" if numbers else ""  # Beam does not number lines
        print(
            f"{errors.counted(report.truncated, 'line')} longer than max_source_length, cut{which}",
            file=sys.stderr,
        )
    if report.kept_as:
        print(
            "the interrupted run before had other lines or settings, or is damaged: see "
            f"{report.kept_as}",
            file=sys.stderr,
        )


@contextlib.contextmanager
def _progress() -> Iterator["files.Progress"]:
    """Yield a function that shows a report of work under way."""
    with progress.Progress("sentences", stream=sys.stderr) as shown:

        def show(report: "files.Report") -> None:
            seconds = max(report.seconds, 1e-9)
            figures = f"{report.done / seconds:,.1f}/s, {report.tokens / seconds:,.0f} tokens/s"
            shown.update(report.done, report.done + report.left, figures=figures)

        yield show


if __name__ == "__main__":
    sys.exit(main())
