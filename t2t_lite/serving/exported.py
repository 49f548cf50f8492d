"""An export used from Python, without a server: text in, text out."""

import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from t2t_lite import errors


class Output(NamedTuple):
    """One output: its text, its length-normalised log-probability, whether it or its input was
    cut."""

    text: str
    score: float
    truncated: bool


class Exported:
    """One version of an export.

    Attributes:
      path: its folder.
    """

    def __init__(self, path: pathlib.Path):
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        self.path = path
        self._loaded = tf.saved_model.load(str(path))

    def translate(self, texts: Sequence[str]) -> list[Output]:
        """Return the best output of each text."""
        if isinstance(texts, str):
            raise TypeError("expected a list of texts, got one text")
        if "serving_default" not in self._loaded.signatures:
            raise errors.UserError(f"{self.path} takes ids alone: it has no tokenizer")
        # A lone surrogate is no text; the graph reads what is no UTF-8 as U+FFFD.
        data = [text.encode("utf-8", errors="surrogatepass") for text in texts]
        answer = self._loaded.signatures["serving_default"](inputs=tf.constant(data, tf.string))
        columns = (answer[name].numpy() for name in ("outputs", "scores", "truncated"))
        return [
            Output(text.decode("utf-8"), float(score), bool(cut))
            for text, score, cut in zip(*columns)
        ]


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
