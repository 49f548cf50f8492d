"""The page's answers for an export: texts and scores, which is all that its signatures give.

Tokens, attention and the search need the run: `explorer` shows them.
"""

import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from t2t_lite import errors
from t2t_lite.decode import beam_search, forced
from t2t_lite.decode import options as decode_options
from t2t_lite.decode.translation import Translation
from t2t_lite.explore import explorer
from t2t_lite.tasks import catalog, parsing

MISSING = (
    "An export answers with texts and their scores only. The page of the run shows subwords with "
    "their probabilities, attention and the search: t2t-lite-explore --output_dir."
)


class Export(Protocol):
    """The parts of serving.exported.Translator that the page needs."""

    path: pathlib.Path
    record: dict[str, Any]

    def nbest(self, texts: Sequence[str]) -> list[Translation]:
        """Return the translation of each text, with beam_size hypotheses."""
        ...

    def score(self, texts: Sequence[str], targets: Sequence[str]) -> list[forced.PairScore]:
        """Return the score of every target given its text."""
        ...


class ExportExplorer:
    """Answers the page's requests for an export; its methods may be called from several threads.

    Args:
      export: the export.
      references: the reference of each source text that has one.
      language: the source's, such as "de"; "" if unknown.
    """

    def __init__(
        self, export: Export, *, references: Mapping[str, str] | None = None, language: str = ""
    ):
        self._export = export
        self._options = decode_options.DecodeOptions(**export.record["options"])
        task_class = catalog.task_class(export.record["task"])
        self._is_parser = issubclass(task_class, parsing.Parsing)
        self._references = dict(references or {})
        self._language = language

    def warm_up(self) -> None:
        """Let TensorFlow prepare its functions."""
        self.translation("a")

    def about(self) -> dict[str, Any]:
        """See explorer.Explorer."""
        return {
            "name": f"{self._export.path} of {self._export.record['checkpoint']}",
            "num_models": 1,
            "is_parser": self._is_parser,
            "has_search": False,
            "has_tokens": False,
            "missing": MISSING,
            "options": {name: getattr(self._options, name) for name in explorer.OPTIONS},
            "max_source_length": self._options.max_source_length,
            "examples": explorer.examples(self._references, self._language),
        }

    def translation(self, text: str, target: str | None = None) -> dict[str, Any]:
        """See explorer.Explorer; there are no tokens. A given output has its score."""
        start = time.perf_counter()
        (found,) = self._export.nbest([text])
        seconds = time.perf_counter() - start
        is_blank = not text.strip()
        given = None if target is None or is_blank else self._given(text, target)
        output = given["text"] if given else found.text
        return {
            "text": text,
            "seconds": seconds,
            "is_blank": is_blank,
            "truncated": found.truncated,
            "hypotheses": [
                _hypothesis(h.text, h.score, finished=h.finished) for h in found.hypotheses
            ],
            "given": given,
            **explorer.beside_reference(text, output, self._references, is_parser=self._is_parser),
        }

    def attention(self, text: str, target: str | None, kind: str, layer: int) -> bytes:
        """Raise UserError: there is none."""
        raise errors.UserError(MISSING)

    def search(self, text: str) -> dict[str, Any]:
        """Raise UserError: there is none."""
        raise errors.UserError(MISSING)

    def _given(self, text: str, target: str) -> dict[str, Any]:
        """Return an output of the user's, with its score."""
        if self._is_parser:
            raise errors.UserError("an export scores no tree: look at it with --output_dir")
        (score,) = self._export.score([text], [target])
        penalty = float(beam_search.length_penalty(score.num_tokens, self._options))
        return _hypothesis(target, score.log_probability / penalty, finished=True)


Answers = explorer.Explorer | ExportExplorer  # to the page's requests


def _hypothesis(text: str, score: float, *, finished: bool) -> dict[str, Any]:
    return {"text": text, "score": score, "finished": finished, "repairs": 0}
