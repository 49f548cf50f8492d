"""Subwords: one SentencePiece BPE model, shared by both sides.

Encoding is lossless: text is not normalised, spaces and tabs survive, and a character that the
vocabulary lacks is spelt in bytes. `decode(encode(s)) == s` for every string s but two kinds:

* U+2581, SentencePiece's own sign for a space, comes back as a space;
* a lone surrogate, which is not text, comes back as U+FFFD.
"""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sentencepiece

from t2t_lite import errors
from t2t_lite.text import vocabulary

# Characters of a line to learn from; the rest of a longer line is left out.
_MAX_LINE = 10_000
_SETTINGS: dict[str, Any] = {
    "model_type": "bpe",
    "pad_id": vocabulary.PAD_ID,
    "eos_id": vocabulary.EOS_ID,
    "unk_id": vocabulary.UNK_ID,
    "bos_id": -1,
    "unk_surface": "\ufffd",
    # lossless
    "byte_fallback": True,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "add_dummy_prefix": False,
    # all lines are used, in their order: the caller has sampled
    "input_sentence_size": 0,
    "shuffle_input_sentence": False,
    "max_sentence_length": 4 * _MAX_LINE + 1,  # in bytes
    "num_threads": 1,
    "minloglevel": 2,
}


class SentencePieceVocabulary(vocabulary.Vocabulary):
    """A trained SentencePiece model; its bytes come after its symbols, an unknown id is U+FFFD.

    Raises RuntimeError where `model_bytes` are not a model, UserError where its ids that this
    package counts on mean something else.
    """

    def __init__(self, model_bytes: bytes):
        model = self._processor = processor(model_bytes)
        super().__init__(model_bytes, [model.IdToPiece(i) for i in range(model.GetPieceSize())])
        self.sentencepiece_model = model_bytes
        first = model.PieceToId("<0x00>")
        self.byte_ids = range(first, first + 256)
        self.symbol_ids = range(vocabulary.UNK_ID + 1, first)
        self.space_id = model.PieceToId(vocabulary.SPACE)  # UNK_ID where it has none
        reserved = model.pad_id(), model.eos_id(), model.unk_id()
        if reserved != self.special_ids:
            raise errors.UserError(f"expected PAD 0, EOS 1, UNK 2; got {reserved}")
        if self.pieces[first : first + 256] != [f"<0x{byte:02X}>" for byte in range(256)]:
            raise errors.UserError("expected the 256 bytes one after the other among its pieces")

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, without EOS."""
        try:
            return encode(self._processor, texts, int)
        except (
            TypeError,
            RuntimeError,
            UnicodeEncodeError,
        ):  # SentencePiece refuses lone surrogates
            clean = [vocabulary.without_surrogates(text) for text in texts]
            return encode(self._processor, clean, int)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to EOS; PAD is dropped, an unknown id reads U+FFFD."""
        tokens = vocabulary.text_ids(ids)
        return self._processor.Decode(
            [token if 0 <= token < self.size else vocabulary.UNK_ID for token in tokens]
        )

    def tokenizer(self) -> Any:
        """Return the same for a graph; its detokenize fails for an id >= size."""
        import tensorflow_text

        return tensorflow_text.SentencepieceTokenizer(model=self.model_bytes)


def processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """Return a SentencePiece model; raise RuntimeError where the bytes are not one."""
    loaded = sentencepiece.SentencePieceProcessor()
    loaded.LoadFromSerializedProto(model)
    return loaded


def encode(model: sentencepiece.SentencePieceProcessor, texts: Sequence[str], out_type: type):
    """Return the ids (int) or the pieces (str) of each text."""
    if len(texts) == 1:  # for a list SentencePiece starts a thread
        return [model.Encode(texts[0], out_type=out_type)]
    return model.Encode(list(texts), out_type=out_type, num_threads=1)


def train(
    sentences: Iterable[str],
    size: int,
    *,
    symbols: Sequence[str] = (),
    character_coverage: float = 0.99995,
    split_digits: bool = False,
) -> bytes:
    """Learn a model of `size` ids from sentences and return its bytes.

    `symbols` are strings that are always one id of their own, e.g. " (NP", the bracket of a parse
    with the space before it; where several fit, the longest is taken. Characters beyond
    `character_coverage`, by default rarer than one in 20,000, are spelt in bytes. A corpus with
    fewer different subwords gets the largest vocabulary that it supports (compare
    `SentencePieceVocabulary(model).size`). Raises UserError for an empty corpus or a size that its
    characters alone exceed.
    """
    lines = [line[:_MAX_LINE] for line in sentences if line.strip()]
    if not lines:
        raise errors.UserError("cannot learn a vocabulary: the training text is empty")
    smallest = 3 + len(symbols) + 256 + 1  # control symbols, the user's, bytes, one to learn
    if size < smallest:
        raise errors.UserError(f"a vocabulary has at least {smallest} entries, got {size}")
    settings = {
        "user_defined_symbols": [symbol.replace(" ", vocabulary.SPACE) for symbol in symbols],
        "character_coverage": character_coverage,
        # the model's bytes are other ones where the default is given
        **({"split_digits": True} if split_digits else {}),
        **_SETTINGS,
    }
    try:
        return _train(lines, size, settings)
    except RuntimeError as error:
        reason = str(error)
    too_high = re.search(r"value <= (\d+)", reason)
    if too_high:
        return _train(lines, int(too_high.group(1)), settings)
    too_low = re.search(r"(\d+) vs (\d+)", reason)
    if too_low:
        raise errors.UserError(
            f"a vocabulary of {size} cannot hold the characters of this corpus: "
            f"give at least {too_low.group(2)}, or a lower --character_coverage such as 0.9995"
        )
    raise errors.UserError(f"cannot learn a vocabulary of {size}: {reason}")


def _train(lines: Sequence[str], size: int, settings: Mapping[str, Any]) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        **settings,
    )
    return model.getvalue()
