"""Sentences and trees inside the graph: what `parsing.trees` does outside of it.

Shapes: R rows, T tokens of a linear form, W words, S steps of the repair.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite.parsing import trees

_SPACES = r"[ \t\n\v\f\r]+"  # ASCII white space
_NOTHING, _OPEN, _CLOSE, _WORD = range(4)  # what a step of the repair writes


class Parses(NamedTuple):
    """Trees on one line each, string [R], and what had to be repaired for them, int32 [R]."""

    text: tf.Tensor
    repairs: tf.Tensor


class _Tokens(NamedTuple):
    """Tokens of linear forms [R, T], padded with ""."""

    text: tf.Tensor
    labels: tf.Tensor  # without the bracket
    numbers: tf.Tensor  # equal where labels are
    is_open: tf.Tensor
    is_close: tf.Tensor
    is_word: tf.Tensor
    lengths: tf.Tensor  # [R]


class _State(NamedTuple):
    """How far the repair is. Of each open bracket the stack [R, T + 1] has the label's number, how
    many words came before it, and the step that wrote it."""

    position: tf.Tensor  # [R] the token that is read
    used: tf.Tensor  # [R] words so far
    repairs: tf.Tensor  # [R]
    num_phrases: tf.Tensor  # [R] phrases outside of all others so far
    num_bare: tf.Tensor  # [R] words outside of all phrases
    depth: tf.Tensor  # [R]
    stack_label: tf.Tensor
    stack_used: tf.Tensor
    stack_step: tf.Tensor


class _Step(NamedTuple):
    """What each step wrote [R, S], for which token, and which step's bracket it dropped or -1."""

    kind: tf.Tensor
    position: tf.Tensor
    dropped: tf.Tensor


def sentence(texts: tf.Tensor) -> tf.Tensor:
    """Return the parser's input of each text, string [R]: `trees.sentence`."""
    texts = _words_apart(texts)
    for character, escape in trees.SENTENCE_ESCAPES.items():
        texts = tf.strings.regex_replace(texts, rf"\x{{{character:x}}}", escape)
    return texts


def parses(linear: tf.Tensor, sentences: tf.Tensor) -> Parses:
    """Return the trees of linear forms [R] over sentences [R]: `repair`, then `delinearize`.

    A sentence is as `sentence` gives it, with one word at least.
    """
    tokens = _tokens(linear)
    ragged_words = tf.strings.split(sentences, " ")
    num_words = tf.cast(ragged_words.row_lengths(), tf.int32)
    words = ragged_words.to_tensor("")
    steps, end = _repair(tokens, num_words)
    missing = num_words - end.used
    # Brackets open at the end close over the missing words too; those over no word are dropped.
    is_open = tf.range(tf.shape(end.stack_used)[1]) < end.depth[:, None]
    is_empty = is_open & (end.stack_used == end.used[:, None]) & (missing == 0)[:, None]
    dropped = tf.concat([steps.dropped, tf.where(is_empty, end.stack_step, -1)], axis=1)
    body = _text(steps, dropped, tokens, words)
    places = tf.range(tf.shape(words)[1])
    is_missing = (places >= end.used[:, None]) & (places < num_words[:, None])
    rest = _joined(is_missing, _preterminals(tf.constant(trees.PRETERMINAL), words))
    closing = _joined(is_open & ~is_empty, tf.constant(")"))
    is_within = end.depth > 0
    body = tf.where(is_within, tf.strings.join([body, rest, closing]), body)
    rest = tf.where(is_within, "", rest)
    num_phrases = end.num_phrases + tf.cast(tf.strings.length(closing) > 0, tf.int32)
    is_phrase = (num_phrases == 1) & (end.num_bare == 0)
    inside_root = tf.strings.regex_replace(body, r"\)$", "")
    text = tf.where(
        is_phrase,
        tf.strings.join([inside_root, rest, ")"]),
        tf.strings.join([f" ({trees.TOP}", body, rest, ")"]),
    )
    repairs = end.repairs + missing + end.depth + tf.where(is_phrase, 0, 2)
    return Parses(tf.strings.strip(text), repairs)


def _words_apart(texts: tf.Tensor) -> tf.Tensor:
    """Return texts with one space between their words."""
    return tf.strings.strip(tf.strings.regex_replace(texts, _SPACES, " "))


def _tokens(linear: tf.Tensor) -> _Tokens:
    apart = _words_apart(tf.strings.regex_replace(linear, r"([()])", r" \1"))
    ragged = tf.strings.split(apart, " ")
    padded = ragged.to_tensor("")
    # One column more, so that there is a token to look at even where there is none to read.
    text = tf.concat([padded, tf.fill([ragged.nrows(), 1], "")], axis=1)
    bracket = tf.strings.substr(text, 0, 1)
    labels = tf.strings.regex_replace(text, r"^[()]", "")
    _, numbers = tf.unique(tf.reshape(labels, [-1]))
    return _Tokens(
        text=text,
        labels=labels,
        numbers=tf.reshape(numbers, tf.shape(labels)),
        is_open=(bracket == "(") & (labels != ""),
        is_close=bracket == ")",
        is_word=(bracket != "(") & (bracket != ")") & (text != ""),
        lengths=tf.math.count_nonzero(text != "", axis=1, dtype=tf.int32),
    )


def _repair(tokens: _Tokens, num_words: tf.Tensor) -> tuple[_Step, _State]:
    """Return what `trees.repair` writes up to the end of the tokens, step by step.

    A step reads a token, or closes one bracket more before the token that it stands at.
    """
    num_rows = tf.shape(tokens.text)[0]
    zeros = tf.zeros([num_rows], tf.int32)
    stack = tf.zeros([num_rows, tf.shape(tokens.text)[1] + 1], tf.int32)
    start = _State(zeros, zeros, zeros, zeros, zeros, zeros, stack, stack, stack)
    arrays = [tf.TensorArray(tf.int32, size=0, dynamic_size=True) for _ in _Step._fields]

    def one_more(step: tf.Tensor, state: _State, arrays: list) -> Any:
        written, state = _repair_step(step, state, tokens, num_words)
        return step + 1, state, [a.write(step, x) for a, x in zip(arrays, written)]

    _, end, arrays = tf.while_loop(
        # Once at least, so that the arrays have their shapes.
        lambda step, state, _: (step == 0) | tf.reduce_any(state.position < tokens.lengths),
        one_more,
        (tf.constant(0), start, arrays),
        parallel_iterations=1,
    )
    # [S, R], where S may be 0, --> [R, S]
    stacked = [tf.reshape(array.stack(), [-1, num_rows]) for array in arrays]
    return _Step(*map(tf.transpose, stacked)), end


def _repair_step(
    step: tf.Tensor, state: _State, tokens: _Tokens, num_words: tf.Tensor
) -> tuple[_Step, _State]:
    is_reading = state.position < tokens.lengths
    here = tf.minimum(state.position, tf.shape(tokens.text)[1] - 1)

    def of_token(values: tf.Tensor) -> tf.Tensor:
        return tf.gather(values, here, batch_dims=1)

    number = of_token(tokens.numbers)
    top = tf.maximum(state.depth - 1, 0)
    places = tf.range(tf.shape(state.stack_label)[1])
    is_open_somewhere = tf.reduce_any(
        (places < state.depth[:, None]) & (state.stack_label == number[:, None]), axis=1
    )
    opens = is_reading & of_token(tokens.is_open)
    closes = is_reading & of_token(tokens.is_close) & (state.depth > 0)
    writes_word = is_reading & of_token(tokens.is_word) & (state.used < num_words)
    is_other = is_reading & ~(opens | closes | writes_word)
    is_match = tf.gather(state.stack_label, top, batch_dims=1) == number
    is_before = closes & ~is_match & is_open_somewhere  # brackets inside X, when X is closed
    drops = closes & (tf.gather(state.stack_used, top, batch_dims=1) == state.used)
    counts = [
        tf.where(is_other | is_before, 1, 0),
        tf.where(closes & ~is_before & drops, 2, 0),
        tf.where(closes & ~is_before & ~drops & ~is_match, 1, 0),
    ]
    kind = tf.where(opens, _OPEN, tf.where(writes_word, _WORD, _NOTHING))
    kind = tf.where(closes & ~drops, _CLOSE, kind)
    is_place = opens[:, None] & (places == state.depth[:, None])
    depth = state.depth + tf.cast(opens, tf.int32) - tf.cast(closes, tf.int32)
    written = _Step(
        kind=kind,
        position=here,
        dropped=tf.where(drops, tf.gather(state.stack_step, top, batch_dims=1), -1),
    )
    return written, _State(
        position=state.position + tf.cast(is_reading & ~is_before, tf.int32),
        used=state.used + tf.cast(writes_word, tf.int32),
        repairs=state.repairs + tf.add_n(counts),
        num_phrases=state.num_phrases + tf.cast((kind == _CLOSE) & (depth == 0), tf.int32),
        num_bare=state.num_bare + tf.cast(writes_word & (depth == 0), tf.int32),
        depth=depth,
        stack_label=tf.where(is_place, number[:, None], state.stack_label),
        stack_used=tf.where(is_place, state.used[:, None], state.stack_used),
        stack_step=tf.where(is_place, step, state.stack_step),
    )


def _text(steps: _Step, dropped: tf.Tensor, tokens: _Tokens, words: tf.Tensor) -> tf.Tensor:
    """Return what the steps wrote, but the dropped brackets, as one string a row."""
    is_dropped = tf.reduce_any(
        dropped[:, :, None] == tf.range(tf.shape(steps.kind)[1])[None, None], axis=1
    )
    is_word = steps.kind == _WORD
    numbers = tf.maximum(tf.cumsum(tf.cast(is_word, tf.int32), axis=1) - 1, 0)
    symbols = tf.gather(tokens.text, steps.position, batch_dims=1)
    opening = tf.strings.join([" (", tf.gather(tokens.labels, steps.position, batch_dims=1)])
    text = tf.where(is_word, _preterminals(symbols, tf.gather(words, numbers, batch_dims=1)), ")")
    text = tf.where(steps.kind == _OPEN, opening, text)
    return _joined((steps.kind != _NOTHING) & ~is_dropped, text)


def _preterminals(symbols: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
    """Return " (tag word)" of each word; the tag is the symbol, or of XX what the word tells."""
    marks, tags = zip(*trees.TAGS.items())
    is_mark = words[..., None] == tf.constant(marks)
    kind = tf.where(tf.reduce_any(is_mark, axis=-1), tf.argmax(is_mark, axis=-1), len(tags))
    guess = tf.gather(tf.constant([*tags, trees.PRETERMINAL]), kind)
    tag = tf.where(symbols == trees.PRETERMINAL, guess, symbols)
    return tf.strings.join([" (", tag, " ", words, ")"])


def _joined(wanted: tf.Tensor, texts: tf.Tensor) -> tf.Tensor:
    """Return the wanted ones of texts [R, ...] as one string [R]."""
    return tf.strings.reduce_join(tf.where(wanted, texts, ""), axis=1)
