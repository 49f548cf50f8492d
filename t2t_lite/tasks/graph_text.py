"""Text to ids and back inside a graph, with the tokenizer that an export carries.

What `Task.encode` and `Task.decode` do in Python, for tensors. Shapes: B items of a batch,
N hypotheses of each, S source length, T output length.
"""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.tasks import task as tasks
from t2t_lite.text import piece_tokenizer
from t2t_lite.text import vocabulary as vocabularies


class Rows(NamedTuple):
    """Sentences as ids in a graph.

    `ids` [B, S] end in EOS and are padded with 0; `lengths` [B] count the EOS; `truncated` [B]:
    the end was cut off; `is_blank` [B]: there is nothing to translate.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    truncated: tf.Tensor
    is_blank: tf.Tensor


class GraphText(tf.Module):
    """A task's text to ids and back inside a graph; the tokenizer is saved with it.

    No item can fail: bytes that are not UTF-8 read as U+FFFD, and a long text is cut. Raises
    UserError for a vocabulary that has no tokenizer for a graph.
    """

    def __init__(self, task: tasks.Task):
        super().__init__()
        self._task = task
        self._tokenizer = task.vocabulary.tokenizer()
        targets = task.vocabulary.targets
        self._target_tokenizer = (
            self._tokenizer if targets is task.vocabulary else targets.tokenizer()
        )

    def encode(self, texts: tf.Tensor, max_length: int) -> Rows:
        """Return the ids of inputs, string [B], at most max_length each, EOS included."""
        task = self._task
        return self._rows(self._tokenizer, task.graph_inputs, texts, max_length, task.space_id)

    def encode_targets(self, texts: tf.Tensor, max_length: int) -> Rows:
        """Return the ids of outputs to score, string [B]."""
        return self._rows(self._target_tokenizer, self._task.graph_targets, texts, max_length)

    def _rows(self, tokenizer, form, texts, max_length: int, space_id: int | None = None) -> Rows:
        """Return the ids of texts in their `form`; as by `Task.cut` the end is not tokenized."""
        max_bytes = self._task.max_bytes(max_length)
        is_cut = tf.strings.length(texts) > max_bytes
        texts = tf.strings.substr(texts, 0, max_bytes)
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        is_blank = tf.strings.regex_full_match(texts, f"{piece_tokenizer.WHITE_SPACE}*")
        return _end_rows(tokenizer.tokenize(form(texts)), max_length, is_cut, is_blank, space_id)

    def decode(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the inputs, string [B, ...], of ids [B, ..., S] that are padded with 0."""
        return _decode(ids, self._task.vocabulary.size, self._tokenizer)

    def outputs(self, ids: tf.Tensor, source_ids: tf.Tensor) -> tf.Tensor:
        """Return the outputs, string [B, N], of ids [B, N, T] for inputs [B, S]."""
        texts = _decode(ids, self._task.vocabulary.targets.size, self._target_tokenizer)
        return self._task.graph_outputs(texts, self.decode(source_ids))


def _decode(ids: tf.Tensor, size: int, tokenizer) -> tf.Tensor:
    shape = tf.shape(ids)
    ids = tf.where(ids < size, ids, vocabularies.UNK_ID)
    texts = tokenizer.detokenize(tf.reshape(ids, [-1, shape[-1]]))
    return tf.reshape(texts, shape[:-1])


def rows_of_ids(texts: tf.Tensor, max_length: int, vocab_size: int) -> Rows:
    """Return a client's ids, string [B], as Rows: "5 6 1" are the ids 5, 6 and EOS.

    A row ends at its first EOS or at its end. One that has anything else than ids of tokens before,
    with a space between, is blank and counts as truncated.
    """
    texts = tf.strings.substr(texts, 0, 10 * max_length)  # an id: at most 9 digits and a space
    is_read = tf.strings.regex_full_match(texts, "(?:[0-9]{1,9}(?: |$))*")
    numbers = tf.strings.split(tf.where(is_read, texts, ""))
    ids = tf.strings.to_number(numbers, tf.int32).to_tensor(vocabularies.EOS_ID)
    is_before_end = tf.cumsum(tf.cast(ids == vocabularies.EOS_ID, tf.int32), axis=1) == 0
    is_token = (ids > vocabularies.EOS_ID) & (ids < vocab_size)
    is_read &= tf.reduce_all(is_token | ~is_before_end, axis=1)
    is_token = is_before_end & is_read[:, None]
    is_blank = ~tf.reduce_any(is_token, axis=1)
    return _end_rows(tf.ragged.boolean_mask(ids, is_token), max_length, ~is_read, is_blank)


def texts_of_ids(ids: tf.Tensor) -> tf.Tensor:
    """Return ids [..., S] that are padded with 0 as string [...]: "5 6 1"."""
    words = tf.where(ids == vocabularies.PAD_ID, "", tf.strings.as_string(ids))
    return tf.strings.strip(tf.strings.reduce_join(words, axis=-1, separator=" "))


def _end_rows(
    tokens: tf.RaggedTensor,
    max_length: int,
    is_cut: tf.Tensor,
    is_blank: tf.Tensor,
    space_id: int | None = None,
) -> Rows:
    """Cut rows and end them with EOS, as `Task.encode` does with lists."""
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
        truncated=truncated | is_cut,
        is_blank=is_blank,
    )
