"""An interactive prompt."""

import contextlib
import readline
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from t2t_lite import errors, machine

if TYPE_CHECKING:
    from t2t_lite.decode import translator

HELP = """Type a sentence to translate it.
  :n  all outputs of the last sentence, with scores and tokens
  :h  this help
  :q  quit (or Ctrl-D)"""


def converse(model: "translator.Translator") -> None:
    """Translate each typed line; lines that start with ":" are commands."""
    print("loading ...", end="\r", file=sys.stderr, flush=True)
    model.translate(["a"])  # builds the graph, so that the first answer is as fast as the others
    print(HELP)
    last = None

    def answer(text: str) -> bool:
        nonlocal last
        line = text.strip()
        if line in (":h", ":n"):
            print(HELP if line == ":h" or last is None else _details(last))
        elif line and line != ":q":
            last = model.translate([text])[0]
            print(_marked(last))
            if model.vocabulary.lacks_label(last.source_ids):
                print(f"(target language? Begin with one of {', '.join(model.vocabulary.labels)})")
        return line == ":q"

    ask(answer)


def ask(answer: Callable[[str], bool]) -> None:
    """Pass each typed line to `answer` until it returns True or the input ends.

    Ctrl-C drops the current line.
    """
    with _history():
        while True:
            try:
                typed = input("> ").encode("utf-8", errors="surrogateescape")
                if answer(typed.decode("utf-8", errors="replace")):
                    return
            except errors.UserError as error:  # such as a target language that there is not
                print(error)
            except KeyboardInterrupt:
                with contextlib.suppress(KeyboardInterrupt):  # the key may still be held
                    print()
            except EOFError:
                print()
                return


def _marked(translation: "translator.Translation") -> str:
    marks = []
    if translation.truncated:
        marks.append("(the input was cut)")
    if not translation.finished:
        marks.append("(cut off at the length limit)")
    if translation.repairs:
        marks.append("(repaired: the output was not a tree)")
    return " ".join([translation.text, *marks]).strip()


def _details(translation: "translator.Translation") -> str:
    return "\n".join(
        f"{hypothesis.score:9.4f}  {len(hypothesis.ids):3} tokens  {hypothesis.text}"
        + ("" if hypothesis.finished else "  (cut off at the length limit)")
        for hypothesis in translation.hypotheses
    )


@contextlib.contextmanager
def _history():
    """Keep the history of typed lines across calls."""
    try:
        path = machine.cache_dir() / "history"
    except errors.UserError:  # a user without a home folder has none
        yield
        return
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.set_history_length(1000)
            readline.write_history_file(path)
