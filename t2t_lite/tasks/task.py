"""A task: what decoding, evaluation and serving must know of a problem.

It turns text into ids and ids into text, in Python for a translator; graph_text does the same in a
graph for an export. It says what outputs must obey, how they are scored, and which decoding options
have other defaults. A problem names its task, and run.json records it (see catalog).

Shapes: B items of a batch, N hypotheses of each, S source length, T target length.
"""

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import tensorflow as tf

from t2t_lite.parsing import tree_grammar
from t2t_lite.text import labels
from t2t_lite.text import vocabulary as vocabularies

Metric = Callable[[Sequence[str]], float]


class EncodedText(NamedTuple):
    """A text's ids with EOS, and whether its end was cut off."""

    ids: list[int]
    truncated: bool


class Output(NamedTuple):
    """An output's text, and how many of its tokens had to be repaired."""

    text: str
    repairs: int = 0


class Task:
    """Plain text on both sides; subclasses say where theirs differs.

    Args:
      vocabulary: that of inputs; `vocabulary.targets` is that of outputs, mostly the same.
    """

    # Its name in problems and in run.json.
    name: ClassVar[str]
    # The name of the score, between 0 and 100, that mostly compares checkpoints.
    score_name: ClassVar[str]
    # Decoding options whose defaults differ from those in the hyperparameters.
    decoding_defaults: ClassVar[Mapping[str, Any]] = {}
    # What outputs must obey; None: nothing.
    grammar: tree_grammar.TreeGrammar | None = None
    # An id that is dropped at a cut: the space before a word that is cut off as a whole.
    space_id: int | None = None

    # The label of the target language that inputs get which have none; "": as they are.
    label: str = ""

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        self.vocabulary = vocabulary

    def into(self, language: str) -> "Task":
        """Return the task with a default target language; UserError where there is no such one."""
        task = copy.copy(self)
        task.label = labels.of_language(language, self.vocabulary.labels)
        return task

    def encode(self, texts: Sequence[str], max_length: int) -> list[EncodedText]:
        """Return each input's ids, at most max_length, EOS included."""
        cut = [vocabularies.without_surrogates(self.cut(text, max_length)) for text in texts]
        rows = self.vocabulary.encode_batch([self.input_text(text) for text in cut])
        return [
            _end(ids, max_length, self.space_id, is_cut=len(short) < len(text))
            for ids, short, text in zip(rows, cut, texts)
        ]

    def encode_targets(self, texts: Sequence[str], max_length: int) -> list[EncodedText]:
        """Return the ids of given outputs, at most max_length, EOS included.

        Raises UserError with the beginning of a text that is not an output.
        """
        targets = [self.target_text(vocabularies.without_surrogates(text)) for text in texts]
        return [_end(ids, max_length) for ids in self.vocabulary.targets.encode_batch(targets)]

    def cut(self, text: str, max_length: int) -> str:
        """Return a beginning of a text that is longer than max_length tokens can spell.

        A tokenizer takes time and memory for the whole text that it gets.
        """
        limit = self.max_bytes(max_length)
        if 4 * len(text) <= limit:  # a character has four bytes at most
            return text
        data = text.encode("utf-8", errors="surrogatepass")
        return text if len(data) <= limit else data[:limit].decode("utf-8", errors="ignore")

    def max_bytes(self, max_length: int) -> int:
        """Return twice the bytes that max_length tokens can spell.

        Twice, so that the way a cut word is divided cannot change the tokens that are kept.
        """
        return 2 * max_length * self._longest_piece

    @functools.cached_property
    def _longest_piece(self) -> int:
        pieces = {*self.vocabulary.pieces, *self.vocabulary.targets.pieces}
        return max(len(piece.encode("utf-8", errors="surrogatepass")) for piece in pieces)

    def input_text(self, text: str) -> str:
        """Return an input in the form that the vocabulary was trained on."""
        return text if not self.label or labels.begins(text) else f"{self.label} {text}"

    def target_text(self, text: str) -> str:
        """Return an output in the form that the vocabulary was trained on."""
        return text

    def decode(self, ids: Sequence[int], source: EncodedText) -> Output:
        """Return the output that ids spell, given its input."""
        return Output(self.vocabulary.targets.decode(ids))

    def metrics(self, references: Sequence[str], target_language: str = "") -> dict[str, Metric]:
        """Return functions from outputs to the scores to show during training, by name.

        The first compares checkpoints, the next ones decide between equal scores.
        """
        raise NotImplementedError

    def scorer(self, target_language: str) -> Callable[[Sequence[str], Sequence[str]], str]:
        """Return a function (outputs, references) -> all scores, as text of several lines.

        Raises UserError at once where the language is not a code such as "de"; "" is unknown.
        """
        raise NotImplementedError

    def graph_inputs(self, texts: tf.Tensor) -> tf.Tensor:
        """Return `input_text` of string [B] inputs."""
        if not self.label:
            return texts
        is_complete = tf.strings.regex_full_match(texts, rf"(?s){labels.PATTERN}.*|\s*")
        return tf.where(is_complete, texts, tf.strings.join([self.label, " ", texts]))

    def graph_targets(self, texts: tf.Tensor) -> tf.Tensor:
        """Return `target_text` of string [B] outputs."""
        return texts

    def graph_outputs(self, texts: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
        """Return the outputs [B, N] that decoded ids spell, given the decoded inputs [B]."""
        return texts


def _end(
    ids: list[int], max_length: int, space_id: int | None = None, *, is_cut: bool = False
) -> EncodedText:
    """Cut ids at max_length - 1 and end them with EOS; space_id is dropped at a cut.

    `is_cut` says that their text was cut already.
    """
    kept = ids[: max_length - 1]
    if len(kept) < len(ids) and kept and kept[-1] == space_id:
        kept = kept[:-1]
    return EncodedText([*kept, vocabularies.EOS_ID], truncated=is_cut or len(kept) < len(ids))
