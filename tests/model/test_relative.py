"""Biases of attention by distance: from each other, and of a parser from the word that is next."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.model import next_word, relative, transformer
from t2t_lite.text import vocabulary

PAIRS = [
    ("a dog runs", "(S (NP XX XX )NP (VP XX )VP )S"),
    ("☃☃ barks", "(S XX XX )S"),
]


@pytest.fixture
def model():
    """Return a model whose heads look at nothing but the next word, and there as good as hard."""
    keras.utils.set_random_seed(3)
    hparams = dataclasses.replace(tiny_run.HPARAMS, relative_bias=1, next_word=1)
    words = tiny_run.tree_task().grammar
    model = next_word.create(hparams, tiny_run.tree_subwords().size, words=words)
    for layer in model.decoder_layers:
        table = layer.cross_attention.relative_bias
        table.assign(np.where(np.arange(3) == 1, 30.0, 0.0) * np.ones(table.shape))
    return model


def _ids(text):
    return [*tiny_run.tree_subwords().encode(text), vocabulary.EOS_ID]


def test_what_is_further_away_has_the_bias_of_the_limit():
    layer = relative.RelativeAttention(4, 2, d_k=2, d_v=2, first=-1, last=2)
    layer.build()
    layer.relative_bias.assign([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    first, second = layer.bias(None, 4, 4)[0].numpy().tolist()
    assert first == [[2, 3, 4, 4], [1, 2, 3, 4], [1, 1, 2, 3], [1, 1, 1, 2]]
    assert second[0] == [6, 7, 8, 8]


def test_the_word_that_is_next_has_the_bias_of_no_distance(model):
    # Nothing else leads from one position to another.
    for name, variable in model.named_variables().items():
        if name.endswith("self_attention/output"):
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


def test_without_the_words_no_word_is_next():
    with pytest.raises(ValueError, match="next_word needs words"):
        next_word.create(dataclasses.replace(tiny_run.HPARAMS, next_word=1), 50, words=None)
    model = transformer.Transformer(dataclasses.replace(tiny_run.HPARAMS, next_word=1), 50)
    with pytest.raises(ValueError, match="next_word needs words"):
        model(tf.constant([[5, 1]]), tf.constant([[5, 1]]))
