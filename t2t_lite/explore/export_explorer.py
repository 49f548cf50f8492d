"""What the page shows of an export: texts and scores, which is all that its signatures give.

A SavedModel is asked as a client asks TensorFlow Serving, so that what is seen here is what is
served. Tokens, attention, the search and training are the run's: `explorer` shows them.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from t2t_lite import errors
from t2t_lite.decode import options as decode_options
from t2t_lite.explore import explorer, search_tree

MISSING = (
    "An export answers with texts and their scores alone. Tokens with their probabilities, "
    "attention, the search and the training are shown of the run: t2t-lite-explore --output_dir."
)


class Export(Protocol):
    """What is asked of an export: see serving.exported."""

    def nbest(self, texts: Sequence[str]) -> Sequence[Sequence[Any]]:
        """Return the best Outputs of each text, best first."""
        ...

    def score(self, texts: Sequence[str], targets: Sequence[str]) -> Sequence[tuple[float, int]]:
        """Return the log-probability and the number of tokens of each target."""
        ...


class ExportExplorer:
    """Answers what the page asks of an export; its methods may be called from several threads.

    Args:
      export: what answers.
      name: what the page calls it.
      options: the decoding options that the export records.
      is_parser: whether outputs are trees.
      references: the reference of each source text that has one.
    """

    def __init__(
        self,
        export: Export,
        *,
        name: str,
        options: Mapping[str, Any],
        is_parser: bool = False,
        references: Mapping[str, str] | None = None,
    ):
        self._export = export
        self._name = name
        self._options = dict(options)
        self._is_parser = is_parser
        self._references = dict(references or {})
        self._lock = threading.Lock()

    def warm_up(self) -> None:
        """Let TensorFlow prepare its functions."""
        self.translation("a")

    def about(self) -> dict[str, Any]:
        """See explorer.Explorer."""
        return {
            "name": self._name,
            "num_models": 1,
            "is_parser": self._is_parser,
            "has_search": False,
            "has_tokens": False,
            "missing": MISSING,
            "options": {name: self._options[name] for name in explorer.OPTIONS},
            "max_source_length": self._options["max_source_length"],
            "examples": explorer.examples(self._references),
        }

    def translation(self, text: str, target: str | None = None) -> dict[str, Any]:
        """See explorer.Explorer; tokens are missing. A given output has its score."""
        start = time.perf_counter()
        with self._lock:
            (outputs,) = self._export.nbest([text])
        seconds = time.perf_counter() - start
        if not outputs:
            raise errors.UserError(
                f"{self._name} gives no output of this text: its weights are too large, or no "
                "numbers; export another checkpoint"
            )
        is_blank = not text.strip()
        given = None if target is None or is_blank else self._given(text, target)
        output = given["text"] if given else outputs[0].text
        return {
            "text": text,
            "seconds": seconds,
            "is_blank": is_blank,
            "truncated": outputs[0].input_truncated,
            "hypotheses": [
                {
                    "text": output.text,
                    "score": output.score,
                    "finished": output.finished,
                    "repairs": 0,
                }
                for output in outputs
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
        if self._is_parser:
            raise errors.UserError("an export scores no tree: look at it with --output_dir")
        with self._lock:
            ((log_probability, length),) = self._export.score([text], [target])
        how = decode_options.DecodeOptions(
            alpha=self._options["alpha"],
            length_penalty=self._options["length_penalty"],
        )
        penalty = float(search_tree.length_penalty(length, how))
        return {
            "text": target,
            "score": log_probability / penalty,
            "finished": True,
            "repairs": 0,
        }


Answers = explorer.Explorer | ExportExplorer  # to the page's requests
