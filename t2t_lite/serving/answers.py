"""The answers of an export's signatures as translations; imports no TensorFlow."""

from collections.abc import Mapping
from typing import Any

from t2t_lite import errors
from t2t_lite.decode.translation import Hypothesis, Translation

# The score in n-best places that no hypothesis fills: JSON has no infinity.
NO_SCORE = -1e9


def translations(tensors: Mapping[str, list]) -> list[Translation]:
    """Return the translations in an answer of serving_default [B] or nbest [B, N].

    Raises:
      UserError: where a text has no output.
      KeyError, TypeError, ValueError: for the answer of another signature.
    """
    names = ("outputs", "scores", "finished", "truncated")
    return [_translation(*row) for row in zip(*(tensors[name] for name in names), strict=True)]


def _translation(outputs: Any, scores: Any, finished: Any, truncated: Any) -> Translation:
    if not isinstance(outputs, list):
        outputs, scores, finished = [outputs], [scores], [finished]
    hypotheses = []
    for text, score, is_finished in zip(outputs, scores, finished, strict=True):
        if not isinstance(text, str) or not isinstance(score, int | float):
            raise TypeError(f"an output is text with a score, got {text!r} and {score!r}")
        if score > NO_SCORE:
            hypotheses.append(Hypothesis(text=text, score=score, finished=bool(is_finished)))
    if not hypotheses:
        raise errors.UserError(
            "the export gives no output: its weights are too large or not numbers; export another "
            "checkpoint"
        )
    if not any(hypothesis.text for hypothesis in hypotheses):
        del hypotheses[1:]  # a blank text has as many blank outputs as were asked for
    return Translation(hypotheses=tuple(hypotheses), truncated=bool(truncated))


def as_text(values: Any) -> Any:
    """Return the same values, lists or lists of lists, with bytes decoded."""
    if isinstance(values, list):
        return [as_text(value) for value in values]
    return values.decode("utf-8", "replace") if isinstance(values, bytes) else values
