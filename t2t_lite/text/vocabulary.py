"""The interface of a vocabulary: text to ids and back, and the ids that all vocabularies share.

Each kind has a module without TensorFlow, and one beside it that does the same in a graph:

    SentencePiece, as t2t-lite trains it     sentencepiece_vocabulary   (tensorflow_text has it)
    tensor2tensor's subwords and tokens      t2t_vocabulary             t2t_tokenizer
    lists of pieces of other frameworks      piece_vocabulary           piece_tokenizer

`any_vocabulary` reads a file of any kind.
"""

import abc
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

# The ids that mean the same in every vocabulary; none stands for the beginning of a sequence.
PAD_ID = 0
EOS_ID = 1
UNK_ID = 2  # tensor2tensor's vocabularies have none
SPACE = "\u2581"  # SentencePiece's sign for it within pieces
_SURROGATES = re.compile("[\ud800-\udfff]")
_ASCII_WORD = re.compile(r"[^\t-\r ]+")


class Vocabulary(abc.ABC):
    """Text to ids and back. Lone surrogates, which are not text, come back as another character.

    >>> vocabulary.decode(vocabulary.encode("Zwei Hunde.")) == "Zwei Hunde."
    True

    Args:
      model_bytes: the content of its file; `any_vocabulary` makes the same vocabulary from it.
      pieces: the subword of every id, e.g. "▁the" or "<0xE2>".
    """

    special_ids: Sequence[int] = (PAD_ID, EOS_ID, UNK_ID)  # ids that stand for no text
    byte_ids = range(0)  # 256 ids that spell characters without a subword, a byte each
    symbol_ids = range(0)  # ids of the symbols that it was trained with
    space_id: int | None = None  # the id of a space alone
    sentencepiece_model: bytes | None = None  # the SentencePiece model that cuts its texts
    labels: Mapping[str, int] = {}  # ids of target languages that a text may begin with

    def __init__(self, model_bytes: bytes, pieces: Sequence[str]):
        self.model_bytes = model_bytes
        self.pieces = pieces
        # The vocabulary of outputs, where the two sides have different ones.
        self.targets: Vocabulary = self

    @property
    def size(self) -> int:
        """The number of ids."""
        return len(self.pieces)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of its file, in hexadecimal digits."""
        return hashlib.sha256(self.model_bytes).hexdigest()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without EOS."""
        return self.encode_batch([text])[0]

    def lacks_label(self, ids: Sequence[int]) -> bool:
        """Return whether an input's ids do not begin with a target language, as they should."""
        return bool(self.labels) and bool(ids) and ids[0] not in self.labels.values()

    @abc.abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without EOS."""

    @abc.abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to EOS; PAD is dropped."""

    @abc.abstractmethod
    def tokenizer(self) -> Any:
        """Return the same for a graph: a tf.Module with `tokenize` and `detokenize`.

        `tokenize` returns int32 [B, ragged] ids, without EOS, of UTF-8 texts [B]. `detokenize`
        returns the texts [B] of ids [B, T], each smaller than `size`, up to EOS; PAD is dropped.
        """


def without_surrogates(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, which UTF-8 cannot spell."""
    return _SURROGATES.sub("\ufffd", text)


def words(text: str, *, ascii_space: bool = False) -> list[str]:
    """Return the words between white space; `ascii_space`: only ASCII's counts.

    >>> words("5\u00a0km"), words("5\u00a0km", ascii_space=True)
    (['5', 'km'], ['5\xa0km'])
    """
    return _ASCII_WORD.findall(text) if ascii_space else text.split()


def text_ids(ids: Iterable[int]) -> Iterator[int]:
    """Yield the ids up to EOS as Python integers, without PAD.

    >>> list(text_ids([0, 5, 6, 0, 1, 7]))
    [5, 6]
    """
    for token in map(int, ids):
        if token == EOS_ID:
            return
        if token != PAD_ID:
            yield token
