"""Vocabularies of Marian: a SentencePiece model for each side, and the ids of their pieces.

    source.spm, target.spm    cut the texts
    vocab.yml                 numbers the pieces of both: "▁the": 17

Here they are one file, JSON, in which pieces have this package's order: PAD, EOS ("</s>"), UNK
("<unk>"), then all others as Marian has them.
"""

import base64
import functools
import json
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sentencepiece

from t2t_lite import errors
from t2t_lite.text import special_ids

SUFFIX = ".marian"
EOS, UNK = "</s>", "<unk>"
SPACE = "\u2581"  # SentencePiece's sign for it within pieces
_KEYS = {"pieces", "source", "target"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_ESCAPES |= {"e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}


class MarianVocabulary:
    """Encodes and decodes as Marian does; the interface is that of Vocabulary.

    `encode` cuts a source. What encodes outputs is `targets`, the same vocabulary seen from the
    other side.
    """

    def __init__(self, model_bytes: bytes, *, side: str = "source"):
        self.model_bytes = model_bytes
        content = json.loads(model_bytes)
        if not isinstance(content, dict) or content.keys() != _KEYS:
            raise ValueError(f"it has not the entries {', '.join(sorted(_KEYS))}")
        self._pieces: list[str] = content["pieces"]
        if not all(isinstance(piece, str) for piece in self._pieces) or len(self._pieces) < 4:
            raise ValueError("its pieces are no texts")
        self._models = {name: base64.b64decode(content[name]) for name in ("source", "target")}
        self._processors = {name: processor(model) for name, model in self._models.items()}
        self._ids = {piece: i for i, piece in enumerate(self._pieces) if i}
        self._side = side

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "MarianVocabulary":
        """Read a file of this kind; raise UserError where it is none."""
        try:
            return cls(pathlib.Path(path).read_bytes())
        except FileNotFoundError as error:
            raise errors.UserError(f"there is no vocabulary file {path}") from error
        except (ValueError, TypeError, RuntimeError, RecursionError) as error:
            raise errors.UserError(f"{path} is not a vocabulary of Marian: {error}") from error

    @property
    def size(self) -> int:
        """The number of ids."""
        return len(self._pieces)

    @functools.cached_property
    def targets(self) -> "MarianVocabulary":
        """The vocabulary that encodes outputs."""
        return MarianVocabulary(self.model_bytes, side="target")

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without EOS."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of every text, without EOS."""
        clean = [text.encode("utf-8", "replace").decode() for text in texts]  # no lone surrogates
        rows = self._processors[self._side].Encode(clean, out_type=str, num_threads=1)
        return [[self._ids.get(piece, special_ids.UNK_ID) for piece in row] for row in rows]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to EOS; PAD and unknown ids are dropped."""
        known = [i for i in special_ids.text_ids(ids) if 0 <= i < self.size]
        # Not by SentencePiece, which leaves its sign in pieces that only the source's model has.
        text = "".join(self._pieces[i] for i in known).replace(SPACE, " ")
        return text.removeprefix(" ")

    def piece(self, token: int) -> str:
        """Return one id's piece, e.g. "▁the"."""
        return self._pieces[token]

    def tokenizer(self) -> Any:
        """Return the same for a graph."""
        from t2t_lite.text import marian_tokenizer

        return marian_tokenizer.MarianTokenizer(self._pieces, model=self._models[self._side])


def joined(pieces: Sequence[str], *, source: bytes, target: bytes) -> bytes:
    """Return the content of a file: pieces by their id here, and the two SentencePiece models."""
    models = {"source": source, "target": target}
    content = {name: base64.b64encode(model).decode() for name, model in models.items()}
    return json.dumps({"pieces": list(pieces), **content}, ensure_ascii=False).encode("utf-8")


def read_yaml(text: str) -> dict[str, int]:
    """Return {piece: id} of a vocab.yml.

    YAML's own readers take pieces such as yes, 1.5 or ~ for other things than texts, and refuse
    some characters.
    """
    found: dict[str, int] = {}
    key = None
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        if line.startswith("? "):  # a long key has a line of its own
            key = _unquoted(line[2:])
            continue
        before, colon, number = line.rpartition(":")
        if not colon or not number.strip().isdecimal() or (key is None) != bool(before.strip()):
            raise errors.UserError(f"a vocabulary's line is no 'piece: number': {line!r:.60}")
        found[_unquoted(before) if key is None else key] = int(number)
        key = None
    return found


def ordered(ids: Mapping[str, int]) -> list[str]:
    """Return pieces by Marian's numbers; UserError where these are not 0, 1, 2, ..."""
    pieces = [piece for piece, _ in sorted(ids.items(), key=lambda item: item[1])]
    if sorted(ids.values()) != list(range(len(ids))) or not {EOS, UNK} <= ids.keys():
        raise errors.UserError(
            f"a vocabulary numbers its pieces 0, 1, 2, ..., with {EOS} and {UNK}"
        )
    return pieces


def _unquoted(key: str) -> str:
    key = key.strip(" ")
    if len(key) > 1 and key[0] == key[-1] == "'":
        return key[1:-1].replace("''", "'")
    if len(key) > 1 and key[0] == key[-1] == '"':
        return _ESCAPE.sub(_unescaped, key[1:-1])
    return key


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _ESCAPES.get(code, code)
    return chr(min(int(code[1:], 16), 0x10FFFF))


def processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """Return a SentencePiece model; RuntimeError where it is none."""
    loaded = sentencepiece.SentencePieceProcessor()
    loaded.LoadFromSerializedProto(model)
    return loaded
