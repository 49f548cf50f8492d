"""Text in, text out."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from t2t_lite_runtime import search, text
from t2t_lite_runtime.errors import UserError

MODEL_FILE = "model.tflite"
RECORD_FILE = "manifest.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One output: its text and its length-normalised log-probability.

    `finished` is False where it hit the length limit: the text is cut off.
    """

    text: str
    score: float
    finished: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translation:
    """The hypotheses for one input, best first, and whether the input was cut."""

    hypotheses: tuple[Hypothesis, ...]
    truncated: bool = False

    @property
    def text(self) -> str:
        """The best hypothesis' text."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """The best hypothesis' length-normalised log-probability."""
        return self.hypotheses[0].score

    @property
    def finished(self) -> bool:
        """Whether the best hypothesis is complete."""
        return self.hypotheses[0].finished


_BLANK = Translation(hypotheses=(Hypothesis(text="", score=0.0, finished=True),))


class Translator:
    """One version of an export; its methods may be called from several threads.

    Args:
      path: the version's folder.
      num_threads: that work at a time: together on one text of a large model, on a text each of a
        small one. Default: the processor's cores, at most 4.

    Attributes:
      path: the version's folder.
      record: the problem, checkpoint, options and vocabularies that were exported.
    """

    def __init__(self, path: pathlib.Path, num_threads: int | None = None):
        self.path, self.record = path, _record(path)
        num_threads = num_threads or search.cores()
        self._options: dict[str, Any] = self.record["options"]
        sides = self.record["vocabularies"]
        self._source, self._target = (
            text.Vocabulary(path / side["model"], side.get("pieces"))
            for side in (sides["source"], sides.get("target", sides["source"]))
        )
        model = path / MODEL_FILE
        threads = search.threads_for(model.stat().st_size, num_threads)
        self._search = search.Searcher(model, threads)
        self._num_at_a_time = max(num_threads // threads, 1)
        self._label: str = self.record["label"]

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """Return the translation of each text, with the best hypothesis."""
        return self._run(texts, 1)

    def nbest(self, texts: Sequence[str]) -> list[Translation]:
        """Return the translation of each text, with beam_size hypotheses."""
        return self._run(texts, self._options["beam_size"])

    def _run(self, texts: Sequence[str], num_wanted: int) -> list[Translation]:
        if isinstance(texts, str):
            raise TypeError("expected a list of texts, got one text")
        if len(texts) < 2:
            return [self._translate(each, num_wanted) for each in texts]
        with concurrent.futures.ThreadPoolExecutor(self._num_at_a_time) as pool:
            return list(pool.map(self._translate, texts, [num_wanted] * len(texts)))

    def _translate(self, given: str, num_wanted: int) -> Translation:
        if not isinstance(given, str):
            raise TypeError(f"expected a text, got {given!r}")
        cut = self._cut(given)
        if not cut.strip():
            return _BLANK
        ids = self._source.encode(cut, self._label)
        room = self._options["max_source_length"] - 1
        found = self._search([*ids[:room], text.EOS_ID], num_wanted)
        hypotheses = [
            Hypothesis(text=self._target.decode(ids[:n]), score=score, finished=finished)
            for ids, score, n, finished in zip(*(array.tolist() for array in found))
            if n
        ]
        if not hypotheses:
            raise UserError(
                "the export gives no output: its weights are too large or not numbers; export "
                "another checkpoint"
            )
        return Translation(
            hypotheses=tuple(hypotheses[:num_wanted]),
            truncated=len(ids) > room or len(cut) < len(given),
        )

    def _cut(self, given: str) -> str:
        """Return the beginning that max_source_length tokens can spell, and as much again."""
        limit = self.record["max_bytes"]
        if 4 * len(given) <= limit:
            return given
        data = given.encode("utf-8", "surrogatepass")
        return given if len(data) <= limit else data[:limit].decode("utf-8", "ignore")


def _record(path: pathlib.Path) -> dict[str, Any]:
    return json.loads((path / RECORD_FILE).read_text("utf-8"))


def load(export_dir: str | os.PathLike[str], num_threads: int | None = None) -> Translator:
    """Load an export: the largest version in export_dir, or export_dir itself if it is a version.

    Raises UserError where there is none, or its files are damaged.
    """
    path = pathlib.Path(export_dir)
    if not (path / MODEL_FILE).is_file():
        versions = [p for p in path.glob("*") if p.name.isdecimal() and (p / MODEL_FILE).is_file()]
        if not versions:
            raise UserError(
                f"{path} holds no LiteRT export: expected folders 1, 2, ... with {MODEL_FILE}, as "
                "t2t-lite-exporter --format=litert writes them"
            )
        path = max(versions, key=lambda version: int(version.name))
    try:
        return Translator(path, num_threads)
    except (KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is not a complete export ({type(error).__name__}: {error}); copy it again, or "
            "export the model again"
        ) from error
