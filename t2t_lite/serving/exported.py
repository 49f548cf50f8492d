"""An export used from Python, without a server: text in, text out."""

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import matmuls
from t2t_lite.serving import protocol

EXTRA = "assets.extra"
OPTIONS_FILE = "t2t_lite.json"


def recorded(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what an exported version says of itself: its options, signatures, ..."""
    file = pathlib.Path(path) / EXTRA / OPTIONS_FILE
    try:
        return json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise errors.UserError(f"{path} was not written by t2t-lite-exporter: no {file}") from None


def require_processor(path: str | os.PathLike[str]) -> None:
    """Raise UserError where an exported version multiplies as this processor cannot."""
    if (pathlib.Path(path) / EXTRA / OPTIONS_FILE).exists():
        matmuls.require_precision(recorded(path)["options"]["precision"])


class Output(NamedTuple):
    """One output: its text, its length-normalised log-probability, whether it or its input was
    cut, whether its input was, and whether it ends by itself."""

    text: str
    score: float
    truncated: bool
    input_truncated: bool
    finished: bool


class Exported:
    """One version of an export.

    Attributes:
      path: its folder.
    """

    def __init__(self, path: pathlib.Path):
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        self.path = path
        require_processor(path)
        self._loaded = tf.saved_model.load(str(path))

    def translate(self, texts: Sequence[str]) -> list[Output]:
        """Return the best output of each text."""
        names = ("outputs", "scores", "truncated", "input_truncated", "finished")
        answer = self._ask("serving_default", names, inputs=texts)
        return [_output(*row) for row in zip(*(answer[name] for name in names))]

    def nbest(self, texts: Sequence[str]) -> list[list[Output]]:
        """Return the beam_size best outputs of each text, best first; of a blank text a blank
        one."""
        names = ("outputs", "scores", "truncated", "finished")
        answer = self._ask("nbest", names, inputs=texts)
        found = []
        for *columns, cut, are_finished in zip(*(answer[name] for name in names)):
            rows = [
                _output(text, score, cut or not finished, cut, finished)
                for text, score, finished in zip(*columns, are_finished)
                if score > protocol.NO_SCORE
            ]
            # All outputs of a blank text are blank, with score 0.
            found.append(rows[:1] if not any(row.text for row in rows) else rows)
        return found

    def score(self, texts: Sequence[str], targets: Sequence[str]) -> list[tuple[float, int]]:
        """Return the log-probability and the number of tokens of each target, given its text."""
        names = ("log_probabilities", "lengths")
        answer = self._ask("score", names, inputs=texts, targets=targets)
        columns = zip(*(answer[name] for name in names))
        return [(float(log_probability), int(length)) for log_probability, length in columns]

    def _ask(
        self, signature: str, names: Sequence[str], **texts: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Return the outputs of these names; UserError where the export takes no texts."""
        if any(isinstance(column, str) for column in texts.values()):
            raise TypeError("expected a list of texts, got one text")
        if signature not in self._loaded.signatures:
            raise errors.UserError(f"{self.path} takes ids alone: it has no tokenizer")
        # A lone surrogate is no text; the graph reads what is no UTF-8 as U+FFFD.
        data = {
            name: tf.constant(
                [text.encode("utf-8", errors="surrogatepass") for text in column], tf.string
            )
            for name, column in texts.items()
        }
        answer = self._loaded.signatures[signature](**data)
        return {name: answer[name].numpy() for name in names}


def _output(text: bytes, score, truncated, input_truncated, finished) -> Output:
    return Output(
        text.decode("utf-8"), float(score), bool(truncated), bool(input_truncated), bool(finished)
    )


def load(export_dir: str | os.PathLike[str]) -> Exported:
    """Load what t2t-lite-exporter wrote: the largest version in export_dir, or export_dir itself
    if that is a version.

    Raises UserError where there is none.
    """
    path = pathlib.Path(export_dir)
    if not (path / "saved_model.pb").is_file():
        versions = [p for p in path.glob("*") if p.name.isdecimal() and p.is_dir()]
        if not versions:
            raise errors.UserError(f"{path} holds no version: expected folders 1, 2, ...")
        path = max(versions, key=lambda version: int(version.name))
    return Exported(path)
