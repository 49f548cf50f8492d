"""Tokens as a reader sees them: pieces with their spaces, and names for what is no text.

A token's text is what the vocabulary spells, "▁the" or "<0xE2>"; names in angle brackets that are
no bytes stand for no text.
"""

from collections.abc import Iterable

from t2t_lite.text import any_vocabulary
from t2t_lite.text import vocabulary as vocabularies

START, EOS, PAD, UNK = "⟨start⟩", "⟨end⟩", "⟨padding⟩", "⟨unknown⟩"
_NAMES = {vocabularies.PAD_ID: PAD, vocabularies.EOS_ID: EOS, vocabularies.UNK_ID: UNK}

Vocabulary = any_vocabulary.AnyVocabulary


def of_ids(vocabulary: Vocabulary, ids: Iterable[int]) -> list[str]:
    """Return each token's piece.

    >>> of_ids(vocabulary, [265, 301, 1])
    ["▁a", "▁dog", "⟨end⟩"]
    """
    return [of_id(vocabulary, token) for token in ids]


def of_id(vocabulary: Vocabulary, token: int) -> str:
    """Return one token's piece; spare ids past the vocabulary are unknown."""
    if token in vocabulary.special_ids:
        return _NAMES[token]
    return vocabulary.piece(token) if token < vocabulary.size else UNK
