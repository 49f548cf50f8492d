"""Subwords: one SentencePiece BPE model, shared by both sides.

Encoding is lossless: text is not normalised, spaces and tabs survive, and a character that the
vocabulary lacks is spelt in bytes. `decode(encode(s)) == s` for every string s but two kinds:

* U+2581, SentencePiece's own sign for a space, comes back as a space;
* a lone surrogate, which is not text, comes back as U+FFFD.
"""

import io
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sentencepiece

from t2t_lite import errors

# The ids that mean the same in every vocabulary; none stands for the beginning of a sequence.
PAD_ID = 0
EOS_ID = 1
UNK_ID = 2  # tensor2tensor's vocabularies have none
SPACE = "\u2581"  # SentencePiece's sign for it within pieces

_SURROGATES = re.compile("[\ud800-\udfff]")
# Of a longer line only this much is learnt from (characters).
_MAX_LINE = 10_000
_SETTINGS: dict[str, Any] = {
    "model_type": "bpe",
    "pad_id": PAD_ID,
    "eos_id": EOS_ID,
    "unk_id": UNK_ID,
    "bos_id": -1,
    "unk_surface": "\ufffd",
    # lossless
    "byte_fallback": True,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "add_dummy_prefix": False,
    # rarer characters than one in 20,000 are spelt in bytes
    "character_coverage": 0.99995,
    # every line that comes is used, in its order: whoever calls has sampled
    "input_sentence_size": 0,
    "shuffle_input_sentence": False,
    "max_sentence_length": 4 * _MAX_LINE + 1,  # in bytes
    "num_threads": 1,
    "minloglevel": 2,
}


class Vocabulary:
    """A trained subword model: text to ids and back.

    >>> vocabulary.decode(vocabulary.encode("Zwei  Hunde.\\t☃")) == "Zwei  Hunde.\\t☃"
    True
    """

    special_ids = (PAD_ID, EOS_ID, UNK_ID)  # no text

    def __init__(self, model_bytes: bytes):
        self.model_bytes = model_bytes
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model_bytes)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        """Read a `vocab.*.model` file; raise UserError where it is none."""
        try:
            vocabulary = cls(pathlib.Path(path).read_bytes())
            vocabulary._check()
            return vocabulary
        except FileNotFoundError as error:
            raise errors.UserError(f"there is no vocabulary file {path}") from error
        except (RuntimeError, UnicodeDecodeError) as error:
            raise errors.UserError(f"{path} is not a SentencePiece model") from error
        except errors.UserError as error:
            raise errors.UserError(f"{path} is no vocabulary of t2t-lite: {error}") from error

    def _check(self) -> None:
        """Raise UserError where the ids that this package counts on mean something else."""
        model = self._processor
        reserved = model.pad_id(), model.eos_id(), model.unk_id()
        if reserved != (PAD_ID, EOS_ID, UNK_ID):
            raise errors.UserError(
                f"expected PAD {PAD_ID}, EOS {EOS_ID}, UNK {UNK_ID}; got {reserved}"
            )
        pieces = [self.piece(token) for token in range(self.size)]  # each must be UTF-8
        first = self.byte_ids.start
        if pieces[first : first + 256] != [f"<0x{byte:02X}>" for byte in range(256)]:
            raise errors.UserError("expected the 256 bytes one after the other among its pieces")

    @property
    def size(self) -> int:
        """The number of ids, control symbols and bytes included."""
        return self._processor.GetPieceSize()

    @property
    def targets(self) -> "Vocabulary":
        """The vocabulary that encodes outputs: the same."""
        return self

    @property
    def symbol_ids(self) -> range:
        """The ids of the symbols that it was trained with: they come before the bytes."""
        return range(UNK_ID + 1, self.byte_ids.start)

    @property
    def space_id(self) -> int:
        """The id of a space alone; UNK_ID where the vocabulary has none."""
        return self._processor.PieceToId(SPACE)

    @property
    def byte_ids(self) -> range:
        """The 256 ids that spell a character that has no subword, a byte each."""
        first = self._processor.PieceToId("<0x00>")
        return range(first, first + 256)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without EOS."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of every text, without EOS."""
        try:
            return self._processor.Encode(list(texts), out_type=int, num_threads=1)
        except (TypeError, UnicodeEncodeError):  # SentencePiece refuses lone surrogates
            clean = [_SURROGATES.sub("\ufffd", text) for text in texts]
            return self._processor.Encode(clean, out_type=int, num_threads=1)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to EOS; PAD is dropped, an unknown id reads U+FFFD."""
        tokens = text_ids(ids)
        return self._processor.Decode([t if 0 <= t < self.size else UNK_ID for t in tokens])

    def piece(self, token: int) -> str:
        """Return one id's piece as SentencePiece writes it, e.g. "▁the" or "<0xE2>"."""
        return self._processor.IdToPiece(token)

    def tokenizer(self) -> Any:
        """Return the tensorflow_text.SentencepieceTokenizer of the same model (for a graph).

        It appends no EOS. Its detokenize drops PAD and EOS and fails for an id >= size.
        """
        import tensorflow_text

        return tensorflow_text.SentencepieceTokenizer(model=self.model_bytes)


def text_ids(ids: Iterable[int]) -> Iterator[int]:
    """Yield the ids up to EOS as Python's integers, without PAD.

    >>> list(text_ids([0, 5, 6, 0, 1, 7]))
    [5, 6]
    """
    for token in map(int, ids):
        if token == EOS_ID:
            return
        if token != PAD_ID:
            yield token


def train(sentences: Iterable[str], size: int, *, symbols: Sequence[str] = ()) -> bytes:
    """Learn a model of `size` ids from sentences and return its bytes.

    `symbols` are strings that are always one id of their own, e.g. " (NP", the bracket of a parse
    with the space before it; where several fit, the longest is taken. A corpus that holds fewer
    different subwords gets the largest vocabulary that it supports (compare
    `Vocabulary(model).size`). Raises UserError for an empty corpus or a size that its characters
    alone exceed.
    """
    lines = [line[:_MAX_LINE] for line in sentences if line.strip()]
    if not lines:
        raise errors.UserError("cannot learn a vocabulary: the training text is empty")
    smallest = 3 + len(symbols) + 256 + 1  # control symbols, the user's, bytes, one to learn
    if size < smallest:
        raise errors.UserError(f"a vocabulary has at least {smallest} entries, got {size}")
    try:
        return _train(lines, size, symbols)
    except RuntimeError as error:
        reason = str(error)
    too_high = re.search(r"value <= (\d+)", reason)
    if too_high:
        return _train(lines, int(too_high.group(1)), symbols)
    too_low = re.search(r"(\d+) vs (\d+)", reason)
    if too_low:
        raise errors.UserError(
            f"a vocabulary of {size} cannot hold the characters of this corpus: "
            f"give at least {too_low.group(2)}"
        )
    raise errors.UserError(f"cannot learn a vocabulary of {size}: {reason}")


def _train(lines: Sequence[str], size: int, symbols: Sequence[str]) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        user_defined_symbols=[symbol.replace(" ", SPACE) for symbol in symbols],
        **_SETTINGS,
    )
    return model.getvalue()
