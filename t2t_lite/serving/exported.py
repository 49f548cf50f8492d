"""An export used from Python, without a server: text in, text out.

model = t2t_lite.load("export")
model.translate(["A dog runs."])[0].text
"""

import json
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_lite import errors
from t2t_lite.decode import engine, forced, matmuls, one_process
from t2t_lite.decode.translation import Translation, require_texts
from t2t_lite.serving import answers, lite, protocol, session

if TYPE_CHECKING:
    import t2t_lite_runtime

EXTRA = "assets.extra"
RECORD_FILE = "t2t_lite.json"


class Translator(one_process.OneProcess):
    """One version of an export; its methods may be called from several threads.

    It can be neither pickled nor used in a process that was forked later.

    Its results are a decode.Translator's, but tell no ids. Raises UserError if this is not an
    export, or if this processor cannot run it.

    Attributes:
      path: the version's folder.
      record: the problem, task, checkpoint, options and signatures that were exported.
    """

    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.path = path
        self.record = record(path)
        matmuls.require_precision(self.record["options"]["precision"])
        self._session = session.Session(path)

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """Return the translation of each text, with the best hypothesis."""
        return answers.translations(self._run("serving_default", inputs=texts))

    def nbest(self, texts: Sequence[str]) -> list[Translation]:
        """Return the translation of each text, with beam_size hypotheses."""
        return answers.translations(self._run("nbest", inputs=texts))

    def score(self, texts: Sequence[str], targets: Sequence[str]) -> list[forced.PairScore]:
        """Return the score of every target given its text."""
        answer = self._run("score", inputs=texts, targets=targets)
        names = ("log_probabilities", "lengths", "truncated", "target_truncated")
        return [
            forced.PairScore(
                log_probability=total, num_tokens=length, truncated=cut, target_truncated=target_cut
            )
            for total, length, cut, target_cut in zip(*(answer[name] for name in names))
        ]

    def _run(self, signature: str, **columns: Sequence[str]) -> dict[str, list]:
        """Return a signature's outputs by name."""
        self.require_process()
        inputs, (first, *_) = {}, columns.values()
        for name, texts in columns.items():
            require_texts(texts, "texts" if texts is first else name, len(first))
            inputs[name] = np.array([protocol.as_bytes(text) for text in texts], object)
        outputs = self._session.run(signature, inputs)
        return {name: answers.as_text(array.tolist()) for name, array in outputs.items()}


def record(path: pathlib.Path) -> dict[str, Any]:
    """Return the record of an exported version; raise UserError where there is none."""
    file = path / EXTRA / RECORD_FILE
    if not file.is_file():
        raise errors.UserError(f"{path} was not written by t2t-lite-exporter: no {file}")
    try:
        return json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise errors.UserError(f"{file} is damaged ({error}); export the model again") from error


def load(
    export_dir: str | os.PathLike[str],
) -> "Translator | t2t_lite_runtime.Translator":
    """Load an export: the largest version in export_dir, or export_dir itself if it is a version.

    One in LiteRT is a t2t_lite_runtime.Translator, which has no `score` and raises
    t2t_lite_runtime.UserError, a ValueError as ours is. Raises UserError where there is no export,
    files are damaged, or the runtime is missing.
    """
    path = pathlib.Path(export_dir)
    if not any((path / name).is_file() for name in ("saved_model.pb", lite.MODEL_FILE)):
        versions = [p for p in path.glob("*") if p.name.isdecimal() and p.is_dir()]
        if not versions:
            raise errors.UserError(f"{path} holds no version: expected folders 1, 2, ...")
        path = max(versions, key=lambda version: int(version.name))
    if not (path / lite.MODEL_FILE).is_file():
        return Translator(path)
    try:
        import t2t_lite_runtime
    except ImportError as error:
        raise errors.UserError(f"{path} is a LiteRT export: {engine.INSTALL}") from error
    try:
        return t2t_lite_runtime.load(path)
    except t2t_lite_runtime.UserError as error:
        raise errors.UserError(str(error)) from error
