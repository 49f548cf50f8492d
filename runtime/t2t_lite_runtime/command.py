"""Translate a file, a pipe, or what you type, with a model that t2t-lite-exporter made for LiteRT.

  t2t-lite-translate lite                     a prompt
  t2t-lite-translate lite in.en out.de        one output line for every input line
  ... | t2t-lite-translate lite - | ...       each line as soon as it comes

It needs no TensorFlow.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator

_BATCH = 64  # lines that are read before the first of them is written, from a file


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="t2t-lite-translate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("model", help="folder that t2t-lite-exporter --format=litert wrote")
    add(
        "input",
        nargs="?",
        help='text, one sentence per line; default, and "-": standard input',
    )
    add("output", nargs="?", default="-", help="file to write; default: standard output")
    add(
        "--nbest",
        action="store_true",
        help="write all beam_size outputs of a line, as output, score, output, score and so on, "
        "separated by tabs",
    )
    add(
        "--jsonl",
        action="store_true",
        help='write one JSON object per line: "text", "score", "finished" (false: cut off at the '
        'length limit), "source_truncated", and with --nbest "hypotheses"',
    )
    add("--threads", type=int, help="CPU cores to use; default: all, at most 4")
    args = parser.parse_args(argv)
    if args.threads is not None and args.threads < 1:
        parser.error(f"--threads is at least 1, got {args.threads}")
    try:
        _run(args)
    except (OSError, ValueError) as error:
        print(f"t2t-lite-translate: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run(args: argparse.Namespace) -> None:
    if args.input in (None, "-") and args.input != args.model and sys.stdin is None:
        raise ValueError("there is no standard input")
    # Imported here, so that --help answers at once.
    from t2t_lite_runtime import translator

    model = translator.load(args.model, args.threads)
    translate = model.nbest if args.nbest else model.translate

    def lines(texts: Iterable[str], size: int) -> Iterator[str]:
        for batch in _batches(texts, size):
            for translation in translate(batch):
                yield _json_line(translation) if args.jsonl else _line(translation)

    if args.input is None and sys.stdin.isatty():
        _converse(lines)
    elif args.input in (None, "-"):
        _write(lines(_decoded(sys.stdin.buffer), 1), args.output)
    else:
        with open(args.input, "rb") as file:
            _write(lines(_decoded(file), _BATCH), args.output)


def _converse(lines) -> None:
    import readline  # noqa: F401  keys that edit the line

    print("Type a sentence to translate it; Ctrl-D quits.")
    while True:
        try:
            for line in lines([input("> ")], 1):
                print(line)
        except EOFError:
            print()
            return


def _batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    texts = iter(texts)
    while batch := list(itertools.islice(texts, size)):
        yield batch


def _decoded(file) -> Iterator[str]:
    for line in file:
        yield line.rstrip(b"\r\n").decode("utf-8", "replace")


def _write(lines: Iterable[str], target: str) -> None:
    """Write lines; a file gets its name when it is complete."""
    if target == "-":
        for line in lines:
            sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
            sys.stdout.buffer.flush()
        return
    folder, name = os.path.split(os.path.abspath(target))
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with open(descriptor, "wb") as file:
            for line in lines:
                file.write(line.encode("utf-8", "replace") + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _line(translation) -> str:
    """Return the text, or of several hypotheses text and score by turns, tabs between."""
    if len(translation.hypotheses) == 1:
        return translation.text.replace("\n", " ")
    fields = ((h.text.replace("\t", " "), f"{h.score:.6f}") for h in translation.hypotheses)
    return "\t".join(field for pair in fields for field in pair).replace("\n", " ")


def _json_line(translation) -> str:
    best, *others = (
        {
            "text": h.text.encode("utf-8", "replace").decode(),
            "score": round(h.score, 6),
            "finished": h.finished,
        }
        for h in translation.hypotheses
    )
    result = {**best, "source_truncated": translation.truncated}
    if others:
        result["hypotheses"] = [best, *others]
    return json.dumps(result, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
