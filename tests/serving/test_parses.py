"""Trees that are made inside the graph against those of parsing.trees."""

import random

import pytest
import tensorflow as tf

from t2t_lite.parsing import trees
from t2t_lite.serving import parses


@pytest.fixture(scope="module")
def in_graph():
    text = tf.TensorSpec([None], tf.string)
    return tf.function(parses.parses, input_signature=[text, text], autograph=False)


def _texts(tensor):
    return [text.decode() for text in tensor.numpy()]


@pytest.mark.parametrize("seed", range(4))
def test_random_linear_forms_are_repaired_alike(in_graph, seed):
    symbols = [
        "(S",
        ")S",
        "(NP",
        ")NP",
        ")VP",
        "(VP",
        "XX",
        "XX",
        "XX",
        "NN",
        "(",
        ")",
        "))",
        "((X",
    ]
    rng = random.Random(seed)
    linears = [" ".join(rng.choices(symbols, k=rng.randrange(40))) for _ in range(300)]
    vocabulary = ["dog", ",", "“", "-LRB-", "☃"]
    words = [rng.choices(vocabulary, k=rng.randint(1, 8)) for _ in linears]
    found = in_graph(tf.constant(linears), tf.constant([" ".join(one) for one in words]))
    for linear, sentence, text, repairs in zip(
        linears, words, _texts(found.text), found.repairs.numpy(), strict=True
    ):
        expected = trees.repair(linear, len(sentence))
        assert text == str(trees.delinearize(expected.linear, sentence)), linear
        assert repairs == expected.repairs, linear


def test_tree_needs_no_repair(in_graph):
    found = in_graph([" (S (NP XX XX )NP (VP XX )VP XX )S"], ["The dog runs ."])
    assert _texts(found.text) == ["(S (NP (XX The) (XX dog)) (VP (XX runs)) (. .))"]
    assert found.repairs.numpy().tolist() == [0]


def test_empty_batch(in_graph):
    found = in_graph(tf.zeros([0], tf.string), tf.zeros([0], tf.string))
    assert found.text.shape == [0] == found.repairs.shape


def test_sentences_are_alike():
    texts = [" (a)\tb\u2581c \u00a0d\r\n", "", "x\v\fy  z", "( (", "☃\x00\x1f a"]
    assert _texts(parses.sentence(tf.constant(texts))) == [trees.sentence(text) for text in texts]
