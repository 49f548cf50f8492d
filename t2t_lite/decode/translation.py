"""The result of a search for one text, hypotheses with their scores, and how it is written.

text   Ein Hund rennt.                       see `line`
jsonl  {"text": "Ein Hund rennt.", "score": -0.61, "finished": true, ...}
moses  0 ||| Ein Hund rennt. ||| -0.61       see `moses`

This module imports no TensorFlow: the client of a server returns the same types as the decoder.
"""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from t2t_lite import errors
from t2t_lite.text import vocabulary as vocabularies

Form = Literal["text", "jsonl", "moses"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One output: its text, its length-normalised log-probability and its token ids.

    `finished` is False where it hit the length limit: the text is cut off. `repairs` counts the
    changes that made a tree of a parser's ids (see `trees.repair`). An export tells no ids.

    Where options ask for them: `token_scores`, the natural log-probability of each of the ids, and
    `alignment`, for each the place in the input's ids that cross attention looked at most.
    """

    text: str
    score: float
    finished: bool
    ids: tuple[int, ...] = ()
    repairs: int = 0
    token_scores: tuple[float, ...] | None = None
    alignment: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translation:
    """The hypotheses for one input, best first, and whether the input was cut.

    `source_ids` are the input's tokens, EOS included; a blank input has none.
    """

    hypotheses: tuple[Hypothesis, ...]
    truncated: bool = False
    source_ids: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The best hypothesis' text."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """The best hypothesis' length-normalised log-probability."""
        return self.hypotheses[0].score

    @property
    def ids(self) -> tuple[int, ...]:
        """The best hypothesis' token ids, EOS included where it is finished."""
        return self.hypotheses[0].ids

    @property
    def finished(self) -> bool:
        """Whether the best hypothesis is complete."""
        return self.hypotheses[0].finished

    @property
    def repairs(self) -> int:
        """The number of repairs in the best hypothesis."""
        return self.hypotheses[0].repairs


def require_texts(texts: Any, what: str = "texts", count: int | None = None) -> None:
    """Raise TypeError for one text, whose letters would be taken for texts, and UserError for
    another number of them than `count`."""
    if isinstance(texts, str):
        raise TypeError(f"expected a list of {what}, got one text")
    if count is not None and len(texts) != count:
        raise errors.UserError(f"expected {count} {what}, one for each text; got {len(texts)}")


# The translation of a blank line.
BLANK = Translation(
    hypotheses=(Hypothesis(text="", score=0.0, finished=True, token_scores=(), alignment=()),)
)


def line(translation: Translation, *, is_nbest: bool = False) -> str:
    """Return the output line: the text, or of n-best text and score by turns, tabs between.

    In n-best lines a tab of the text itself becomes a space. Line feeds become spaces always.
    """
    if not is_nbest:
        return translation.text.replace("\n", " ")
    fields = ((h.text.replace("\t", " "), f"{h.score:.6f}") for h in translation.hypotheses)
    return "\t".join(field for pair in fields for field in pair).replace("\n", " ")


def moses(
    translation: Translation,
    number: int,
    vocabulary: vocabularies.Vocabulary,
    *,
    token_scores: bool = False,
    alignments: bool = False,
) -> str:
    """Return a line "number ||| text ||| score" for each hypothesis, as Moses' tools read them.

    Their fields end at "|||", so that within a text it becomes "| | |". The details that are asked
    for are of words, which end at white space: a word has the sum of its tokens' scores, and the
    links of all of them, source-target from 0 as Pharaoh writes them. The end, and a label of the
    target language, are not words.

        0 ||| Ein Hund rennt. ||| WordScores= -0.01 -0.02 -0.2 ||| -0.18 ||| 0-0 1-1 2-2
    """
    sources = _word_places(translation.source_ids, vocabulary)

    def fields(hypothesis: Hypothesis) -> Iterator[str]:
        yield " ".join(_moses_words(hypothesis.text))
        places = _word_places(hypothesis.ids, vocabulary.targets)
        if token_scores:
            scores = [0.0] * len({*places.values()})
            for token, place in places.items():
                scores[place] += (hypothesis.token_scores or ())[token]
            yield " ".join(["WordScores=", *(f"{score:.6f}" for score in scores)])
        yield f"{hypothesis.score:.6f}"
        if alignments:
            positions = hypothesis.alignment or ()
            links = {
                (sources[positions[token]], place)
                for token, place in places.items()
                if positions[token] in sources
            }
            yield " ".join(f"{source}-{target}" for source, target in sorted(links))

    return "\n".join(
        " ||| ".join([str(number), *fields(hypothesis)]) for hypothesis in translation.hypotheses
    )


def _moses_words(text: str) -> list[str]:
    return text.replace("|||", "| | |").split()


def _word_places(ids: Sequence[int], vocabulary: vocabularies.Vocabulary) -> dict[int, int]:
    """Return the place of its word in the text for each token's place in ids.

    A space alone belongs to the word that it begins, as in "▁Hund".
    """
    start = 1 if ids and ids[0] in vocabulary.labels.values() else 0
    last = len(_moses_words(vocabulary.decode(ids[start:]))) - 1
    tokens = [i for i in range(start, len(ids)) if ids[i] != vocabularies.EOS_ID and last >= 0]
    texts = {i: vocabulary.decode(ids[start : i + 1]) for i in tokens}
    return {i: min(len(_moses_words(text + "x")) - 1, last) for i, text in texts.items()}


def json_line(translation: Translation, vocabulary: vocabularies.Vocabulary) -> str:
    """Return a JSON object without line feeds.

    It has "text", "score", "finished" (false: cut off at the length limit), "source_truncated" and
    "tokens"; with token_scores "token_scores", a natural log-probability each; with alignments
    "alignment", for each token a place in "source_tokens"; of several hypotheses all, in
    "hypotheses".
    """
    best, *others = (_hypothesis(each, vocabulary.targets) for each in translation.hypotheses)
    result = {**best, "source_truncated": translation.truncated}
    if translation.hypotheses[0].alignment is not None:
        result["source_tokens"] = [vocabulary.pieces[i] for i in translation.source_ids]
    if others:
        result["hypotheses"] = [best, *others]
    return json.dumps(result, ensure_ascii=False, allow_nan=False)


def _hypothesis(hypothesis: Hypothesis, targets: vocabularies.Vocabulary) -> dict[str, Any]:
    result = {
        # JSON cannot hold a lone surrogate.
        "text": hypothesis.text.encode("utf-8", errors="replace").decode("utf-8"),
        "score": round(hypothesis.score, 6),
        "finished": hypothesis.finished,
        "tokens": [targets.pieces[token] for token in hypothesis.ids],
    }
    if hypothesis.token_scores is not None:
        result["token_scores"] = [round(score, 6) for score in hypothesis.token_scores]
    if hypothesis.alignment is not None:
        result["alignment"] = list(hypothesis.alignment)
    return result
