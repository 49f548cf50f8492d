"""Tokens as the page shows them: subwords as in the vocabulary, "▁the" or "<0xE2>", and names such
as ⟨end⟩ for special tokens."""

from collections.abc import Iterable

from t2t_lite.text import vocabulary as vocabularies

START, EOS, PAD, UNK = "⟨start⟩", "⟨end⟩", "⟨padding⟩", "⟨unknown⟩"
_NAMES = {vocabularies.PAD_ID: PAD, vocabularies.EOS_ID: EOS, vocabularies.UNK_ID: UNK}


def of_ids(vocabulary: vocabularies.Vocabulary, ids: Iterable[int]) -> list[str]:
    """Return the subword of each token.

    >>> of_ids(vocabulary, [265, 301, 1])
    ["▁a", "▁dog", "⟨end⟩"]
    """
    return [of_id(vocabulary, token) for token in ids]


def of_id(vocabulary: vocabularies.Vocabulary, token: int) -> str:
    """Return one token's subword; ids past the end of the vocabulary are ⟨unknown⟩."""
    if token in vocabulary.special_ids:
        return _NAMES[token]
    return vocabulary.pieces[token] if token < vocabulary.size else UNK
