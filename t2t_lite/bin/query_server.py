"""Translate through a running TensorFlow Serving.

  t2t-lite-query-server --server=localhost:8500 --servable_name=ende
  t2t-lite-query-server --server=localhost:8501 --servable_name=ende --rest
  t2t-lite-query-server --server=localhost:8500 --servable_name=ende \\
      --decode_from_file=in.en --decode_to_file=out.de

Without a file it answers what you type, or what comes through a pipe, line for line.
"""

import itertools
import readline  # noqa: F401  gives input() a history and editing
import sys
import time
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

from absl import flags

from t2t_lite import errors, progress
from t2t_lite.bin import command
from t2t_lite.text import text_files

if TYPE_CHECKING:
    from t2t_lite.serving import client

FLAGS = command.new_flags()
flags.DEFINE_string("server", None, "host:port; gRPC: 8500, REST: 8501.", flag_values=FLAGS)
flags.DEFINE_string("servable_name", None, "The model's name on the server.", flag_values=FLAGS)
flags.DEFINE_bool("rest", False, "Speak REST, not gRPC.", flag_values=FLAGS)
flags.DEFINE_string(
    "decode_from_file",
    None,
    'The text, one sentence a line; may be compressed. Default, and "-": the standard input.',
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "decode_to_file",
    "-",
    'Where the outputs go, one line for every input line; "-" is the standard output.',
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "signature_name",
    "serving_default",
    "serving_default, or nbest: all outputs with their scores, tabs between.",
    flag_values=FLAGS,
)
flags.DEFINE_integer("version", None, "Of the model; default: the newest.", 0, flag_values=FLAGS)
flags.DEFINE_string("version_label", None, "E.g. stable, instead.", flag_values=FLAGS)
flags.DEFINE_float(
    "timeout_secs", 30, "Of a request with all its retries.", 0.001, flag_values=FLAGS
)
flags.DEFINE_integer(
    "retries", 5, "Further tries while the server is unavailable.", 0, flag_values=FLAGS
)
flags.DEFINE_integer(
    "in_flight",
    8,
    "Requests that wait for an answer at a time; through a pipe, 1 answers every line at once.",
    1,
    flag_values=FLAGS,
)
flags.DEFINE_integer("batch_size", 1, "Sentences of a request.", 1, flag_values=FLAGS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    required = ("server", "servable_name")
    return command.run(_query, FLAGS, doc=__doc__, required=required, argv=argv)


def _query() -> None:
    from t2t_lite.serving import client

    if FLAGS.version is not None and FLAGS.version_label is not None:
        raise errors.UserError("give --version or --version_label, not both")
    with client.Client(
        FLAGS.server,
        FLAGS.servable_name,
        rest=FLAGS.rest,
        signature_name=FLAGS.signature_name,
        version=FLAGS.version,
        version_label=FLAGS.version_label,
        timeout=FLAGS.timeout_secs,
        retries=FLAGS.retries,
        in_flight=FLAGS.in_flight,
        batch_size=FLAGS.batch_size,
    ) as translator:
        if FLAGS.decode_from_file is None and sys.stdin.isatty():
            _converse(translator)
        else:
            _translate(translator)


def _translate(translator: "client.Client") -> None:
    """Translate all lines; a file appears under its name when it is complete."""
    if FLAGS.decode_to_file == "-":
        for answer in translator.stream(_lines()):
            _write(answer, sys.stdout.buffer)
        return
    start, count = time.monotonic(), 0
    with (
        text_files.replacing(FLAGS.decode_to_file) as file,
        progress.Progress("sentences", stream=sys.stderr) as shown,
    ):
        for count, answer in enumerate(translator.stream(_lines()), start=1):
            _write(answer, file)
            shown.update(count)
    seconds = time.monotonic() - start
    print(f"{count:,} lines, {seconds:,.1f} s: {count / seconds:,.1f} sentences/s")


def _write(answer: "client.Answer", file: IO[bytes]) -> None:
    file.write(_line(answer).encode() + b"\n")
    file.flush()


def _converse(translator: "client.Client") -> None:
    """Answer what is typed; neither an error nor Ctrl-C ends it."""
    print("Type a sentence; Ctrl-D leaves.")
    while True:
        try:
            text = input("> ")
            if text.strip():
                answer = translator.translate([text])[0]
                print(_line(answer) + (" (cut off)" if answer.truncated else ""))
        except errors.UserError as error:
            print(error, file=sys.stderr)
        except KeyboardInterrupt:
            print()
        except EOFError:
            print()
            return


def _lines() -> Iterator[str]:
    if FLAGS.decode_from_file not in (None, "-"):
        return text_files.read_lines(FLAGS.decode_from_file)
    return (
        line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors="replace")
        for line in sys.stdin.buffer
    )


def _line(answer: "client.Answer") -> str:
    """Return the text, or with n-best texts and scores by turns."""
    if len(answer.outputs) == 1:
        return answer.text.replace("\n", " ")
    pairs = zip(answer.outputs, answer.scores)
    fields = itertools.chain.from_iterable(
        (text.replace("\t", " "), f"{score:.6f}") for text, score in pairs
    )
    return "\t".join(fields).replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main())
