"""The three functions of Section 3.2.1 against numpy, their gradients, and in the model."""

import re

import draws
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.model import attention, compatibility

UNKNOWN = [*[tf.TensorSpec([None, 3, None, 4])] * 2, tf.TensorSpec([3, 4])]


def test_they_are_their_formulas():
    q, k, v = draws.normal(2, 3, 5, 4), draws.normal(2, 3, 7, 4), draws.normal(3, 4)
    product = np.einsum("bhtk,bhsk->bhts", q, k)
    dot = compatibility.DotAttention(6, 3, d_k=4, d_v=4).scores
    np.testing.assert_allclose(dot(q, k), product, atol=1e-5)
    np.testing.assert_allclose(attention.scaled_dot_product(q, k), product / 2, atol=1e-5)
    z = np.tanh(q.numpy()[:, :, :, None] + k.numpy()[:, :, None])
    expected = np.einsum("bhtsk,hk->bhts", z, v)
    np.testing.assert_allclose(compatibility.additive(q, k, v), expected, atol=1e-5)


def _plain(q, k, v):
    return tf.einsum("bhtsk,hk->bhts", tf.tanh(q[:, :, :, None] + k[:, :, None]), v)


def _scores_and_gradients(function, inputs, weights):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        scores = function(*inputs)
        value = tf.reduce_sum(scores * weights)
    return scores, tape.gradient(value, inputs)


@pytest.mark.parametrize(
    ("way", "most_sums"), [("eager", 1), ("eager", 2**18), ("graph", 600), ("compiled", 600)]
)
def test_chunks_of_queries_are_all_at_once(way, most_sums, monkeypatch):
    """Values and gradients of a map over queries are those of the plain formula; 20 queries make 7
    chunks of 3, the last one filled up, where 600 sums may be made at once: each has 168."""
    monkeypatch.setattr(compatibility, "_MOST_SUMS", most_sums)
    inputs = draws.normal(2, 3, 20, 4), draws.normal(2, 3, 7, 4), draws.normal(3, 4)
    weights = draws.normal(2, 3, 20, 7)

    def run(*inputs):
        return _scores_and_gradients(compatibility.additive, inputs, weights)

    if way == "graph":  # which does not know the sizes
        run = tf.function(run, autograph=False, input_signature=UNKNOWN)
    elif way == "compiled":
        run = tf.function(run, autograph=False, jit_compile=True)
    expected = _scores_and_gradients(_plain, inputs, weights)
    for a, b in zip(tf.nest.flatten(run(*inputs)), tf.nest.flatten(expected)):
        # Gradients are sums of up to 840 products in another order.
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-5)


@pytest.mark.parametrize("sizes", [(0, 20, 5), (2, 0, 5), (2, 20, 0)])
def test_without_rows_queries_or_keys_there_are_no_scores(sizes):
    batch, num_queries, num_keys = sizes
    run = tf.function(compatibility.additive, autograph=False, input_signature=UNKNOWN)
    q, k = (draws.normal(batch, 3, number, 4) for number in (num_queries, num_keys))
    assert run(q, k, draws.normal(3, 4)).shape == (batch, 3, num_queries, num_keys)


def test_memory_of_additive_attention_does_not_grow_with_queries_times_keys_times_size(monkeypatch):
    """No tensor of the compiled gradient is larger than the scores or than _MOST_SUMS."""
    monkeypatch.setattr(compatibility, "_MOST_SUMS", 2**13)
    inputs = draws.normal(2, 3, 64, 16), draws.normal(2, 3, 32, 16), draws.normal(3, 16)
    weights = draws.normal(2, 3, 64, 32)

    def largest(function):
        run = tf.function(
            lambda *inputs: _scores_and_gradients(function, inputs, weights)[1],
            autograph=False,
            jit_compile=True,
        )
        hlo = run.experimental_get_compiler_ir(*inputs)(stage="optimized_hlo")
        shapes = re.findall(r"f32\[([\d,]+)\]", hlo)
        return max(np.prod([int(size) for size in shape.split(",")]) for shape in shapes)

    assert largest(compatibility.additive) <= 2 * 3 * 64 * 32
    assert largest(_plain) >= 2 * 3 * 64 * 32 * 16


@pytest.mark.parametrize(
    "layer_class",
    [
        attention.MultiHeadAttention,
        compatibility.DotAttention,
        compatibility.AdditiveAttention,
    ],
)
def test_a_layer_attends_by_its_function(layer_class):
    layer = layer_class(6, 2, d_k=4, d_v=4)
    layer.build()
    x = draws.normal(2, 5, 6)
    with attention.recording() as recorded:
        output = layer(x, attention_mask=attention.causal_mask(5))
    (weights,) = recorded.values()
    q, k, v = (
        tf.transpose(tf.reshape(part, [2, 5, 2, 4]), [0, 2, 1, 3])
        for part in np.split((x @ layer.qkv).numpy(), 3, axis=2)
    )
    hidden = attention.mask_bias(attention.causal_mask(5))
    expected = tf.nn.softmax(layer.scores(q, k) + hidden)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    heads = tf.reshape(tf.transpose(expected @ v, [0, 2, 1, 3]), [2, 5, 8])
    np.testing.assert_allclose(output, heads @ layer.output_kernel, atol=1e-5)
