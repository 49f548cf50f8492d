"""Vocabularies of pieces inside a graph; what piece_vocabulary does in Python.

Shapes: B texts, T ids.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_text

from t2t_lite.text import subword_nmt, subword_nmt_tokenizer, t2t_tokenizer, vocabulary


class PieceTokenizer(tf.Module):
    """PieceVocabulary for a graph.

    Args:
      pieces: by their id.
      cutter: maps texts [B] to pieces [B, ragged].
      separator: between two pieces of an output.
      rewrites: (pattern, replacement) in its text, one after the other.
    """

    def __init__(
        self,
        pieces: Sequence[str],
        cutter: Callable[[tf.Tensor], tf.RaggedTensor],
        *,
        separator: str,
        rewrites: Sequence[tuple[str, str]],
    ):
        super().__init__()
        self._pieces = list(pieces)
        self._cutter = cutter
        self._separator = separator
        self._rewrites = list(rewrites)
        ids = {piece: i for i, piece in enumerate(pieces) if i}
        entries = tf.lookup.KeyValueTensorInitializer(
            list(ids), list(ids.values()), tf.string, tf.int32
        )
        self._table = tf.lookup.StaticHashTable(entries, vocabulary.UNK_ID)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids, int32 [B, ragged], of UTF-8 texts [B], without EOS."""
        pieces = self._cutter(texts)
        return pieces.with_flat_values(self._table.lookup(pieces.flat_values))

    def detokenize(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the texts [B] of ids [B, T] up to EOS; PAD and unknown ids are dropped."""
        is_before_end = tf.cumsum(tf.cast(ids == vocabulary.EOS_ID, tf.int32), axis=1) == 0
        is_text = is_before_end & (ids > vocabulary.PAD_ID) & (ids < len(self._pieces))
        spelt = tf.constant([f"{self._separator}{piece}" for piece in self._pieces])
        found = tf.where(is_text, tf.gather(spelt, tf.where(is_text, ids, 0)), "")
        text = tf.strings.reduce_join(found, axis=1)
        for pattern, replacement in self._rewrites:
            text = tf.strings.regex_replace(text, pattern, replacement)
        return text


class _SentencePiece(tf.Module):
    def __init__(self, model: bytes):
        super().__init__()
        # In a SavedModel two tokenizers of one name would be one.
        name = f"sentencepiece_{hashlib.sha256(model).hexdigest()[:16]}"
        self._sentencepiece: Any = tensorflow_text.SentencepieceTokenizer(
            model, out_type=tf.string, name=name
        )

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._sentencepiece.tokenize(texts)


def of_sentencepiece(pieces: Sequence[str], model: bytes) -> PieceTokenizer:
    """Return the tokenizer of pieces that a SentencePiece model cuts."""
    rewrites = [(vocabulary.SPACE, " "), ("^ ", "")]
    return PieceTokenizer(pieces, _SentencePiece(model), separator="", rewrites=rewrites)


def of_words(pieces: Sequence[str], codes: subword_nmt.Codes | None) -> PieceTokenizer:
    """Return the tokenizer of words, or of their subwords."""
    rewrites = [("^ ", "")]
    if codes is None:
        cutter: Any = t2t_tokenizer.words
    else:
        cutter = subword_nmt_tokenizer.Cutter(codes)
        mark = subword_nmt.CONTINUED
        rewrites.append((f"{mark} |{mark}$", ""))
    return PieceTokenizer(pieces, cutter, separator=" ", rewrites=rewrites)
