"""Vocabularies that other frameworks number by themselves: a list of pieces, and what cuts texts.

    SentencePiece    a model for each side, or one for both      "▁Zwei", "▁Hun", "de"
    subword-nmt      merges, of which the last word's end apart  "Zwei", "Hun@@", "de"
    white space      texts that are cut already                  the same

The file is JSON: {"source": {"pieces": ..., "model": ...}}, and "target" where that is different.
Pieces are in this package's order: PAD, EOS, UNK, then all others as the framework has them. A
piece that is not among them is UNK. Labels of target languages are cut from texts first.
"""

import base64
import functools
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from t2t_lite.text import labels, sentencepiece_vocabulary, subword_nmt, vocabulary

START = b'{"source": {"pieces"'  # of every file


class Side(NamedTuple):
    """How the texts of one side become ids.

    Attributes:
      pieces: the subwords by their id.
      model: the SentencePiece model that cuts texts, in base64.
      codes: subword-nmt's merges that cut texts; without these two they are cut at white space.
      code_pieces: the pieces that subword-nmt's filter allows; see subword_nmt.
      ascii_space: whether only ASCII's white space counts as such, except for SentencePiece.
    """

    pieces: Sequence[str]
    model: str | None = None
    codes: str | None = None
    code_pieces: Sequence[str] | None = None
    ascii_space: bool | None = None


def side(pieces: Sequence[str], *, model: bytes | None = None, **others: Any) -> Side:
    """Return a side; `model` is SentencePiece's file, `others` are further attributes."""
    encoded = None if model is None else base64.b64encode(model).decode()
    return Side(list(pieces), encoded, **others)


def joined(source: Side, target: Side) -> bytes:
    """Return the content of a vocabulary's file."""
    sides = {"source": source} | ({"target": target} if target != source else {})
    content = {
        name: {key: value for key, value in one._asdict().items() if value is not None}
        for name, one in sides.items()
    }
    return json.dumps(content, ensure_ascii=False).encode("utf-8")


class PieceVocabulary(vocabulary.Vocabulary):
    """Encodes and decodes as the framework does; unknown ids are dropped.

    It is the vocabulary of sources; `targets` is the same file's vocabulary of outputs.
    """

    def __init__(self, model_bytes: bytes, *, name: str = "source"):
        content = json.loads(model_bytes)
        own = Side(**content[name])
        if not all(isinstance(piece, str) for piece in own.pieces) or len(own.pieces) < 4:
            raise ValueError("its pieces are not texts")
        super().__init__(model_bytes, own.pieces)
        self._ids = {piece: i for i, piece in enumerate(own.pieces) if i}
        self.labels = labels.among(own.pieces)
        self._ascii_space = bool(own.ascii_space)
        self._codes = None
        if own.codes is not None:
            self._codes = subword_nmt.Codes(own.codes, own.code_pieces)
        if own.model is not None:
            self.sentencepiece_model = base64.b64decode(own.model)
            self._processor = sentencepiece_vocabulary.processor(self.sentencepiece_model)
        if name == "source" and "target" in content:
            self.targets = PieceVocabulary(model_bytes, name="target")

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without EOS; UserError for a label that it does not have."""
        clean = [vocabulary.without_surrogates(text) for text in texts]
        if not self.labels:
            return self._cut(clean)
        pairs = [labels.split(text, self.labels) for text in clean]
        rows = self._cut([rest for _, rest in pairs])
        return [
            [self.labels[label], *row] if label else row for (label, _), row in zip(pairs, rows)
        ]

    def _cut(self, texts: Sequence[str]) -> list[list[int]]:
        if self.sentencepiece_model:
            rows = sentencepiece_vocabulary.encode(self._processor, texts, str)
        else:
            cut = [self._codes.cut(text) for text in texts] if self._codes else texts
            rows = [vocabulary.words(text, ascii_space=self._ascii_space) for text in cut]
        return [[self._ids.get(piece, vocabulary.UNK_ID) for piece in row] for row in rows]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to EOS; PAD and unknown ids are dropped."""
        pieces = [self.pieces[i] for i in vocabulary.text_ids(ids) if 0 <= i < self.size]
        if self.sentencepiece_model:
            # Not by SentencePiece, which leaves its sign in pieces that only one side's model has.
            return "".join(pieces).replace(vocabulary.SPACE, " ").removeprefix(" ")
        return subword_nmt.joined(pieces) if self._codes else " ".join(pieces)

    def tokenizer(self) -> Any:
        """Return the same for a graph."""
        from t2t_lite.text import piece_tokenizer, subword_nmt_tokenizer

        form: dict[str, Any] = {}
        cut: Any = functools.partial(piece_tokenizer.words, ascii_space=self._ascii_space)
        if self.sentencepiece_model:
            cut = piece_tokenizer.SentencePieceCutter(self.sentencepiece_model)
            form = {"separator": "", "rewrites": [(vocabulary.SPACE, " "), ("^ ", "")]}
        elif self._codes:
            mark = subword_nmt.CONTINUED
            cut = subword_nmt_tokenizer.Cutter(self._codes, ascii_space=self._ascii_space)
            form = {"rewrites": [("^ ", ""), (f"{mark} |{mark}$", "")]}
        if self.labels:
            cut = piece_tokenizer.LabelCutter(cut)
        return piece_tokenizer.PieceTokenizer(self.pieces, self._ids, cut, **form)
