"""Texts to token ids and back, by SentencePiece."""

import pathlib
import re
from collections.abc import Iterable, Sequence

import sentencepiece

PAD_ID, EOS_ID, UNK_ID = 0, 1, 2
_SPACE = "\u2581"  # SentencePiece's sign for a space
_SURROGATES = re.compile("[\ud800-\udfff]")


class Vocabulary:
    """One side's vocabulary.

    Args:
      model: SentencePiece's file.
      pieces: the subwords by their id, where another framework has numbered them; None: the model's
        own numbers are the ids.
    """

    def __init__(self, model: pathlib.Path, pieces: Sequence[str] | None = None):
        self._processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        self._pieces = pieces
        self._ids = {piece: i for i, piece in enumerate(pieces or ()) if i}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without EOS."""
        # Lone surrogates are not text. One text at a time: of a list SentencePiece starts threads.
        if self._pieces is None:
            return self._processor.Encode(_SURROGATES.sub("\ufffd", text), out_type=int)
        pieces = self._processor.Encode(_SURROGATES.sub("?", text), out_type=str)
        return [self._ids.get(piece, UNK_ID) for piece in pieces]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids; PAD and EOS are dropped."""
        kept = [i for i in ids if i not in (PAD_ID, EOS_ID)]
        if self._pieces is None:
            return self._processor.Decode(kept)
        text = "".join(self._pieces[i] for i in kept)
        return text.replace(_SPACE, " ").removeprefix(" ")
