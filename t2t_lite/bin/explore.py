"""Show a trained model's translations, attention, search and parses in a browser.

  t2t-lite-explore --output_dir=run
  t2t-lite-explore --output_dir=run --text="A dog runs." --html=out.html
  t2t-lite-explore --output_dir=run --decode_from_file=in.en --html=out.html
  t2t-lite-explore --export_dir=export

Without --html it serves a page on this machine until interrupted. With --html it writes one HTML
file that needs neither server nor network. For an export it shows outputs, scores and parses only.
"""

import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import flags

from t2t_lite import errors, registry
from t2t_lite.bin import command
from t2t_lite.decode import options
from t2t_lite.text import text_files

if TYPE_CHECKING:
    from t2t_lite.explore import explorer, export_explorer

FLAGS = command.new_flags()
command.define_run(FLAGS)
command.define_strings(
    FLAGS,
    export_dir="Folder written by t2t-lite-exporter, for TensorFlow Serving.",
    decode_hparams="Decoding options, as for t2t-lite-decoder, except token_scores and alignments; "
    "not with --export_dir. Default of return_beams: beam_size.",
    text="Input text to show in --html.",
    decode_from_file="File of input texts to show in --html, one per line, at most 100. "
    f"{command.COMPRESSED}",
    html="Write this HTML file instead of serving the page. Needs --text or --decode_from_file.",
    target="Show this output of --text instead of the model's best. Needs --text and --html.",
)
flags.DEFINE_string(
    "split", "test", "Offer the inputs of this split as examples.", flag_values=FLAGS
)
command.define_strings(FLAGS, data_dir=command.DATA_DIR)
flags.DEFINE_string("host", "127.0.0.1", "Address to listen on.", flag_values=FLAGS)
flags.DEFINE_integer(
    "port", 8765, "Port to listen on. 0: any free port.", 0, 65535, flag_values=FLAGS
)
command.require(FLAGS, "output_dir", "export_dir", text="Give --output_dir or --export_dir.")
_MAX_TEXTS = 100  # in a saved page, which a browser loads as a whole


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_run, FLAGS, doc=__doc__, argv=argv)


def _run() -> None:
    _check_flags()
    answers = _of_run() if FLAGS.output_dir else _of_export()
    if FLAGS.html:
        _write(answers)
    else:
        _serve(answers)


def _of_run() -> "explorer.Explorer":
    changes = options.parse(FLAGS.decode_hparams or "")
    with command.quiet_import():
        from t2t_lite.decode import translator
        from t2t_lite.explore import explorer
        from t2t_lite.run import output_dir
    run = output_dir.read(FLAGS.output_dir)
    if not changes.get("sampling"):
        beam_size = changes.get("beam_size", run.hparams.beam_size)
        changes = {"return_beams": beam_size, **changes}
    model = translator.Translator.from_output_dir(
        FLAGS.output_dir, FLAGS.checkpoint_path, **changes
    )
    references = _references(run.run.problem, FLAGS.data_dir or run.run.data_dir)
    language = _source_language(run.run.problem)
    return explorer.Explorer(model, references=references, language=language)


def _of_export() -> "export_explorer.ExportExplorer":
    with command.quiet_import():
        from t2t_lite.explore import export_explorer
        from t2t_lite.serving import exported
    export = exported.load(FLAGS.export_dir)
    if not isinstance(export, exported.Translator):
        raise errors.UserError(
            f"{FLAGS.export_dir} is a LiteRT export: give one for TensorFlow Serving, or a run"
        )
    # An export does not record the data_dir.
    references = _references(export.record["problem"], FLAGS.data_dir) if FLAGS.data_dir else {}
    language = _source_language(export.record["problem"])
    return export_explorer.ExportExplorer(export, references=references, language=language)


def _check_flags() -> None:
    texts = (FLAGS.text is not None) + (FLAGS.decode_from_file is not None)
    mistakes = {
        "give --output_dir, a run, or --export_dir, an export": (
            (FLAGS.output_dir is None) == (FLAGS.export_dir is None)
        ),
        "--checkpoint_path and --decode_hparams do not go with --export_dir": (
            FLAGS.export_dir and (FLAGS.checkpoint_path or FLAGS.decode_hparams)
        ),
        "--html needs --text or --decode_from_file": FLAGS.html and texts != 1,
        "--text and --decode_from_file need --html, the file to write": texts and not FLAGS.html,
        "--target needs --text": FLAGS.target is not None and FLAGS.text is None,
    }
    command.refuse(mistakes)


def _references(problem_name: str, folder: str) -> dict[str, str]:
    """Return the split's references by source; none if the data are missing."""
    from t2t_lite.data import data_dir, remote

    try:
        data = data_dir.read(remote.local(folder), registry.problem(problem_name))
        text = data.text(FLAGS.split)
    except errors.UserError as error:
        if FLAGS.data_dir:
            raise
        print(f"no example texts: {error}", file=sys.stderr)
        return {}
    return dict(zip(text.sources, text.references))


def _source_language(problem_name: str) -> str:
    """Return the language of a problem's sources, such as "de"; "" if unknown."""
    if problem_name not in registry.problems():
        return ""
    problem = registry.problem(problem_name)
    return problem.languages[int(problem.is_reversed)]


def _write(answers: "export_explorer.Answers") -> None:
    from t2t_lite.explore import saving

    text_files.refuse_target(FLAGS.html, FLAGS.decode_from_file)
    texts = [FLAGS.text] if FLAGS.text is not None else []
    if FLAGS.decode_from_file:
        texts = list(text_files.read_lines(FLAGS.decode_from_file))
        if len(texts) > _MAX_TEXTS:
            raise errors.UserError(
                f"{FLAGS.decode_from_file} has {len(texts):,} lines: a page holds at most "
                f"{_MAX_TEXTS}"
            )
    if not any(text.strip() for text in texts):
        raise errors.UserError("there is no text to show: it is blank")
    page = saving.page(answers, [(text, FLAGS.target) for text in texts if text.strip()])
    with text_files.replacing(FLAGS.html) as file:
        file.write(page.encode("utf-8"))
    print(f"{FLAGS.html}: {len(page) / 1e6:.1f} MB; open it in a browser")


def _serve(answers: "export_explorer.Answers") -> None:
    from t2t_lite.explore import server

    made = server.make(answers, host=FLAGS.host, port=FLAGS.port)
    warming_up = threading.Thread(target=answers.warm_up, daemon=True)
    warming_up.start()
    host = f"[{FLAGS.host}]" if ":" in FLAGS.host else FLAGS.host
    if not server.is_loopback(FLAGS.host):
        print(
            f"--host={FLAGS.host}: anyone who can reach this machine can use the page, without a "
            "password",
            file=sys.stderr,
        )
    print(
        f"http://{host}:{made.port}/ shows {answers.about()['name']}; end with Ctrl+C", flush=True
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        # Shutting down waits for the loop below, which runs in this thread.
        signal.signal(number, lambda *_: threading.Thread(target=made.shutdown).start())
    made.serve_forever()
    made.server_close()
    warming_up.join()  # TensorFlow aborts a process that exits while it works


if __name__ == "__main__":
    sys.exit(main())
