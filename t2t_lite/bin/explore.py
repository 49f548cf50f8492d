"""Look at what a trained model does: translations, attention, the search, parses, in a browser.

  t2t-lite-explore --output_dir=run
  t2t-lite-explore --output_dir=run --text="A dog runs." --html=out.html
  t2t-lite-explore --output_dir=run --decode_from_file=in.en --html=out.html
  t2t-lite-explore --export_dir=export

The first serves a page on this machine until it is interrupted; those with --html write one HTML
file that opens from a disk, with no server and no network. For an export the page shows outputs,
scores and parses only, since an export answers with no more.
"""

import os
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

    Answers = explorer.Explorer | export_explorer.ExportExplorer

FLAGS = command.new_flags()
flags.DEFINE_string("output_dir", None, "What t2t-lite-trainer wrote.", flag_values=FLAGS)
flags.DEFINE_string("export_dir", None, "What t2t-lite-exporter wrote, instead.", flag_values=FLAGS)
command.define_checkpoint_path(FLAGS)
flags.DEFINE_string(
    "decode_hparams",
    "",
    "How to decode, as t2t-lite-decoder has it; return_beams is beam_size unless given.",
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "split", "test", "Texts to choose from, with their references.", flag_values=FLAGS
)
flags.DEFINE_string(
    "data_dir",
    None,
    "Where the split is. Default: where a run's training read it.",
    flag_values=FLAGS,
)
flags.DEFINE_string("host", "127.0.0.1", "Where to listen.", flag_values=FLAGS)
flags.DEFINE_integer("port", 8765, "0 takes a free one.", 0, 65535, flag_values=FLAGS)
flags.DEFINE_string("html", None, "Write this file instead of serving.", flag_values=FLAGS)
flags.DEFINE_string("text", None, "The text in --html.", flag_values=FLAGS)
flags.DEFINE_string(
    "target", None, "Look at this output of --text in place of the best.", flag_values=FLAGS
)
flags.DEFINE_string("decode_from_file", None, "The texts in --html, one a line.", flag_values=FLAGS)
_MOST_TEXTS = 100  # of a saved page: a browser reads all of them at once


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
    changes = options.parse(FLAGS.decode_hparams)
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
    return explorer.Explorer(model, references=references)


def _of_export() -> "export_explorer.ExportExplorer":
    with command.quiet_import():
        from t2t_lite.explore import export_explorer
        from t2t_lite.serving import exported
    loaded = exported.load(FLAGS.export_dir)
    record = exported.recorded(loaded.path)
    # An export does not know where the data were.
    references = _references(record["problem"], FLAGS.data_dir) if FLAGS.data_dir else {}
    return export_explorer.ExportExplorer(
        loaded,
        name=f"{loaded.path} of {record['checkpoint']}",
        options=record["options"],
        is_parser=record["task"] == "parsing",
        references=references,
    )


def _check_flags() -> None:
    if (FLAGS.output_dir is None) == (FLAGS.export_dir is None):
        raise errors.UserError("give --output_dir, a run, or --export_dir, an export")
    for name in ("checkpoint_path", "decode_hparams"):
        if FLAGS.export_dir and FLAGS[name].value:
            raise errors.UserError(
                f"--{name} is decided when a run is exported: leave it out with --export_dir"
            )
    texts = [FLAGS.text is not None, FLAGS.decode_from_file is not None]
    if FLAGS.html and sum(texts) != 1:
        raise errors.UserError("--html needs --text or --decode_from_file")
    if any(texts) and not FLAGS.html:
        raise errors.UserError("--text and --decode_from_file need --html, the file to write")
    if FLAGS.target is not None and FLAGS.text is None:
        raise errors.UserError("--target needs --text")


def _references(problem_name: str, data_dir: str) -> dict[str, str]:
    """Return the split's references by source; nothing where the data are not at hand."""
    from t2t_lite.data import manifest, remote

    try:
        data_dir = remote.local(data_dir)
        text = manifest.problem_text(data_dir, registry.problem(problem_name), FLAGS.split)
    except errors.UserError as error:
        if FLAGS.data_dir:
            raise
        print(f"no texts to choose from: {error}", file=sys.stderr)
        return {}
    return dict(zip(text.sources, text.references))


def _write(answers: "Answers") -> None:
    from t2t_lite.decode import files
    from t2t_lite.explore import saving

    if os.path.isdir(FLAGS.html):
        raise errors.UserError(f"{FLAGS.html} is a folder: give a file to write to")
    texts = [FLAGS.text] if FLAGS.text is not None else []
    if FLAGS.decode_from_file:
        files.refuse_one_file(FLAGS.decode_from_file, FLAGS.html)
        texts = list(text_files.read_lines(FLAGS.decode_from_file))
        if len(texts) > _MOST_TEXTS:
            raise errors.UserError(
                f"{FLAGS.decode_from_file} has {len(texts):,} lines: a page holds at most "
                f"{_MOST_TEXTS}"
            )
    if not any(text.strip() for text in texts):
        raise errors.UserError("there is no text to show: all of it is blank")
    page = saving.page(answers, [(text, FLAGS.target) for text in texts if text.strip()])
    with text_files.replacing(FLAGS.html) as file:
        file.write(page.encode("utf-8"))
    print(f"{FLAGS.html}: {len(page) / 1e6:.1f} MB; open it in a browser")


def _serve(answers: "Answers") -> None:
    from t2t_lite.explore import server

    made = server.make(answers, host=FLAGS.host, port=FLAGS.port)
    warming_up = threading.Thread(target=answers.warm_up, daemon=True)
    warming_up.start()
    host = f"[{FLAGS.host}]" if ":" in FLAGS.host else FLAGS.host
    if not server.is_loopback(FLAGS.host):
        print(
            f"--host={FLAGS.host}: whoever reaches this machine can use the page; nothing asks for "
            "a password",
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
    warming_up.join()  # a process that ends within TensorFlow's work is aborted


if __name__ == "__main__":
    sys.exit(main())
