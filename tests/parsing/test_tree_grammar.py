"""Outputs that are always trees: the grammar's mask against plain Python, and in a search."""

import random

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.decode import beam_search, candidates, options
from t2t_lite.parsing import tree_grammar, trees
from t2t_lite.text import vocabulary


@pytest.fixture(scope="module")
def grammar():
    return tree_grammar.TreeGrammar(tiny_run.tree_subwords())


def _allowed(grammar, state, steps_left):
    """Return the ids that may follow in the one hypothesis of one sentence."""
    mask = grammar.allowed(state, tf.constant([steps_left])).numpy()[0, 0]
    return {token for token, allowed in zip(grammar.ids, mask) if allowed}


def _can_follow(linear, num_words, label, budget):
    """Return whether a beginning of a linear form may go on with a symbol, by its definition."""
    tokens = linear.split()
    opened = []
    for token in tokens:
        opened.append(token[1:]) if token[0] == "(" else token[0] == ")" and opened.pop()
    left = num_words - tokens.count("XX")
    is_over = bool(tokens) and not opened
    if label == "EOS":
        return is_over
    if label[0] == "(":
        return not is_over and left > 0 and len(opened) + 1 + left + 1 <= budget
    if label[0] == ")":
        is_last = len(opened) == 1 and left > 0
        return bool(opened) and opened[-1] == label[1:] and tokens[-1][0] != "(" and not is_last
    return bool(opened) and left > 0


def test_mask_is_the_definition_at_every_step_of_random_walks(grammar):
    vocab = tiny_run.tree_subwords()
    names = {token: vocab.pieces[token][1:] for token in vocab.symbol_ids}
    names[vocabulary.EOS_ID] = "EOS"
    rng = random.Random(1)
    for _ in range(60):
        num_words = rng.randint(1, 5)
        limit = num_words + rng.randint(3, 12)
        state = grammar.start(tf.constant([num_words]))
        linear = ""
        for position in range(limit):
            budget = limit - position - 1
            found = _allowed(grammar, state, budget)
            expected = {i for i, n in names.items() if _can_follow(linear, num_words, n, budget)}
            assert found == expected, linear
            token = rng.choice(sorted(found))
            if token == vocabulary.EOS_ID:
                break
            linear += " " + names[token]
            state = grammar.advance(state, tf.constant([[token]]))
        else:
            pytest.fail(f"no end within {limit} tokens: {linear}")
        trees.delinearize(linear, ["w"] * num_words)  # raises where it is no tree


def test_words_are_counted_in_subwords(grammar):
    for text in ("a dog runs", "x", "♥ ☃☃ -LRB- ,", "a" * 40 + " b", "zwei  Hunde\t\n(laufen)  "):
        ids = tiny_run.tree_subwords().encode(trees.sentence(text))
        found = grammar.count_words(tf.constant([[*ids, vocabulary.EOS_ID, 0, 0]]))
        assert found.numpy().tolist() == [len(text.split())]


def test_the_next_word_is_the_one_whose_number_is_that_of_the_words_passed(grammar):
    vocab = tiny_run.tree_subwords()
    for text, linear in (
        ("a dog runs", "(S (NP XX XX )NP (VP XX )VP )S"),
        ("☃☃ barks", "(S XX XX )S"),
    ):
        words = text.split()
        starts = [len(vocab.encode(" ".join(words[:n]))) for n in range(len(words) + 1)]
        tokens = [*linear.split(), "EOS"]
        expected = [starts[tokens[:n].count("XX")] for n in range(len(tokens))]
        inputs = tf.constant([[*vocab.encode(text), vocabulary.EOS_ID, 0, 0]])
        targets = tf.constant([[*vocab.encode(f" {linear}"), vocabulary.EOS_ID]])
        passed = tf.cumsum(tf.cast(grammar.passes(targets), tf.int32), axis=1, exclusive=True)
        is_next = grammar.numbers(inputs)[:, None] == passed[:, :, None]
        # The first subword of the word, and after the last word EOS.
        assert tf.argmax(is_next[0], axis=1).numpy().tolist() == expected
        # The grammar allows the given tree token by token, though there is no step to spare.
        state = grammar.start(grammar.count_words(inputs))
        ids = targets[0].numpy().tolist()
        for position, token in enumerate(ids):
            assert token in _allowed(grammar, state, len(ids) - position - 1)
            state = grammar.advance(state, tf.constant([[token]]))


def test_search_finds_the_best_of_all_trees(grammar):
    """With a beam as wide as there are trees."""
    vocab = tiny_run.tree_subwords()
    limit, num_words = 9, 2
    # Random logits for each position and token before it.
    table = np.random.default_rng(5).normal(size=(limit, vocab.size, vocab.size)).astype(np.float32)
    start = grammar.start(tf.constant([num_words]))
    found = []

    def extend(history, state, log_probability):
        logits = table[len(history), history[-1] if history else 0]
        logs = logits - np.log(np.exp(logits).sum())
        for token in _allowed(grammar, state, limit - len(history) - 1):
            total = log_probability + logs[token]
            if token == vocabulary.EOS_ID:
                found.append((total, [*history, token]))
            else:
                extend([*history, token], grammar.advance(state, tf.constant([[token]])), total)

    extend([], start, 0.0)
    best_score, best_ids = max(found)
    assert len(found) > 100

    class Model:
        """Has no state."""

        def step(self, ids, position, ancestry, state):
            return tf.gather(tf.constant(table)[position], tf.reshape(ids, [-1])), state

        def grow(self, state, ancestry, num_steps):
            return state

    beam_size = len(found)
    result = beam_search.search(
        Model(),
        tf.zeros([1, 0, beam_size], tf.int32),
        options.DecodeOptions(beam_size=beam_size, alpha=0.0),
        emittable=candidates.EmittableIds(vocab.size),
        max_lengths=tf.constant([limit]),
        grammar=grammar,
        grammar_state=start,
    )
    assert result.ids[0, 0, : result.lengths[0, 0]].numpy().tolist() == best_ids
    np.testing.assert_allclose(result.scores[0, 0], best_score, rtol=1e-5)
