"""Labels of target languages, entries of a vocabulary in front of a source's pieces: ">>deu<<".

OPUS-MT's models of several target languages learn them. A text begins with its label:

    ">>deu<< A dog runs." --> [">>deu<<", "▁A", "▁dog", ...]
"""

import re
from collections.abc import Collection, Sequence

from t2t_lite import errors

PATTERN = r">>[^<> ]+<<"  # for Python and for RE2, in the graph
_LABEL = re.compile(PATTERN)


def among(pieces: Sequence[str]) -> dict[str, int]:
    """Return the pieces that are labels, with their ids."""
    return {piece: i for i, piece in enumerate(pieces) if _LABEL.fullmatch(piece)}


def begins(text: str) -> bool:
    """Return whether a text begins with a label."""
    return _LABEL.match(text) is not None


def split(text: str, known: Collection[str]) -> tuple[str, str]:
    """Return the label that a text begins with, "" if none, and the rest.

    Raises UserError for a label that is not known.
    """
    match = _LABEL.match(text)
    if match is None:
        return "", text
    _check(match[0], known)
    return match[0], text[match.end() :]


def of_language(language: str, known: Collection[str]) -> str:
    """Return the label of "deu" or ">>deu<<"; raise UserError where it is not known."""
    label = language if _LABEL.fullmatch(language) else f">>{language}<<"
    _check(label, known)
    return label


def _check(label: str, known: Collection[str]) -> None:
    if label not in known:
        raise errors.UserError(
            f"the model has no target language {label}, but {', '.join(sorted(known))}"
            if known
            else f"the model has no target languages to choose from: leave out {label}"
        )
