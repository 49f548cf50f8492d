"""The result of a search for one text: hypotheses with their scores.

This module imports no TensorFlow: the client of a server returns the same types as the decoder.
"""

import dataclasses


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

    @property
    def token_scores(self) -> tuple[float, ...] | None:
        """The log-probability of each of `ids`, where options ask for it."""
        return self.hypotheses[0].token_scores

    @property
    def alignment(self) -> tuple[int, ...] | None:
        """For each of `ids` its place in `source_ids`, where options ask for it."""
        return self.hypotheses[0].alignment


# The translation of a blank line.
BLANK = Translation(
    hypotheses=(Hypothesis(text="", score=0.0, finished=True, token_scores=(), alignment=()),)
)
