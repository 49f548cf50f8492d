"""How translations are written: lines of text, JSON lines and Moses' n-best lists.

text   Ein Hund rennt.                       see `line`
jsonl  {"text": "Ein Hund rennt.", "score": -0.61, "finished": true, ...}
moses  0 ||| Ein Hund rennt. ||| -0.61       a line for each hypothesis, inputs count from 0
"""

import json
from typing import TYPE_CHECKING, Any, Literal

from t2t_lite.decode.translation import Hypothesis, Translation

if TYPE_CHECKING:
    from t2t_lite.decode import translator

Form = Literal["text", "jsonl", "moses"]


def line(translation: Translation, *, is_nbest: bool = False) -> str:
    """Return the output line: the text, or of n-best text and score by turns, tabs between.

    In n-best lines a tab of the text itself becomes a space. Line feeds become spaces always.
    """
    if not is_nbest:
        return translation.text.replace("\n", " ")
    fields = ((h.text.replace("\t", " "), f"{h.score:.6f}") for h in translation.hypotheses)
    return "\t".join(field for pair in fields for field in pair).replace("\n", " ")


def moses(translation: Translation, number: int) -> str:
    """Return a line "number ||| text ||| score" for each hypothesis, as Moses' tools read them.

    Their fields end at "|||", so that within a text it becomes "| | |".
    """
    return "\n".join(
        f"{number} ||| {' '.join(h.text.replace('|||', '| | |').split())} ||| {h.score:.6f}"
        for h in translation.hypotheses
    )


def json_line(model: "translator.Translator", translation: Translation) -> str:
    """Return one JSON object without line feeds: see `as_json`; n-best are in "hypotheses"."""
    return json.dumps(as_json(model, translation), ensure_ascii=False, allow_nan=False)


def as_json(model: "translator.Translator", translation: Translation) -> dict[str, Any]:
    """Return what is known of a translation, for json.

    "text", "score", "finished" (false: cut off at the length limit), "source_truncated", "tokens";
    with token_scores "token_scores", a natural log-probability each; with alignments "alignment",
    for each token a place in "source_tokens"; of several hypotheses all, in "hypotheses".
    """
    best, *others = (_hypothesis(model, each) for each in translation.hypotheses)
    result = {**best, "source_truncated": translation.truncated}
    if translation.hypotheses[0].alignment is not None:
        result["source_tokens"] = [model.vocabulary.piece(i) for i in translation.source_ids]
    if others:
        result["hypotheses"] = [best, *others]
    return result


def _hypothesis(model: "translator.Translator", hypothesis: Hypothesis) -> dict[str, Any]:
    result = {
        # A lone surrogate is no text, and no JSON either.
        "text": hypothesis.text.encode("utf-8", errors="replace").decode("utf-8"),
        "score": round(hypothesis.score, 6),
        "finished": hypothesis.finished,
        "tokens": [model.vocabulary.targets.piece(token) for token in hypothesis.ids],
    }
    if hypothesis.token_scores is not None:
        result["token_scores"] = [round(score, 6) for score in hypothesis.token_scores]
    if hypothesis.alignment is not None:
        result["alignment"] = list(hypothesis.alignment)
    return result
