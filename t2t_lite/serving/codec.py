"""Text to ids and back inside the graph, for whatever bytes clients send.

Equal to what `text.vocabulary` and `decode.translator` do outside of it. No item can fail: bytes
that are not UTF-8 read as U+FFFD, and what is too long is cut.

Shapes: B items of a batch, S source length.
"""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.parsing import tree_grammar
from t2t_lite.serving import parses
from t2t_lite.text import t2t_vocabulary
from t2t_lite.text import vocabulary as vocabularies

# What Python's str.strip() removes.
_BLANK = (
    r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}"
    r"\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*"
)


class Rows(NamedTuple):
    """Sentences as ids.

    `ids` [B, S] end in EOS and are padded with 0; `lengths` [B] count the EOS; `truncated` [B]:
    the end was cut off; `is_blank` [B]: there is nothing to translate.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    truncated: tf.Tensor
    is_blank: tf.Tensor


class Codec(tf.Module):
    """Encodes and decodes; holds the tokenizer that is saved with the graph.

    A vocabulary of tensor2tensor has no tokenizer for a graph: `has_text` is False then, and only
    `from_ids` works.

    Args:
      vocabulary: of both sides.
      grammar: a parser's; inputs are words with spaces between, outputs are trees over them.
    """

    def __init__(
        self,
        vocabulary: vocabularies.Vocabulary | t2t_vocabulary.SubwordVocabulary,
        *,
        grammar: tree_grammar.TreeGrammar | None = None,
    ):
        super().__init__()
        self._is_parser = grammar is not None
        self._space_id = grammar.space_id if grammar else None
        self._size = vocabulary.size
        self.has_text = isinstance(vocabulary, vocabularies.Vocabulary)
        self._tokenizer = vocabulary.tokenizer() if self.has_text else None

    def encode(self, texts: tf.Tensor, max_length: int) -> Rows:
        """Return the ids of texts: string [B], at most max_length each, EOS included."""
        assert self._tokenizer is not None
        texts, is_blank = _read(texts)
        if self._is_parser:
            texts = parses.sentence(texts)
        return _end(self._tokenizer.tokenize(texts), max_length, is_blank, self._space_id)

    def encode_targets(self, texts: tf.Tensor, max_length: int) -> Rows:
        """Return the ids of outputs to score, a parser's in their linear form."""
        assert self._tokenizer is not None
        texts, is_blank = _read(texts)
        if self._is_parser:
            texts = tf.strings.join([" ", tf.strings.strip(texts)])
        return _end(self._tokenizer.tokenize(texts), max_length, is_blank)

    def from_ids(self, ids: tf.Tensor, max_length: int) -> Rows:
        """Return a client's ids [B, S], with or without EOS and padding, as Rows.

        Ids that there are not are left out.
        """
        is_token = (ids > vocabularies.EOS_ID) & (ids < self._size)
        is_blank = ~tf.reduce_any(is_token, axis=1)
        return _end(tf.ragged.boolean_mask(ids, is_token), max_length, is_blank)

    def decode(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the texts, string [B, ...], of ids [B, ..., T] that are padded with 0."""
        assert self._tokenizer is not None
        shape = tf.shape(ids)
        ids = tf.where(ids < self._size, ids, vocabularies.UNK_ID)
        texts = self._tokenizer.detokenize(tf.reshape(ids, [-1, shape[-1]]))
        return tf.reshape(texts, shape[:-1])

    def outputs(self, ids: tf.Tensor, sources: tf.Tensor) -> parses.Parses:
        """Return the outputs [B, N] of ids [B, N, T] for inputs [B, S], and the repairs in each."""
        texts = self.decode(ids)
        if not self._is_parser:
            return parses.Parses(texts, tf.zeros_like(texts, tf.int32))
        sentences = tf.repeat(self.decode(sources), tf.shape(texts)[1])
        found = parses.parses(tf.reshape(texts, [-1]), sentences)
        return parses.Parses(*(tf.reshape(tensor, tf.shape(texts)) for tensor in found))


def _read(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return bytes as valid UTF-8, and which are blank."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    return texts, tf.strings.regex_full_match(texts, _BLANK)


def _end(
    tokens: tf.RaggedTensor, max_length: int, is_blank: tf.Tensor, space_id: int | None = None
) -> Rows:
    """Cut rows at max_length - 1 tokens and end each with EOS; space_id does not stay at a cut."""
    truncated = tokens.row_lengths() >= max_length
    kept = tokens[:, : max_length - 1]
    num_kept = tf.cast(kept.row_lengths(), tf.int32)
    ids = tf.pad(kept.to_tensor(vocabularies.PAD_ID), [[0, 0], [0, 1]])
    if space_id is not None:
        last = tf.gather(ids, tf.maximum(num_kept - 1, 0), batch_dims=1)
        num_kept -= tf.cast(truncated & (last == space_id), tf.int32)
    is_end = tf.range(tf.shape(ids)[1]) == num_kept[:, None]
    return Rows(
        ids=tf.where(is_end, vocabularies.EOS_ID, ids),
        lengths=num_kept + 1,
        truncated=truncated,
        is_blank=is_blank,
    )
