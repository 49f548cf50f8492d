"""Tensor2tensor's vocabularies inside a graph; what t2t_vocabulary does in Python.

Characters are numbers here. What is a letter and what is in the alphabet is looked up in Python's
own tables, not in those of a regular expression, so that both sides cut a text alike whatever the
version of Unicode. The longest subtokens from the left are found by WordPiece's search, whose
pieces inside a word are marked by nothing.

Shapes: B texts, C characters of all texts, R runs of all texts, T ids.
"""

from collections.abc import Sequence

import tensorflow as tf
import tensorflow_text

from t2t_lite import errors
from t2t_lite.text import piece_tokenizer

_BACKSLASH, _UNDERSCORE, _SPACE = map(ord, "\\_ ")
_ESCAPED = r"\\u|\\\\|\\[0-9]+;"
_NO_CHARACTER = "\u3013"  # T2T's sign for an escaped number that is not a character
# The digits of the largest code point, 1,114,111.
_POWERS = [10**power for power in range(6, -1, -1)]
# In no piece and in no escaped run: both have it as \10;.
_NOWHERE = "\n"


class SubwordTokenizer(tf.Module):
    """SubwordVocabulary for a graph.

    Args:
      pieces: the subtokens by their id; "" is none.
      alphabet: the characters that are not escaped.
      letter_bounds: where letters or digits begin and end among code points: those from
        letter_bounds[0] on, no more from letter_bounds[1] on, and so forth.
    """

    def __init__(
        self, pieces: Sequence[str], *, alphabet: Sequence[str], letter_bounds: Sequence[int]
    ):
        super().__init__()
        self._pieces = list(pieces)
        self._alphabet = sorted(map(ord, alphabet))
        self._letter_bounds = list(letter_bounds)
        # Of several equal subtokens the last one counts.
        ids = {piece: i for i, piece in enumerate(pieces) if piece}
        words = [p if ids.get(p) == i else f"{_NOWHERE}{i}" for i, p in enumerate(pieces)]
        try:
            self._wordpiece = tensorflow_text.FastWordpieceTokenizer(
                vocab=[*words, _NOWHERE],
                suffix_indicator="",
                unknown_token=_NOWHERE,
                max_bytes_per_word=2**31 - 1,
                token_out_type=tf.int32,
                no_pretokenization=True,
            )
        except (RuntimeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise errors.UserError(f"the vocabulary has no form for a graph: {reason}") from error

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids, int32 [B, ragged], of UTF-8 texts [B], without EOS.

        A run with a character that the vocabulary cannot spell is left out.
        """
        characters = tf.strings.unicode_decode(texts, "UTF-8")
        codes_C, rows_C = characters.flat_values, characters.value_rowids()
        is_letter_C = self._is_letter(codes_C)
        begins_row_C = _differs_from_previous(rows_C)
        begins_C = begins_row_C | _differs_from_previous(is_letter_C)
        ends_C, ends_row_C = _shifted_left(begins_C), _shifted_left(begins_row_C)
        words_R = self._escaped_runs(codes_C, begins_C, ends_C)
        # A single space between two runs of letters is understood, but not at either end.
        is_single_space_C = begins_C & ends_C & (codes_C == _SPACE)
        is_kept_C = ~(is_single_space_C & ~begins_row_C & ~ends_row_C)
        is_kept_R = tf.boolean_mask(is_kept_C, begins_C)
        words = tf.RaggedTensor.from_value_rowids(
            tf.boolean_mask(words_R, is_kept_R),
            tf.boolean_mask(rows_C, begins_C & is_kept_C),
            nrows=characters.nrows(),
        )
        ids = self._wordpiece.tokenize(words).merge_dims(-2, -1)
        return tf.ragged.boolean_mask(ids, ids < len(self._pieces))

    def detokenize(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the texts [B] of ids [B, T] up to EOS; PAD and unknown ids are dropped."""
        escaped = piece_tokenizer.spell(ids, self._pieces)
        split = tf.strings.split(escaped, "_")
        runs, rows = self._unescaped(split.flat_values), split.value_rowids()
        is_some = runs != ""
        runs, rows = tf.boolean_mask(runs, is_some), tf.boolean_mask(rows, is_some)
        first = tf.strings.unicode_decode(tf.strings.substr(runs, 0, 1, "UTF8_CHAR"), "UTF-8")
        is_letter = self._is_letter(first.flat_values)
        both = is_letter & tf.concat([[False], is_letter[:-1]], 0)[: tf.size(runs)]
        is_glued = both & ~_differs_from_previous(rows)
        runs = tf.strings.join([tf.where(is_glued, " ", ""), runs])
        by_row = tf.RaggedTensor.from_value_rowids(runs, rows, nrows=split.nrows())
        return tf.strings.reduce_join(by_row.to_tensor(""), axis=1)

    def _is_letter(self, codes: tf.Tensor) -> tf.Tensor:
        bounds = tf.constant(self._letter_bounds, tf.int32)
        return tf.searchsorted(bounds, codes, side="right") % 2 == 1

    def _escaped_runs(
        self, codes_C: tf.Tensor, begins_C: tf.Tensor, ends_C: tf.Tensor
    ) -> tf.Tensor:
        """Return the runs, string [R], escaped and ended with "_"."""
        alphabet = tf.constant(self._alphabet, tf.int32)
        places_C = tf.searchsorted(alphabet, codes_C)
        places_C = tf.minimum(places_C, len(self._alphabet) - 1)
        is_number_C = tf.gather(alphabet, places_C) != codes_C
        is_underscore_C = codes_C == _UNDERSCORE
        is_doubled_C = is_underscore_C | (codes_C == _BACKSLASH)
        # Each character becomes twelve columns, of which few stay: "\", "u", then the character
        # itself; or "\", then its digits, then ";"; and "_" after the last one of a run.
        powers = tf.constant(_POWERS, tf.int32)
        digits = codes_C[:, None] // powers % 10
        is_digit = (codes_C[:, None] >= powers) | (powers == 1)
        columns = [
            (is_number_C | is_doubled_C, ord("\\")),
            (is_underscore_C, ord("u")),
            (~is_number_C & ~is_underscore_C, codes_C),
            *((is_number_C & is_digit[:, i], digits[:, i] + ord("0")) for i in range(len(_POWERS))),
            (is_number_C, ord(";")),
            (ends_C, _UNDERSCORE),
        ]
        stays = tf.stack([stay for stay, _ in columns], axis=1)
        codes = tf.stack([tf.broadcast_to(code, tf.shape(codes_C)) for _, code in columns], axis=1)
        run_C = tf.cumsum(tf.cast(begins_C, tf.int64)) - 1
        runs = tf.repeat(run_C[:, None], len(columns), axis=1)
        ragged = tf.RaggedTensor.from_value_rowids(
            tf.boolean_mask(codes, stays),
            tf.boolean_mask(runs, stays),
            nrows=tf.math.count_nonzero(begins_C),
        )
        return tf.strings.unicode_encode(ragged, "UTF-8")

    def _unescaped(self, runs: tf.Tensor) -> tf.Tensor:
        marked = tf.strings.regex_replace(runs, f"({_ESCAPED})", rf"{_NOWHERE}\1{_NOWHERE}")
        split = tf.strings.split(marked, _NOWHERE)
        parts = split.flat_values
        is_number = tf.strings.regex_full_match(parts, r"\\[0-9]+;")
        is_short = tf.strings.regex_full_match(parts, r"\\0*[0-9]{1,7};")
        digits = tf.where(is_short, tf.strings.regex_replace(parts, r"[\\;]", ""), "0")
        codes = tf.strings.to_number(digits, tf.int32)
        is_surrogate = (codes >= 0xD800) & (codes < 0xE000)
        is_character = is_short & (codes <= 0x10FFFF) & ~is_surrogate
        codes = tf.where(is_character, codes, ord(_NO_CHARACTER))
        parts = tf.where(is_number, tf.strings.unicode_encode(codes[:, None], "UTF-8"), parts)
        parts = tf.where(parts == r"\u", "_", tf.where(parts == r"\\", "\\", parts))
        return tf.strings.reduce_join(split.with_flat_values(parts).to_tensor(""), axis=1)


def _shifted_left(begins: tf.Tensor) -> tf.Tensor:
    """Return bool [n]: whether the next element begins something; there is none after the last."""
    return tf.concat([begins[1:], [True]], 0)[: tf.size(begins)]


def _differs_from_previous(values: tf.Tensor) -> tf.Tensor:
    """Return bool [n]: whether an element is not the one before; the first one is not."""
    return tf.concat([[True], values[1:] != values[:-1]], 0)[: tf.size(values)]
