"""Texts to token ids and back, by SentencePiece."""

import pathlib
import re
from collections.abc import Iterable, Sequence

import sentencepiece

from t2t_lite_runtime import errors

PAD_ID, EOS_ID, UNK_ID = 0, 1, 2
_SPACE = "\u2581"  # SentencePiece's sign for a space
_LABEL = re.compile(r">>[^<> ]+<<")  # of a target language
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
        self.labels = {piece: i for piece, i in self._ids.items() if _LABEL.fullmatch(piece)}

    def encode(self, text: str, label: str = "") -> list[int]:
        """Return the ids of a text, without EOS.

        A text may begin with the label of a target language, ">>deu<<", where the vocabulary has
        labels; one that has none gets `label`. Raises UserError for an unknown one.
        """
        if not self.labels:
            return self._cut(text)
        match = _LABEL.match(text)
        label = match[0] if match else label
        if label and label not in self.labels:
            known = ", ".join(sorted(self.labels))
            raise errors.UserError(f"the model has no target language {label}, but {known}")
        ids = self._cut(text[match.end() :] if match else text)
        return [self.labels[label], *ids] if label else ids

    def _cut(self, text: str) -> list[int]:
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
