"""Translate through a running TensorFlow Serving.

  t2t-lite-query-server --server=localhost:8500 --servable_name=ende
  t2t-lite-query-server --server=localhost:8501 --servable_name=ende --rest
  t2t-lite-query-server --server=https://models.example.org/mt --servable_name=ende --rest
  t2t-lite-query-server --server=localhost:8500 --servable_name=ende \\
    --decode_from_file=in.en --decode_to_file=out.de

Without a file it translates what you type, or the lines of a pipe. To resume an interrupted command
that writes a file, run it again: it translates the missing lines.
"""

import collections
import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from absl import flags

from t2t_lite import errors, progress
from t2t_lite.bin import command, prompt
from t2t_lite.decode import journal, translation
from t2t_lite.text import text_files

if TYPE_CHECKING:
    from t2t_lite.serving import client

FLAGS = command.new_flags()
command.define_strings(
    FLAGS,
    server="Address of the server, host:port. TensorFlow Serving listens on port 8500 for gRPC and "
    "on 8501 for REST. https://host encrypts the connection, as --tls does, and has port 443 as "
    "default; with --rest a path may follow.",
    servable_name="Name of the model on the server.",
    decode_from_file=f"Input text, one sentence per line. {command.COMPRESSED} Default, and "
    '"-": standard input.',
    decode_to_file='File to write outputs to, one line per input line. Default, and "-": standard '
    "output.",
    signature_name="serving_default: the best output. nbest: all beam_size outputs of the export, "
    "as output, score, output, score and so on, separated by tabs.",
)
FLAGS.set_default("signature_name", "serving_default")
for name, default, text, lower_bound in (
    (
        "retries",
        5,
        "How many times to retry a request while the server is unavailable. While it is only busy, "
        "requests are retried until --timeout_secs.",
        0,
    ),
    (
        "in_flight",
        8,
        "How many requests to send before the first of them is answered. 1: a line of a pipe is "
        "answered before the next one is read.",
        1,
    ),
    (
        "batch_size",
        1,
        "Number of sentences in a request; the export has a batch_size of its own.",
        1,
    ),
    (
        "version",
        None,
        "Model version to ask. Default: the newest; give one if all lines must come from the same "
        "version.",
        0,
    ),
):
    flags.DEFINE_integer(name, default, text, lower_bound, flag_values=FLAGS)
command.define_strings(
    FLAGS, version_label="Label of the version to ask, e.g. stable, instead of --version."
)
_LONGEST = 1e6  # seconds; a socket's time-out cannot be any number
for name, default, text, lower_bound in (
    ("timeout_secs", 30, "Seconds that a request may take, all retries included.", 0.001),
    ("wait_secs", 60, "Seconds to wait for a server that is starting. 0: do not wait.", 0),
):
    flags.DEFINE_float(name, default, text, lower_bound, _LONGEST, flag_values=FLAGS)
command.define_bools(FLAGS, rest="Use REST instead of gRPC.", tls="Encrypt the connection.")
command.define_strings(
    FLAGS,
    ca_file="PEM file of the certificate authorities to trust; implies --tls. Default: with --rest "
    "the system's, otherwise gRPC's own.",
)
flags.DEFINE_multi_string(
    "header",
    [],
    "name=value to send with each request, as an HTTP header or gRPC metadata; may be repeated.",
    flag_values=FLAGS,
)
REQUIRED = command.require(FLAGS, "server", "servable_name")
_STANDARD = (None, "-")  # a file flag's values for the standard input or output
# Lines that are held at a time; the journal keeps their outputs.
_WINDOW = 10_000
_NAMED = 10  # line numbers in a remark
_REMARKS = {
    "truncated": "longer than max_source_length, cut",
    "unfinished": "with an output cut off at the length limit",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_query, FLAGS, doc=__doc__, required=REQUIRED, argv=argv)


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
        tls=FLAGS.tls,
        ca_file=FLAGS.ca_file,
        headers=_headers(),
    ) as translator:
        _check_files()
        if FLAGS.wait_secs:
            translator.wait(FLAGS.wait_secs, lambda line: print(line, file=sys.stderr, flush=True))
        if FLAGS.decode_from_file is None and sys.stdin.isatty():
            if FLAGS.decode_to_file not in _STANDARD:
                raise errors.UserError("--decode_to_file needs --decode_from_file or a pipe")
            _converse(translator)
        elif FLAGS.decode_to_file in _STANDARD or text_files.is_special(FLAGS.decode_to_file):
            _stream(translator)
        else:
            _translate_file(translator)


def _check_files() -> None:
    """Refuse files that cannot be used, before the server is waited for."""
    source, target = FLAGS.decode_from_file, FLAGS.decode_to_file
    if source not in _STANDARD and not text_files.is_special(source):
        with text_files.explain_damage(source), text_files.open_binary(source):
            pass
    if target not in _STANDARD:
        text_files.refuse_target(target, source)


def _headers() -> dict[str, str]:
    pairs = [header.partition("=") for header in FLAGS.header]
    for header, (_, equals, _) in zip(FLAGS.header, pairs):
        if not equals:
            raise errors.UserError(f"--header is name=value, got {header!r}")
    return {name: value for name, _, value in pairs}


def _stream(translator: "client.Client") -> None:
    """Write the output of each line as soon as it and those before it are there."""
    remarks = _Remarks()
    with contextlib.ExitStack() as stack:
        file = sys.stdout.buffer
        if FLAGS.decode_to_file not in _STANDARD:
            file = stack.enter_context(open(FLAGS.decode_to_file, "wb"))
        for number, output in enumerate(translator.stream(_lines()), start=1):
            result = _result(output)
            file.write(result.text.encode() + b"\n")
            file.flush()
            remarks.add(number, result)
    remarks.print()


def _translate_file(translator: "client.Client") -> None:
    """Translate all lines; the file appears when it is complete, a journal keeps finished lines."""
    target = FLAGS.decode_to_file
    names = ("server", "servable_name", "signature_name", "version", "version_label")
    job = {"query": {name: FLAGS[name].value for name in names}}
    start, remarks = time.monotonic(), _Remarks()
    total, asked = 0, 0
    with (
        journal.Journal(target, job) as kept,
        progress.Progress("sentences", stream=sys.stderr) as shown,
    ):
        try:
            for window in text_files.windows(_lines(), _WINDOW):
                results = kept.begin(window)
                for place, result in sorted(results.items()):
                    remarks.add(total + place + 1, result)
                missing = [place for place in range(len(window)) if place not in results]
                outputs = translator.stream(window[place] for place in missing)
                for place, output in zip(missing, outputs):
                    result = _result(output)
                    kept.add([(place, result)])
                    remarks.add(total + place + 1, result)
                    asked += 1
                    shown.update(asked)
                total += len(window)
            text_files.write_lines(target, kept.outputs())
        except errors.UserError as error:
            if asked:
                raise errors.UserError(
                    f"{error}; {errors.counted(asked, 'line')} done: the same command resumes"
                ) from error
            if kept.is_empty:
                kept.delete()
            raise
        kept.delete()
    seconds = time.monotonic() - start
    print(f"{errors.counted(total, 'line')}, {seconds:,.1f} s: {asked / seconds:,.1f} sentences/s")
    if total > asked:
        resumed = errors.counted(total - asked, "line")
        print(f"{resumed} came from the interrupted run before", file=sys.stderr)
    if kept.kept_as:
        print(
            f"an earlier journal, of other lines or another model or damaged, is in {kept.kept_as}",
            file=sys.stderr,
        )
    remarks.print()


def _converse(translator: "client.Client") -> None:
    """Answer what is typed; errors and Ctrl-C do not end it."""
    print("Type a sentence; Ctrl-D leaves.")

    def answer(text: str) -> bool:
        if text.strip():
            try:
                (output,) = translator.translate([text])
            except errors.UserError as error:
                print(error, file=sys.stderr)
            else:
                is_complete = output.finished and not output.truncated
                print(_result(output).text + ("" if is_complete else " (cut off)"))
        return False

    prompt.ask(answer)


def _lines() -> Iterator[str]:
    if FLAGS.decode_from_file not in _STANDARD:
        return text_files.read_lines(FLAGS.decode_from_file)
    return text_files.decode_lines(sys.stdin.buffer)


def _result(output: translation.Translation) -> journal.Result:
    """Return the line that t2t-lite-decoder writes, and marks of what was cut off."""
    return journal.Result.marked(
        translation.line(output, is_nbest=FLAGS.signature_name == "nbest"),
        truncated=output.truncated,
        unfinished=not output.finished,
    )


class _Remarks:
    """Counts lines whose input or output was cut off, and keeps the first line numbers."""

    def __init__(self):
        self._counts: collections.Counter[str] = collections.Counter()
        self._first: dict[str, list[str]] = collections.defaultdict(list)

    def add(self, number: int, result: journal.Result) -> None:
        """Count a line, numbered from 1, by the marks of its result."""
        self._counts.update(result.marks)
        for mark in result.marks:
            if self._counts[mark] <= _NAMED:
                self._first[mark].append(str(number))

    def print(self) -> None:
        """Print a line for each kind."""
        for mark, remark in _REMARKS.items():
            if count := self._counts[mark]:
                numbers = ", ".join(self._first[mark]) + (", ..." if count > _NAMED else "")
                print(f"{errors.counted(count, 'line')} {remark}: {numbers}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
