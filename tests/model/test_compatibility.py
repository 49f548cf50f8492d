"""The three functions of Section 3.2.1 against numpy, their gradients, and in the model."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import config
from t2t_lite.model import attention, compatibility, transformer

RANDOM = np.random.default_rng(0)


def _normal(*shape):
    return tf.constant(RANDOM.normal(size=shape), tf.float32)


def test_they_are_their_formulas():
    q, k, v = _normal(2, 3, 5, 4), _normal(2, 3, 7, 4), _normal(3, 4)
    product = np.einsum("bhtk,bhsk->bhts", q, k)
    np.testing.assert_allclose(compatibility.dot(q, k), product, atol=1e-5)
    np.testing.assert_allclose(compatibility.scaled_dot(q, k), product / 2, atol=1e-5)
    z = np.tanh(q.numpy()[:, :, :, None] + k.numpy()[:, :, None])
    expected = np.einsum("bhtsk,hk->bhts", z, v)
    np.testing.assert_allclose(compatibility.additive(q, k, v), expected, atol=1e-5)


def test_additive_is_bahdanaus_with_both_matrices_in_the_projections():
    """v . tanh(W q + U k) of q = W^Q x, k = W^K m is v . tanh(q' + k') of (W^Q W), (W^K U)."""
    x, m, v = _normal(1, 1, 3, 6), _normal(1, 1, 5, 6), _normal(1, 4)
    kernel_q, kernel_k = _normal(6, 4), _normal(6, 4)
    w, u = _normal(4, 4), _normal(4, 4)
    z = np.tanh((x @ kernel_q @ w).numpy()[:, :, :, None] + (m @ kernel_k @ u).numpy()[:, :, None])
    expected = np.einsum("bhtsk,hk->bhts", z, v)
    found = compatibility.additive(x @ (kernel_q @ w), m @ (kernel_k @ u), v)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
def test_one_query_after_the_other_is_all_at_once(in_graph):
    """Values and gradients of a map over many queries are those of the plain formula."""
    inputs = _normal(2, 3, 20, 4), _normal(2, 3, 7, 4), _normal(3, 4)
    weights = _normal(2, 3, 20, 7)

    def plain(q, k, v):
        return tf.einsum("bhtsk,hk->bhts", tf.tanh(q[:, :, :, None] + k[:, :, None]), v)

    def scores_and_gradients(function):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            scores = function(*inputs)
            value = tf.reduce_sum(scores * weights)
        return scores, tape.gradient(value, inputs)

    run = tf.function(scores_and_gradients, autograph=False) if in_graph else scores_and_gradients
    ours, expected = run(compatibility.additive), run(plain)
    for a, b in zip(tf.nest.flatten(ours), tf.nest.flatten(expected)):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("function", ["scaled_dot", "dot", "additive"])
def test_a_layer_attends_by_its_function(function):
    layer = attention.MultiHeadAttention(6, 2, d_k=4, d_v=4, function=function)
    layer.build()
    x = _normal(2, 5, 6)
    with attention.recording() as attended:
        output = layer(x, bias=attention.causal_bias(5))
    (weights,) = (each.weights() for each in attended.values())
    q, k, v = (
        tf.transpose(tf.reshape(part, [2, 5, 2, 4]), [0, 2, 1, 3])
        for part in np.split((x @ layer.qkv).numpy(), 3, axis=2)
    )
    scores = {
        "dot": lambda: compatibility.dot(q, k),
        "scaled_dot": lambda: compatibility.dot(q, k) / 2,
        "additive": lambda: compatibility.additive(q, k, layer.additive.value),
    }[function]()
    expected = tf.nn.softmax(scores + attention.causal_bias(5))
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    heads = tf.reshape(tf.transpose(expected @ v, [0, 2, 1, 3]), [2, 5, 8])
    np.testing.assert_allclose(output, heads @ layer.output_kernel, atol=1e-5)
    # of the first head alone too
    (first,) = (each.weights(num_heads=1) for each in attended.values())
    np.testing.assert_allclose(first, expected[:, :1], atol=1e-5)


def test_only_additive_attention_has_a_weight_more():
    hparams = config.HParams(
        d_model=8, d_ff=8, num_heads=2, d_k=4, d_v=4, num_encoder_layers=1, num_decoder_layers=1
    )

    def names(function):
        changed = config.override(hparams, f"attention_function={function}")
        return set(transformer.Transformer(changed, 20).named_variables())

    base = names("scaled_dot")
    assert names("dot") == base
    assert names("additive") - base == {
        f"{layer}/additive"
        for layer in (
            "encoder_0/self_attention",
            "decoder_0/self_attention",
            "decoder_0/cross_attention",
        )
    }
