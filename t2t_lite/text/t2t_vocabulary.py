"""Tensor2tensor's vocabularies, for data that t2t-datagen wrote.

    vocab.translate_ende_wmt32k.32768.subwords    subwords   (T2T before 1.9: vocab.ende.32768)
    vocab.translate_ende_wmt_bpe32k.tokens        tokens     (T2T before 1.9: vocab.bpe.32000)

Subwords: text is cut into runs of letters or digits and runs of anything else; a single space
between two runs of letters is left out. A run is escaped ("_" is \\\\u, "\\\\" is \\\\\\\\, a
character outside the alphabet its number), ended with "_", and cut into the longest known subtokens
from the left:

    "Hallo, Welt"  ->  ["Hallo", ", ", "Welt"]  ->  ["Hall", "o_", ", _", "Welt_"]

Tokens: they stand between white space, cut into subwords already ("Wel@@ t"); one that the
vocabulary lacks is UNK. Only ASCII's white space counts if a token has other white space within it,
as for T2T on Python 2.
"""

import functools
import itertools
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from t2t_lite import errors
from t2t_lite.text import vocabulary

_ESCAPED = re.compile(r"\\u|\\\\|\\([0-9]+);")
_UNKNOWN = "UNK"
_NO_CHARACTER = "\u3013"  # T2T's sign for an escaped number that is none (here for surrogates too)
_ESCAPE_CHARACTERS = frozenset("\\_u;0123456789")


class SubwordVocabulary(vocabulary.Vocabulary):
    """Encodes and decodes as T2T's SubwordTextEncoder; unknown ids are dropped."""

    special_ids = (vocabulary.PAD_ID, vocabulary.EOS_ID)  # no id is unknown

    def __init__(self, model_bytes: bytes):
        super().__init__(model_bytes, [_unquoted(line) for line in _lines(model_bytes) if line])
        if any("\0" in piece for piece in self.pieces):
            raise ValueError("it has a NUL")
        self._ids = {piece: i for i, piece in enumerate(self.pieces) if piece}
        self._longest = max(map(len, self.pieces))
        self._alphabet = _ESCAPE_CHARACTERS.union(*self.pieces)
        self._encode_run = functools.lru_cache(maxsize=100_000)(self._encode_run)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without EOS."""
        return [[token for run in _runs(text) for token in self._encode_run(run)] for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to EOS; PAD and unknown ids are dropped."""
        escaped = "".join(_known_pieces(self, ids)).split("_")
        runs = [run for run in map(_unescaped, escaped) if run]
        glued = [
            " " + run if _is_letter(before[0]) and _is_letter(run[0]) else run
            for before, run in itertools.pairwise(runs)
        ]
        return "".join(runs[:1] + glued)

    def tokenizer(self) -> Any:
        """Return the same for a graph."""
        from t2t_lite.text import t2t_tokenizer

        return t2t_tokenizer.SubwordTokenizer(
            self.pieces, alphabet=sorted(self._alphabet - {"\n"}), letter_bounds=_letter_bounds()
        )

    def _encode_run(self, run: str) -> tuple[int, ...]:
        escaped = run.replace("\\", "\\\\").replace("_", "\\u")
        escaped = "".join(
            c if c in self._alphabet and c != "\n" else f"\\{ord(c)};" for c in escaped
        )
        escaped += "_"
        ids, start = [], 0
        while start < len(escaped):
            for end in range(min(len(escaped), start + self._longest), start, -1):
                token = self._ids.get(escaped[start:end])
                if token is not None:
                    break
            else:
                raise errors.UserError(f"the vocabulary cannot spell {run!r}: it lacks a character")
            ids.append(token)
            start = end
        return tuple(ids)


class TokenVocabulary(vocabulary.Vocabulary):
    """Encodes and decodes as T2T's TokenTextEncoder; unknown ids are dropped."""

    special_ids = SubwordVocabulary.special_ids

    def __init__(self, model_bytes: bytes):
        tokens = [line.strip() for line in _lines(model_bytes)]
        super().__init__(model_bytes, tokens if tokens[-1] else tokens[:-1])
        self._ids = {token: i for i, token in enumerate(self.pieces) if token}
        self._unknown = self._ids.get(_UNKNOWN)
        self._ascii_space = any(len(token.split()) > 1 for token in self._ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text's tokens, without EOS."""
        rows = [vocabulary.words(text, ascii_space=self._ascii_space) for text in texts]
        return [[self._id(token) for token in row] for row in rows]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the tokens up to EOS with blanks between; unknown ids are dropped."""
        return " ".join(_known_pieces(self, ids))

    def tokenizer(self) -> Any:
        """Return the same for a graph; a token that has no id is left out."""
        from t2t_lite.text import piece_tokenizer

        cut = functools.partial(piece_tokenizer.words, ascii_space=self._ascii_space)
        return piece_tokenizer.PieceTokenizer(self.pieces, self._ids, cut, unknown=self._unknown)

    def _id(self, token: str) -> int:
        found = self._ids.get(token, self._unknown)
        if found is None:
            raise errors.UserError(f"the vocabulary has neither {token!r} nor {_UNKNOWN}")
        return found


def _lines(model_bytes: bytes) -> list[str]:
    return model_bytes.decode("utf-8").replace("\r\n", "\n").split("\n")


def _known_pieces(vocab: vocabulary.Vocabulary, ids: Iterable[int]) -> list[str]:
    """Return the pieces of ids up to EOS, without PAD and unknown ids."""
    return [vocab.pieces[token] for token in vocabulary.text_ids(ids) if 0 <= token < vocab.size]


def _unquoted(line: str) -> str:
    """Return the subtoken of a line of the file: 'the_' or "the_" -> the_."""
    quoted = len(line) > 1 and line[0] == line[-1] and line[0] in "'\""
    return line[1:-1] if quoted else line


@functools.cache
def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LN"


@functools.cache
def _letter_bounds() -> list[int]:
    """Return where letters or digits begin and end: 48, 58 (after "9"), 65, 91 (after "Z"), ..."""
    is_letter = [unicodedata.category(chr(i))[0] in "LN" for i in range(sys.maxunicode + 1)]
    changes = itertools.pairwise([False, *is_letter])
    return [i for i, (before, itself) in enumerate(changes) if before != itself]


def _runs(text: str) -> list[str]:
    """Cut a text where letters or digits begin or end; drop single spaces but the first run."""
    if not text:
        return []
    cuts = [i for i in range(1, len(text)) if _is_letter(text[i]) != _is_letter(text[i - 1])]
    runs = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)])]
    inner = [run for run in runs[1:-1] if run != " "]
    return [runs[0], *inner, *runs[1:][-1:]]


def _unescaped(run: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return "_" if match.group(0) == "\\u" else "\\"
        try:
            spelt = chr(int(match.group(1)))
        except (ValueError, OverflowError):
            return _NO_CHARACTER
        return _NO_CHARACTER if unicodedata.category(spelt) == "Cs" else spelt

    return _ESCAPED.sub(character, run)
