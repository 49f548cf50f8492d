"""Translate through a running TensorFlow Serving.

  t2t-lite-query-server --server=localhost:8500 --servable_name=ende
  t2t-lite-query-server --server=localhost:8501 --servable_name=ende --rest
  t2t-lite-query-server --server=https://models.example.org/mt --servable_name=ende --rest
  t2t-lite-query-server --server=localhost:8500 --servable_name=ende \\
      --decode_from_file=in.en --decode_to_file=out.de

Without a file it translates what you type, or the lines of a pipe. To resume an interrupted command
that writes a file, run it again: it translates the missing lines. With --version all lines come
from the same version of the model.
"""

import collections
import contextlib
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from absl import flags

from t2t_lite import errors, progress
from t2t_lite.bin import command, prompt
from t2t_lite.decode import journal
from t2t_lite.text import text_files

if TYPE_CHECKING:
    from t2t_lite.serving import client

FLAGS = command.new_flags()
command.define_strings(
    FLAGS,
    server="host:port of the server (TensorFlow Serving: 8500 gRPC, 8501 REST), or https://host "
    "for TLS. With --rest a path may follow.",
    servable_name="Name of the model on the server.",
    decode_from_file='Input text, one sentence per line; may be compressed. Default, and "-": '
    "standard input.",
    version_label="Label of the version to ask, e.g. stable, instead of --version.",
    ca_file="PEM file of the certificate authorities to trust; implies --tls. Default: the "
    "system's with --rest, gRPC's own otherwise.",
)
flags.DEFINE_string(
    "decode_to_file",
    "-",
    'Where to write outputs, one line per input line. "-": standard output.',
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "signature_name",
    "serving_default",
    "serving_default, or nbest: all outputs with their scores, separated by tabs.",
    flag_values=FLAGS,
)
for name, default, text, lower_bound in (
    ("version", None, "Version of the model to ask. Default: the newest.", 0),
    ("retries", 5, "How often to retry a request while the server is unavailable.", 0),
    ("in_flight", 8, "How many requests to send at a time; 1 answers a pipe line by line.", 1),
    ("batch_size", 1, "Number of sentences in a request.", 1),
):
    flags.DEFINE_integer(name, default, text, lower_bound, flag_values=FLAGS)
flags.DEFINE_float(
    "timeout_secs", 30, "Seconds for a request with its retries.", 0.001, flag_values=FLAGS
)
command.define_bools(FLAGS, rest="Use REST instead of gRPC.", tls="Encrypt the connection.")
flags.DEFINE_multi_string(
    "header",
    [],
    "name=value to send with each request, as an HTTP header or gRPC metadata; may be repeated.",
    flag_values=FLAGS,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    required = ("server", "servable_name")
    return command.run(_query, FLAGS, doc=__doc__, required=required, argv=argv)


# Lines that are held at a time; what is done of them is kept.
_WINDOW = 10_000
_NAMED = 10  # line numbers that a report names


_CUTS = {
    "truncated": "were longer than max_source_length and were cut",
    "unfinished": "have an output cut off at the length limit",
    "cut": "have an input or an output that was cut off",
}


class _Cuts:
    """Which lines something was cut off of: the number of each kind, and the first of them."""

    def __init__(self):
        self._counts: collections.Counter[str] = collections.Counter()
        self._first: dict[str, list[int]] = collections.defaultdict(list)

    def add(self, number: int, marks: Sequence[str]) -> None:
        """Count a line, numbered from 1, by the marks of its answer."""
        self._counts.update(marks)
        for mark in marks:
            if self._counts[mark] <= _NAMED:
                self._first[mark].append(number)

    def report(self) -> None:
        """Print a line for each kind."""
        for mark, words in _CUTS.items():
            if count := self._counts[mark]:
                numbers = ", ".join(map(str, self._first[mark]))
                more = ", ..." if count > _NAMED else ""
                print(f"{count:,} lines {words}: {numbers}{more}", file=sys.stderr)


def _result(answer: "client.Answer") -> journal.Result:
    """Return an answer's line, with marks of what was cut off as `_CUTS` calls it."""
    return journal.Result.marked(
        _line(answer),
        truncated=answer.input_truncated,
        unfinished=answer.finished and not answer.finished[0],
        cut=answer.truncated and answer.input_truncated is None,
    )


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
        if FLAGS.decode_from_file is None and sys.stdin.isatty():
            if FLAGS.decode_to_file != "-":
                raise errors.UserError(
                    "--decode_to_file wants --decode_from_file, a file or a pipe"
                )
            _converse(translator)
        elif FLAGS.decode_to_file == "-" or text_files.is_special(FLAGS.decode_to_file):
            _stream(translator)
        else:
            _translate_file(translator)


def _headers() -> dict[str, str]:
    headers = {}
    for given in FLAGS.header:
        name, equals, value = given.partition("=")
        if not equals:
            raise errors.UserError(f"--header is name=value, got {given!r}")
        headers[name] = value
    return headers


def _stream(translator: "client.Client") -> None:
    """Answer each line as soon as it and those before it are answered."""
    cuts = _Cuts()
    with contextlib.ExitStack() as stack:
        file = sys.stdout.buffer
        if FLAGS.decode_to_file != "-":
            file = stack.enter_context(open(FLAGS.decode_to_file, "wb"))
        for number, answer in enumerate(translator.stream(_lines()), start=1):
            result = _result(answer)
            file.write(result.text.encode() + b"\n")
            file.flush()
            cuts.add(number, result.marks)
    cuts.report()


def _translate_file(translator: "client.Client") -> None:
    """Translate all lines; the file appears when it is complete, a journal keeps what is done."""
    target = FLAGS.decode_to_file
    text_files.refuse_target(target, FLAGS.decode_from_file)
    names = ("server", "servable_name", "signature_name", "version", "version_label")
    job = {"query": {name: FLAGS[name].value for name in names}}
    start, cuts = time.monotonic(), _Cuts()
    with (
        journal.Journal(target, job) as kept,
        progress.Progress("sentences", stream=sys.stderr) as shown,
    ):
        total, asked = 0, 0
        try:
            for window in _windows(_lines()):
                results = kept.begin(window)
                for place, result in sorted(results.items()):
                    cuts.add(total + place + 1, result.marks)
                missing = [place for place in range(len(window)) if place not in results]
                answers = translator.stream(window[place] for place in missing)
                for place, answer in zip(missing, answers):
                    result = _result(answer)
                    kept.add([(place, result)])
                    cuts.add(total + place + 1, result.marks)
                    asked += 1
                    shown.update(asked)
                total += len(window)
            text_files.write_lines(target, kept.outputs())
        except errors.UserError as error:
            if asked:
                raise errors.UserError(
                    f"{error}; {asked:,} lines are done: the same command goes on"
                ) from error
            if kept.is_empty:
                kept.delete()
            raise
        kept.delete()
    seconds = time.monotonic() - start
    print(f"{total:,} lines, {seconds:,.1f} s: {asked / seconds:,.1f} sentences/s")
    if total > asked:
        print(f"{total - asked:,} lines came from the interrupted run before", file=sys.stderr)
    if kept.kept_as:
        print(
            "what an interrupted run of other lines or another model left, or a damaged one, is in "
            f"{kept.kept_as}",
            file=sys.stderr,
        )
    cuts.report()


def _converse(translator: "client.Client") -> None:
    """Answer what is typed; neither an error nor Ctrl-C ends it."""
    print("Type a sentence; Ctrl-D leaves.")

    def answer(text: str) -> bool:
        if text.strip():
            try:
                one = translator.translate([text])[0]
            except errors.UserError as error:
                print(error, file=sys.stderr)
            else:
                print(_line(one) + (" (cut off)" if one.truncated else ""))
        return False

    prompt.ask(answer)


def _lines() -> Iterator[str]:
    if FLAGS.decode_from_file not in (None, "-"):
        return text_files.read_lines(FLAGS.decode_from_file)
    return text_files.decode_lines(sys.stdin.buffer)


def _windows(lines: Iterator[str]) -> Iterator[list[str]]:
    while window := list(itertools.islice(lines, _WINDOW)):
        yield window


def _line(answer: "client.Answer") -> str:
    """Return the line that t2t-lite-decoder writes: the text, or texts and scores by turns."""
    from t2t_lite.serving import protocol

    if FLAGS.signature_name != "nbest":
        return answer.text.replace("\n", " ")
    filled = [(t, s) for t, s in zip(answer.outputs, answer.scores) if s > protocol.NO_SCORE]
    if not any(answer.outputs):  # a blank line has one blank output, however many were asked for
        filled = filled[:1]
    fields = ((text.replace("\t", " "), f"{score:.6f}") for text, score in filled)
    return "\t".join(itertools.chain.from_iterable(fields)).replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main())
