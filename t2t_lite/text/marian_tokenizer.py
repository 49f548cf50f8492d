"""Marian's vocabularies inside a graph; what marian_vocabulary does in Python.

Shapes: B texts, T ids.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tensorflow_text

from t2t_lite.text import special_ids

_SPACE = "\u2581"  # SentencePiece's sign for it within pieces


class MarianTokenizer(tf.Module):
    """MarianVocabulary for a graph.

    Args:
      pieces: by their id.
      model: the SentencePiece model that cuts texts.
    """

    def __init__(self, pieces: Sequence[str], *, model: bytes):
        super().__init__()
        self._pieces = list(pieces)
        # In a SavedModel two tokenizers of one name would be one.
        name = f"sentencepiece_{hashlib.sha256(model).hexdigest()[:16]}"
        self._sentencepiece: Any = tensorflow_text.SentencepieceTokenizer(
            model, out_type=tf.string, name=name
        )
        ids = {piece: i for i, piece in enumerate(pieces) if i}
        entries = tf.lookup.KeyValueTensorInitializer(
            list(ids), list(ids.values()), tf.string, tf.int32
        )
        self._table = tf.lookup.StaticHashTable(entries, special_ids.UNK_ID)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids, int32 [B, ragged], of UTF-8 texts [B], without EOS."""
        pieces = self._sentencepiece.tokenize(texts)
        return pieces.with_flat_values(self._table.lookup(pieces.flat_values))

    def detokenize(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the texts [B] of ids [B, T] up to EOS; PAD and unknown ids are dropped."""
        is_before_end = tf.cumsum(tf.cast(ids == special_ids.EOS_ID, tf.int32), axis=1) == 0
        is_text = is_before_end & (ids > special_ids.PAD_ID) & (ids < len(self._pieces))
        pieces = tf.gather(tf.constant(self._pieces), tf.where(is_text, ids, 0))
        text = tf.strings.reduce_join(tf.where(is_text, pieces, ""), axis=1)
        text = tf.strings.regex_replace(text, _SPACE, " ")
        return tf.strings.regex_replace(text, "^ ", "")
