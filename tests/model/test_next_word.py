"""The decoder of a parser reads the encoder's state of the next word, and of no other."""

import dataclasses
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.model import next_word, transformer
from t2t_lite.text import vocabulary

PAIRS = [
    ("a dog runs", "(S (NP XX XX )NP (VP XX )VP )S"),
    ("☃☃ barks", "(S XX XX )S"),
]


@pytest.fixture
def model():
    keras.utils.set_random_seed(3)
    hparams = dataclasses.replace(tiny_run.HPARAMS, next_word=True)
    grammar = tiny_run.tree_task().grammar
    return transformer.Transformer(hparams, tiny_run.tree_subwords().size, words=grammar)


def _ids(text):
    return [*tiny_run.tree_subwords().encode(text), vocabulary.EOS_ID]


def test_each_target_gets_the_state_of_its_word():
    encoded = tf.constant([[[1.0], [2.0], [3.0], [4.0]]])
    found = next_word.states(tf.constant([[0, -1, 1, 2]]), tf.constant([[0, 1, 1, 2, 3]]), encoded)
    assert found[0, :, 0].numpy().tolist() == [1, 3, 3, 4, 0]


def test_a_word_reaches_only_what_is_predicted_while_it_is_next(model):
    # Nothing else leads from one position to another.
    for name, variable in model.named_variables().items():
        if name.endswith("attention/output"):
            variable.assign(tf.zeros_like(variable))
    source, linear = PAIRS[0]
    inputs, targets = np.array([_ids(source)]), tf.constant([_ids(f" {linear}")])
    before = model(tf.constant(inputs), targets)[0]
    tokens, words = [*linear.split(), "EOS"], source.split()
    for number in range(len(words)):
        changed = inputs.copy()
        start = len(tiny_run.tree_subwords().encode(" ".join(words[:number])))
        changed[0, start] = _ids("a barks")[1]  # another that begins a word
        after = model(tf.constant(changed), targets)[0]
        is_changed = np.abs(after - before).max(axis=1) > 1e-4
        num_written = [tokens[:place].count("XX") for place in range(len(tokens))]
        assert is_changed.tolist() == [written == number for written in num_written]


def test_packed_sentences_are_what_they_are_alone(model):
    sides = [[_ids(source) for source, _ in PAIRS], [_ids(f" {linear}") for _, linear in PAIRS]]
    packings = [
        transformer.Packing(
            tf.constant([[i + 1 for i, row in enumerate(rows) for _ in row]]),
            tf.constant([[place for row in rows for place in range(len(row))]]),
        )
        for rows in sides
    ]
    inputs, targets = (tf.constant([[*itertools.chain(*rows)]]) for rows in sides)
    encoded = model.encode(inputs, packing=packings[0])
    packed = model.decode(targets, encoded, packing=packings[1])[0]
    alone = [
        model.decode(tf.constant([target]), model.encode(tf.constant([source])))[0]
        for source, target in zip(*sides)
    ]
    np.testing.assert_allclose(packed, tf.concat(alone, axis=0), atol=1e-5)


def test_without_the_words_it_cannot_be():
    with pytest.raises(ValueError, match="next_word needs words"):
        transformer.Transformer(dataclasses.replace(tiny_run.HPARAMS, next_word=True), 50)
