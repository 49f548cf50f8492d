"""Vocabularies that other frameworks number by themselves: a list of pieces, and what cuts texts.

    SentencePiece    a model for each side, or one for both      "▁Zwei", "▁Hun", "de"
    subword-nmt      merges, of which the last word's end apart  "Zwei", "Hun@@", "de"
    blanks           texts that are cut already                  the same

They are one file, JSON, in which pieces have this package's order: PAD, EOS, UNK, then all others
as the framework has them. A piece that is not among them is UNK. Where each side has pieces of its
own, both lists are in the file. piece_tokenizer has the same for a TensorFlow graph.
"""

import base64
import functools
import json
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sentencepiece

from t2t_lite import errors
from t2t_lite.text import subword_nmt, vocabulary

SUFFIXES = (".pieces", ".marian")
_SIDES = ("source", "target")
_PIECES, _CODES = "pieces", "codes"
# What only targets have.
_OF_TARGETS = {_PIECES: "target_pieces", _CODES: "target_codes"}


class PieceVocabulary:
    """Encodes and decodes as the framework does; the interface is that of Vocabulary.

    It is that of sources. What encodes and decodes outputs is `targets`, the same vocabulary seen
    from the other side.
    """

    special_ids = vocabulary.Vocabulary.special_ids

    def __init__(self, model_bytes: bytes, *, side: str = "source"):
        self.model_bytes = model_bytes
        content = json.loads(model_bytes)
        if not isinstance(content, dict) or content.keys() - _OF_TARGETS.values() not in (
            {_PIECES, *_SIDES},
            {_PIECES, _CODES},
            {_PIECES},
        ):
            raise ValueError("it has not the entries pieces, source and target, or pieces, codes")
        own = {name: _OF_TARGETS[name] if side == "target" else name for name in _OF_TARGETS}
        self._pieces: list[str] = content.get(own[_PIECES], content[_PIECES])
        if not all(isinstance(piece, str) for piece in self._pieces) or len(self._pieces) < 4:
            raise ValueError("its pieces are no texts")
        self._models = {name: base64.b64decode(content[name]) for name in _SIDES if name in content}
        self._processor = processor(self._models[side]) if self._models else None
        codes = content.get(own[_CODES], content.get(_CODES))
        self._codes = None if codes is None else subword_nmt.Codes(codes)
        self._ids = {piece: i for i, piece in enumerate(self._pieces) if i}
        self._side = side
        self._is_of_both_sides = self._models.get("source") == self._models.get("target") and not (
            content.keys() & _OF_TARGETS.values()
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "PieceVocabulary":
        """Read a file of this kind; raise UserError where it is none."""
        try:
            vocabulary = cls(pathlib.Path(path).read_bytes())
            vocabulary.targets  # noqa: B018 (reads what is of targets alone)
            return vocabulary
        except FileNotFoundError as error:
            raise errors.UserError(f"there is no vocabulary file {path}") from error
        except (AttributeError, ValueError, TypeError, RuntimeError, RecursionError) as error:
            raise errors.UserError(f"{path} is not a vocabulary of pieces: {error}") from error

    @property
    def size(self) -> int:
        """The number of ids."""
        return len(self._pieces)

    @functools.cached_property
    def targets(self) -> "PieceVocabulary":
        """The vocabulary of outputs; the same where both sides have the same pieces, cut alike."""
        if self._is_of_both_sides or self._side == "target":
            return self
        return PieceVocabulary(self.model_bytes, side="target")

    @property
    def sentencepiece_model(self) -> bytes | None:
        """The SentencePiece model that cuts this side's texts, None where there is none."""
        return self._models.get(self._side)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without EOS."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of every text, without EOS."""
        clean = [text.encode("utf-8", "replace").decode() for text in texts]  # no lone surrogates
        if self._processor:
            rows = self._processor.Encode(clean, out_type=str, num_threads=1)
        elif self._codes:
            rows = map(self._codes.cut, clean)
        else:
            rows = map(str.split, clean)
        return [[self._ids.get(piece, vocabulary.UNK_ID) for piece in row] for row in rows]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to EOS; PAD and unknown ids are dropped."""
        pieces = [self._pieces[i] for i in vocabulary.text_ids(ids) if 0 <= i < self.size]
        if self._models:
            # Not by SentencePiece, which leaves its sign in pieces that only one side's model has.
            return "".join(pieces).replace(vocabulary.SPACE, " ").removeprefix(" ")
        return subword_nmt.joined(pieces) if self._codes else " ".join(pieces)

    def piece(self, token: int) -> str:
        """Return one id's piece, e.g. "▁the"."""
        return self._pieces[token]

    def tokenizer(self) -> Any:
        """Return the same for a graph."""
        from t2t_lite.text import piece_tokenizer

        if self._models:
            return piece_tokenizer.of_sentencepiece(self._pieces, self._models[self._side])
        return piece_tokenizer.of_words(self._pieces, self._codes)


def joined(
    pieces: Sequence[str], target_pieces: Sequence[str] | None = None, **how: bytes | str
) -> bytes:
    """Return the content of a file: pieces by their id here, and what cuts texts.

    Args:
      pieces: by their id.
      target_pieces: those of targets, where they are others.
      how: the two SentencePiece models, `source` and `target`; or subword-nmt's `codes` and, where
        those of targets are others, `target_codes`; or nothing where texts are cut already.
    """
    texts: Mapping[str, str] = {
        name: value if isinstance(value, str) else base64.b64encode(value).decode()
        for name, value in how.items()
    }
    content: dict[str, Any] = {_PIECES: list(pieces), **texts}
    if target_pieces is not None and list(target_pieces) != content[_PIECES]:
        content[_OF_TARGETS[_PIECES]] = list(target_pieces)
    return json.dumps(content, ensure_ascii=False).encode("utf-8")


def processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """Return a SentencePiece model; RuntimeError where it is none."""
    loaded = sentencepiece.SentencePieceProcessor()
    loaded.LoadFromSerializedProto(model)
    return loaded
