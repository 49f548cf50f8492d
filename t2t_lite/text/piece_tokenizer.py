"""Vocabularies of pieces inside a graph; what piece_vocabulary does in Python.

Shapes: B texts, T ids.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_text

from t2t_lite.text import labels, vocabulary

# What Python's str.split() splits at and str.strip() removes.
WHITE_SPACE = (
    r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}"
    r"\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
_ASCII_SPACE = r"[\t-\r ]"


def words(texts: tf.Tensor, *, ascii_space: bool = False) -> tf.RaggedTensor:
    """Return the words [B, ragged] of texts [B]; see vocabulary.words."""
    white_space = _ASCII_SPACE if ascii_space else WHITE_SPACE
    spaced = tf.strings.regex_replace(texts, f"{white_space}+", " ")
    split = tf.strings.split(tf.strings.strip(spaced), " ")
    return tf.ragged.boolean_mask(split, split != "")


def spell(ids: tf.Tensor, pieces: Sequence[str]) -> tf.Tensor:
    """Return the pieces of ids [B, T] up to EOS, joined [B]; PAD and unknown ids are dropped."""
    is_before_end = tf.cumsum(tf.cast(ids == vocabulary.EOS_ID, tf.int32), axis=1) == 0
    is_text = is_before_end & (ids > vocabulary.PAD_ID) & (ids < len(pieces))
    spelt = tf.gather(tf.constant(pieces), tf.where(is_text, ids, 0))
    return tf.strings.reduce_join(tf.where(is_text, spelt, ""), axis=1)


class PieceTokenizer(tf.Module):
    """A list of pieces for a graph.

    Args:
      pieces: by their id.
      ids: of the pieces that texts may have.
      cut: maps texts [B] to pieces [B, ragged].
      unknown: the id of any other piece; None: it is left out.
      separator: between two pieces of an output.
      rewrites: (pattern, replacement) in the text of an output, one after the other.
    """

    def __init__(
        self,
        pieces: Sequence[str],
        ids: Mapping[str, int],
        cut: Callable[[tf.Tensor], tf.RaggedTensor] = words,
        *,
        unknown: int | None = vocabulary.UNK_ID,
        separator: str = " ",
        rewrites: Sequence[tuple[str, str]] = (("^ ", ""),),
    ):
        super().__init__()
        self._spelt = [separator + piece for piece in pieces]
        self._cut = cut
        self._rewrites = rewrites
        entries = tf.lookup.KeyValueTensorInitializer(
            list(ids), list(ids.values()), tf.string, tf.int32
        )
        self._table = tf.lookup.StaticHashTable(entries, -1 if unknown is None else unknown)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids, int32 [B, ragged], of UTF-8 texts [B], without EOS."""
        pieces = self._cut(texts)
        ids = pieces.with_flat_values(self._table.lookup(pieces.flat_values))
        return tf.ragged.boolean_mask(ids, ids >= 0)

    def detokenize(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the texts [B] of ids [B, T] up to EOS; PAD and unknown ids are dropped."""
        text = spell(ids, self._spelt)
        for pattern, replacement in self._rewrites:
            text = tf.strings.regex_replace(text, pattern, replacement)
        return text


class SentencePieceCutter(tf.Module):
    """Cuts texts [B] into pieces [B, ragged] by a SentencePiece model."""

    def __init__(self, model: bytes):
        super().__init__()
        # In a SavedModel two tokenizers of one name would be one.
        name = f"sentencepiece_{hashlib.sha256(model).hexdigest()[:16]}"
        self._sentencepiece: Any = tensorflow_text.SentencepieceTokenizer(
            model, out_type=tf.string, name=name
        )

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._sentencepiece.tokenize(texts)


class LabelCutter(tf.Module):
    """Cuts texts [B] into pieces [B, ragged], a label at their start first; see labels.

    In a graph, a label that the vocabulary lacks becomes an unknown piece; it raises no error.
    """

    def __init__(self, cut: Callable[[tf.Tensor], tf.RaggedTensor]):
        super().__init__()
        self._cut = cut

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        has_label = tf.strings.regex_full_match(texts, f"(?s){labels.PATTERN}.*")
        label = tf.strings.regex_replace(texts, f"(?s)^({labels.PATTERN}).*$", r"\1")
        rest = tf.strings.regex_replace(texts, f"^{labels.PATTERN}", "")
        first = tf.ragged.boolean_mask(label[:, None], has_label[:, None])
        return tf.concat([first, self._cut(rest)], axis=1)
