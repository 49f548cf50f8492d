"""Subword-nmt's merges inside a graph; what subword_nmt does in Python.

All words of a batch are merged together: each turn joins the first-learnt pair of each word.

Shapes: B texts, W words, L symbols of the longest word.
"""

import tensorflow as tf

from t2t_lite.text import piece_tokenizer, subword_nmt

_NO_RANK = 2**31 - 1


class Cutter(tf.Module):
    """Cuts words as `Codes.cut` does, and splits the result at white space."""

    def __init__(self, codes: subword_nmt.Codes, *, ascii_space: bool):
        super().__init__()
        self._end_is_apart = codes.end_is_apart
        self._ascii_space = ascii_space
        pairs = [" ".join(pair) for pair in codes.ranks]
        entries = tf.lookup.KeyValueTensorInitializer(
            pairs, list(codes.ranks.values()), tf.string, tf.int32
        )
        self._ranks = tf.lookup.StaticHashTable(entries, _NO_RANK)
        self._splits = None
        if codes.splits:
            entries = tf.lookup.KeyValueTensorInitializer(
                list(codes.splits), list(codes.splits.values()), tf.string, tf.string
            )
            self._splits = tf.lookup.StaticHashTable(entries, "")

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the pieces [B, ragged] of texts [B]."""
        texts = tf.strings.regex_replace(texts, r"^[\r\n ]+|[\r\n ]+$", "")
        words = tf.strings.split(texts, " ")
        words = tf.ragged.boolean_mask(words, words != "")
        unique, places_W = tf.unique(words.flat_values)
        pieces = tf.gather(self._cut_words(unique), places_W)
        by_text = words.with_flat_values(pieces).merge_dims(1, 2)
        joined = tf.strings.reduce_join(by_text, axis=1, separator=" ")
        return piece_tokenizer.words(joined, ascii_space=self._ascii_space)

    def _cut_words(self, words_W: tf.Tensor) -> tf.RaggedTensor:
        """Return the pieces [W, ragged] of words."""
        characters = tf.strings.unicode_split(words_W, "UTF-8")
        if self._end_is_apart:
            ends = tf.fill([tf.size(words_W), 1], subword_nmt.END)
            characters = tf.concat([characters, tf.RaggedTensor.from_tensor(ends)], axis=1)
        else:
            marks = tf.where(_is_last(characters), subword_nmt.END, "")
            characters = characters.with_flat_values(
                tf.strings.join([characters.flat_values, marks])
            )
        (symbols_WL,) = tf.while_loop(
            lambda symbols_WL: tf.reduce_any(self._pair_ranks(symbols_WL) < _NO_RANK),
            lambda symbols_WL: (self._merged(symbols_WL),),
            [characters.to_tensor("")],
            shape_invariants=[tf.TensorShape([None, None])],
        )
        symbols = tf.ragged.boolean_mask(symbols_WL, symbols_WL != "")
        without_end = tf.strings.regex_replace(symbols.flat_values, f"{subword_nmt.END}$", "")
        pieces = symbols.with_flat_values(tf.where(_is_last(symbols), without_end, symbols.values))
        pieces = tf.ragged.boolean_mask(pieces, pieces != "")
        marks = tf.where(_is_last(pieces), "", subword_nmt.CONTINUED)
        marked = tf.strings.join([pieces.flat_values, marks])
        if self._splits:
            split = self._splits.lookup(marked)
            marked = tf.where(split == "", marked, split)
        return pieces.with_flat_values(marked)

    def _pair_ranks(self, symbols_WL: tf.Tensor) -> tf.Tensor:
        """Return [W, L]: the rank of each symbol and the next one."""
        following_WL = tf.pad(symbols_WL[:, 1:], [[0, 0], [0, 1]], constant_values="")
        return self._ranks.lookup(tf.strings.join([symbols_WL, following_WL], separator=" "))

    def _merged(self, symbols_WL: tf.Tensor) -> tf.Tensor:
        """Return the symbols with every word's best pair joined."""
        ranks_WL = self._pair_ranks(symbols_WL)
        best_W = tf.reduce_min(ranks_WL, axis=1, keepdims=True)
        is_best_WL = (ranks_WL == best_W) & (best_W < _NO_RANK)
        # In "x x x" of a pair "x x" only every other one is joined with the next.
        before_WL = tf.pad(is_best_WL[:, :-1], [[0, 0], [1, 0]])
        begins = tf.reshape(is_best_WL & ~before_WL, [-1])
        run = tf.maximum(tf.cumsum(tf.cast(begins, tf.int32)) - 1, 0)
        first = tf.gather(tf.concat([tf.where(begins)[:, 0], [0]], 0), run)
        is_even = (tf.range(tf.size(begins, tf.int64)) - first) % 2 == 0
        joins_WL = is_best_WL & tf.reshape(is_even, tf.shape(is_best_WL))
        following_WL = tf.pad(symbols_WL[:, 1:], [[0, 0], [0, 1]], constant_values="")
        joined_WL = tf.strings.join([symbols_WL, tf.where(joins_WL, following_WL, "")])
        is_left_WL = ~tf.pad(joins_WL[:, :-1], [[0, 0], [1, 0]])
        return tf.ragged.boolean_mask(joined_WL, is_left_WL).to_tensor("")


def _is_last(ragged: tf.RaggedTensor) -> tf.Tensor:
    """Return bool of the flat values: whether one is the last of its row."""
    rows = ragged.value_rowids()
    return tf.concat([rows[1:] != rows[:-1], [True]], 0)[: tf.size(rows)]
