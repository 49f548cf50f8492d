"""A task: what whoever decodes, evaluates or serves must know of a problem.

It turns text into ids and ids into text, twice: in Python for a translator, and in a graph for an
export (GraphText). It says what outputs must obey, how they are scored, and which decoding options
differ from the model's own. A problem names its task, and run.json records it (see catalog).

Shapes: B items of a batch, N hypotheses of each, S source length, T output length.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from t2t_lite.parsing import tree_grammar
from t2t_lite.text import t2t_vocabulary
from t2t_lite.text import vocabulary as vocabularies

# What Python's str.strip() removes.
_BLANK = (
    r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}"
    r"\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*"
)


class Encoded(NamedTuple):
    """A text's ids with EOS, and whether they are cut off."""

    ids: list[int]
    truncated: bool


class Output(NamedTuple):
    """An output's text, and how much of its ids had to be mended for it."""

    text: str
    repairs: int = 0


class Rows(NamedTuple):
    """Sentences as ids in a graph.

    `ids` [B, S] end in EOS and are padded with 0; `lengths` [B] count the EOS; `truncated` [B]:
    the end was cut off; `is_blank` [B]: there is nothing to translate.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    truncated: tf.Tensor
    is_blank: tf.Tensor


class Task:
    """Plain text on both sides; subclasses say where theirs differs.

    Args:
      vocabulary: of both sides.
    """

    # How problems and run.json call it.
    name: ClassVar[str]
    # What `score` measures, between 0 and 100.
    score_name: ClassVar[str]
    # Decoding options in which the task differs from the hyperparameters' own.
    decoding_defaults: ClassVar[Mapping[str, Any]] = {}
    # What outputs must obey; None: nothing.
    grammar: tree_grammar.TreeGrammar | None = None
    # In training: (inputs [B, S], targets [B, T]) -> float32 [B, T, S], where in the input each
    # target comes from; None where nobody knows.
    alignment: Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None = None
    # An id that does not stay at a cut: the space before a word that is cut off as a whole.
    space_id: int | None = None

    def __init__(self, vocabulary: vocabularies.Vocabulary | t2t_vocabulary.SubwordVocabulary):
        self.vocabulary = vocabulary

    def encode(self, texts: Sequence[str], max_length: int) -> list[Encoded]:
        """Return each input's ids, at most max_length, EOS included."""
        cut = [self.cut(text, max_length) for text in texts]
        rows = self.vocabulary.encode_batch([self.input_text(text) for text in cut])
        return [
            _end(ids, max_length, self.space_id, is_cut=len(short) < len(text))
            for ids, short, text in zip(rows, cut, texts)
        ]

    def encode_targets(self, texts: Sequence[str], max_length: int) -> list[Encoded]:
        """Return the ids of given outputs, at most max_length, EOS included.

        Raises UserError with an output's number where it is none.
        """
        targets = [self.target_text(text, number) for number, text in enumerate(texts, 1)]
        return [_end(ids, max_length) for ids in self.vocabulary.encode_batch(targets)]

    def cut(self, text: str, max_length: int) -> str:
        """Return as much of a text as max_length tokens can hold, and more: the rest is not read.

        A tokenizer takes time and memory for all that it is given.
        """
        limit = self.max_bytes(max_length)
        if 4 * len(text) <= limit:  # a character has four bytes at most
            return text
        data = text.encode("utf-8", errors="surrogatepass")
        return text if len(data) <= limit else data[:limit].decode("utf-8", errors="ignore")

    def max_bytes(self, max_length: int) -> int:
        """Return twice the bytes that max_length tokens can spell.

        Twice, so that how a word at the cut is divided cannot change the tokens that are kept.
        """
        return 2 * max_length * self._longest_piece

    @functools.cached_property
    def _longest_piece(self) -> int:
        pieces = map(self.vocabulary.piece, range(self.vocabulary.size))
        return max(len(piece.encode("utf-8", errors="surrogatepass")) for piece in pieces)

    def input_text(self, text: str) -> str:
        """Return an input as the vocabulary has learnt inputs."""
        return text

    def target_text(self, text: str, number: int) -> str:
        """Return output `number` as the vocabulary has learnt targets."""
        return text

    def decode(self, ids: Sequence[int], source: Encoded) -> Output:
        """Return the output that ids spell, given its input."""
        return Output(self.vocabulary.decode(ids))

    def score(self, outputs: Sequence[str], references: Sequence[str]) -> float:
        """Return the one figure by which checkpoints are compared."""
        raise NotImplementedError

    def scorer(self, target_language: str) -> Callable[[Sequence[str], Sequence[str]], str]:
        """Return a function (outputs, references) -> all figures, as text of several lines.

        Raises UserError at once where the language is no code such as "de"; "" is one that nobody
        knows.
        """
        raise NotImplementedError

    def graph_inputs(self, texts: tf.Tensor) -> tf.Tensor:
        """Return string [B] inputs as the vocabulary has learnt them: `input_text`."""
        return texts

    def graph_targets(self, texts: tf.Tensor) -> tf.Tensor:
        """Return string [B] outputs to score as the vocabulary has learnt them."""
        return texts

    def graph_outputs(self, texts: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
        """Return the outputs [B, N] that decoded ids spell, given the decoded inputs [B]."""
        return texts


class GraphText(tf.Module):
    """A task's text to ids and back inside a graph; holds the tokenizer that is saved with it.

    No item can fail: bytes that are not UTF-8 read as U+FFFD, and what is too long is cut.
    Raises UserError for a vocabulary that has no tokenizer for a graph.
    """

    def __init__(self, task: Task):
        super().__init__()
        self._task = task
        self._tokenizer = task.vocabulary.tokenizer()

    def encode(self, texts: tf.Tensor, max_length: int) -> Rows:
        """Return the ids of inputs, string [B], at most max_length each, EOS included."""
        texts, is_cut, is_blank = self._valid(texts, max_length)
        tokens = self._tokenizer.tokenize(self._task.graph_inputs(texts))
        return _end_rows(tokens, max_length, is_cut, is_blank, self._task.space_id)

    def encode_targets(self, texts: tf.Tensor, max_length: int) -> Rows:
        """Return the ids of outputs to score, string [B]."""
        texts, is_cut, is_blank = self._valid(texts, max_length)
        tokens = self._tokenizer.tokenize(self._task.graph_targets(texts))
        return _end_rows(tokens, max_length, is_cut, is_blank)

    def _valid(self, texts: tf.Tensor, max_length: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return bytes as valid UTF-8 (`Task.cut`), which of them were cut and which are blank."""
        max_bytes = self._task.max_bytes(max_length)
        is_cut = tf.strings.length(texts) > max_bytes
        texts = tf.strings.substr(texts, 0, max_bytes)
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        return texts, is_cut, tf.strings.regex_full_match(texts, _BLANK)

    def decode(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the texts, string [B, ...], of ids [B, ..., T] that are padded with 0."""
        shape, size = tf.shape(ids), self._task.vocabulary.size
        ids = tf.where(ids < size, ids, vocabularies.UNK_ID)
        texts = self._tokenizer.detokenize(tf.reshape(ids, [-1, shape[-1]]))
        return tf.reshape(texts, shape[:-1])

    def outputs(self, ids: tf.Tensor, source_ids: tf.Tensor) -> tf.Tensor:
        """Return the outputs, string [B, N], of ids [B, N, T] for inputs [B, S]."""
        return self._task.graph_outputs(self.decode(ids), self.decode(source_ids))


def rows_of_ids(ids: tf.Tensor, max_length: int, vocab_size: int) -> Rows:
    """Return a client's ids [B, S] as Rows.

    A row ends at its first EOS, whatever follows; without one it has no tokens and is truncated.
    Ids that there are not, and padding, are left out.
    """
    is_end = ids == vocabularies.EOS_ID
    has_end = tf.reduce_any(is_end, axis=1)
    before_end = (tf.cumsum(tf.cast(is_end, tf.int32), axis=1) == 0) & has_end[:, None]
    is_token = before_end & (ids > vocabularies.EOS_ID) & (ids < vocab_size)
    is_blank = ~tf.reduce_any(is_token, axis=1)
    return _end_rows(tf.ragged.boolean_mask(ids, is_token), max_length, ~has_end, is_blank)


def _end(
    ids: list[int], max_length: int, space_id: int | None = None, *, is_cut: bool = False
) -> Encoded:
    """Cut ids at max_length - 1 and end them with EOS; space_id does not stay at a cut.

    `is_cut` says that they are of a text that was cut already.
    """
    kept = ids[: max_length - 1]
    if len(kept) < len(ids) and kept and kept[-1] == space_id:
        kept = kept[:-1]
    return Encoded([*kept, vocabularies.EOS_ID], truncated=is_cut or len(kept) < len(ids))


def _end_rows(
    tokens: tf.RaggedTensor,
    max_length: int,
    is_cut: tf.Tensor,
    is_blank: tf.Tensor,
    space_id: int | None = None,
) -> Rows:
    """Do to rows in a graph what `_end` does to a list."""
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
