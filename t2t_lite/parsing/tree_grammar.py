"""The symbols that may follow in a linear tree, as a mask that a beam search applies in the graph.

"The output is subject to strong structural constraints" (Section 6.3). After any beginning exactly
these symbols may follow:

    (X   while words are left, brackets are not nested too deep, and every bracket and word can
         still be written before the length limit
    )X   where X is the innermost open bracket and not empty, and it is not the root or no word
         is left
    XX   in a bracket while words are left
    EOS  after the root is closed

So each hypothesis that ends is one well-formed tree over exactly the words of its input. Linear
forms and their vocabulary are those of `parsing.trees` and `text.vocabulary`.

Shapes: B sentences, N beams, S source length, G symbols of the grammar, L labels, D nesting.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.text import vocabulary as vocabularies

# The deepest bracket that is opened; treebanks stay below half of it.
MAX_DEPTH = 64


class State(NamedTuple):
    """The state of each hypothesis's tree."""

    stack: tf.Tensor  # [B, N, D] the labels of the open brackets, outermost first
    depth: tf.Tensor  # [B, N] how many are open
    words_left: tf.Tensor  # [B, N]
    is_empty: tf.Tensor  # [B, N] bool: the innermost bracket is empty


class TreeGrammar:
    """The grammar of linear trees in the ids of a vocabulary.

    `ids` are the symbols that may ever be emitted: brackets that open, those that close in the same
    order, the words' symbols and EOS. `space_id` is the space alone, which in a sentence comes only
    before a word that begins with a byte.
    """

    def __init__(self, vocabulary: vocabularies.Vocabulary):
        symbols = {vocabulary.pieces[token][1:]: token for token in vocabulary.symbol_ids}
        opening = {name[1:]: token for name, token in symbols.items() if name.startswith("(")}
        closing = {name[1:]: token for name, token in symbols.items() if name.startswith(")")}
        words = [token for name, token in symbols.items() if name[0] not in "()"]
        labels = sorted(opening.keys() & closing.keys())
        self.space_id = vocabulary.space_id
        self.num_labels, self.num_word_symbols = len(labels), len(words)
        self.ids = (
            *(opening[label] for label in labels),
            *(closing[label] for label in labels),
            *words,
            vocabularies.EOS_ID,
        )
        self._columns = np.full([vocabulary.size], len(self.ids) - 1, np.int32)
        self._columns[list(self.ids)] = np.arange(len(self.ids))
        # What moves on to the next word, and at last to the end of the sentence.
        self._passes_word = np.zeros([vocabulary.size], bool)
        self._passes_word[[*words, vocabularies.EOS_ID]] = True
        pieces = vocabulary.pieces
        self._begins_word = np.array([piece.startswith(vocabularies.SPACE) for piece in pieces])

    def count_words(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return how many words [B] the ids [B, S] of sentences spell."""
        return tf.math.count_nonzero(self._word_starts(inputs), axis=1, dtype=tf.int32)

    def numbers(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return int32 [B, S]: of which word each id is a part, from 0; EOS is one of its own."""
        is_place = self._word_starts(inputs) | (inputs == vocabularies.EOS_ID)
        return tf.cumsum(tf.cast(is_place, tf.int32), axis=1) - 1

    def passes(self, ids: tf.Tensor) -> tf.Tensor:
        """Return bool, of the shape of ids: which tokens are words' symbols, or EOS."""
        return tf.gather(tf.constant(self._passes_word), ids)

    def _word_starts(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return bool [B, S]: which ids begin a word."""
        before = tf.pad(inputs[:, :-1], [[0, 0], [1, 0]], constant_values=vocabularies.EOS_ID)
        begins = tf.gather(tf.constant(self._begins_word), inputs)
        begins |= before == vocabularies.EOS_ID
        return begins & (inputs > vocabularies.EOS_ID)

    def shortest_length(self, num_words: tf.Tensor) -> tf.Tensor:
        """Return the tokens [B] of the shortest tree: its words in one bracket, and EOS."""
        return num_words + 3

    def start(self, num_words: tf.Tensor) -> State:
        """Return the state of one empty hypothesis a sentence: num_words [B]."""
        shape = [tf.shape(num_words)[0], 1]
        return State(
            stack=tf.zeros([*shape, MAX_DEPTH], tf.int32),
            depth=tf.zeros(shape, tf.int32),
            words_left=num_words[:, None],
            is_empty=tf.zeros(shape, tf.bool),
        )

    def allowed(self, state: State, steps_left: tf.Tensor) -> tf.Tensor:
        """Return bool [B, N, G]: the symbols that may come next, with steps_left [B] after them."""
        depth, left = state.depth, state.words_left
        last_step = depth + 1 + left + 1 <= steps_left[:, None]
        may_open = (left > 0) & (depth < MAX_DEPTH) & last_step
        is_root_closing = (depth == 1) & (left > 0)
        may_close = (depth > 0) & ~state.is_empty & ~is_root_closing
        # Dead hypotheses are extended by any symbol, so that any depth may come.
        top = tf.clip_by_value(depth - 1, 0, MAX_DEPTH - 1)
        innermost = tf.gather(state.stack, top, batch_dims=2)
        is_innermost = tf.range(self.num_labels) == innermost[:, :, None]
        parts = [
            tf.repeat(may_open[:, :, None], self.num_labels, axis=2),
            may_close[:, :, None] & is_innermost,
            tf.repeat(((depth > 0) & (left > 0))[:, :, None], self.num_word_symbols, axis=2),
            ((depth == 0) & (left == 0))[:, :, None],
        ]
        return tf.concat(parts, axis=2)

    def advance(self, state: State, ids: tf.Tensor) -> State:
        """Return the state after each hypothesis was extended by ids [B, N]."""
        column = tf.gather(tf.constant(self._columns), ids)
        opens = column < self.num_labels
        closes = (column >= self.num_labels) & (column < 2 * self.num_labels)
        is_word = (column >= 2 * self.num_labels) & (column < len(self.ids) - 1)
        is_place = opens[:, :, None] & (tf.range(MAX_DEPTH) == state.depth[:, :, None])
        return State(
            stack=tf.where(is_place, column[:, :, None], state.stack),
            depth=state.depth + tf.cast(opens, tf.int32) - tf.cast(closes, tf.int32),
            words_left=state.words_left - tf.cast(is_word, tf.int32),
            is_empty=opens,
        )
