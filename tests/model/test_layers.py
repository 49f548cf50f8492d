"""Single layers against their plain definitions."""

import math

import draws
import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.model import (
    attention,
    dropout,
    embedding,
    feed_forward,
    imported,
    linear,
    normalization,
    position,
)


def _gradients(function, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        # Weights of its own for each output, so that no error can hide in a plain sum.
        outputs = function(*inputs)
        weights = tf.reshape(tf.range(tf.size(outputs), dtype=tf.float32), tf.shape(outputs))
        value = tf.reduce_sum(outputs * tf.sin(weights))
    return outputs, tape.gradient(value, inputs)


def _plain_norm(x, scale, bias):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) / tf.sqrt(variance + 1e-6) * scale + bias


IDS = tf.constant([[1, 2, 1], [0, 3, 1]])


@pytest.mark.parametrize(
    ("ours", "plain", "shapes"),
    [
        (normalization.layer_norm, _plain_norm, [(2, 3, 8), (8,), (8,)]),
        (linear.add_bias, lambda x, b: x + b, [(2, 3, 4), (4,)]),
        (lambda m: embedding._gather(m, IDS), lambda m: tf.one_hot(IDS, 5) @ m, [(5, 4)]),
    ],
    ids=["layer norm", "bias", "lookup"],
)
def test_each_equals_its_definition_and_automatic_gradient(ours, plain, shapes):
    inputs = [draws.normal(*shape) for shape in shapes]
    (y, gradients), (plain_y, plain_gradients) = (_gradients(f, *inputs) for f in (ours, plain))
    for a, b in zip([y, *gradients], [plain_y, *plain_gradients]):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize(("d_k", "d_v"), [(4, 4), (3, 5)])
def test_multi_head_attention_equals_the_formula_head_by_head(d_k, d_v, cross):
    heads, width = 2, 6
    layer = attention.MultiHeadAttention(width, heads, d_k=d_k, d_v=d_v, cross=cross)
    layer.build()
    x = draws.normal(2, 5, width)
    memory = draws.normal(2, 7, width) if cross else x
    if cross:
        q = layer.q.numpy()
        k, v = np.split(layer.kv.numpy(), [heads * d_k], axis=1)
        mask = attention.padding_mask(tf.constant([[4, 5, 6, 7, 8, 9, 1], [4, 5, 1, 0, 0, 0, 0]]))[
            :, None
        ]
    else:
        q, k, v = np.split(layer.qkv.numpy(), [heads * d_k, 2 * heads * d_k], axis=1)
        mask = attention.causal_mask(5)
    expected = np.zeros((2, 5, width))
    for h in range(heads):
        key, value = slice(h * d_k, (h + 1) * d_k), slice(h * d_v, (h + 1) * d_v)
        scores = (x @ q[:, key]) @ tf.transpose(memory @ k[:, key], [0, 2, 1]) / math.sqrt(d_k)
        weights = tf.nn.softmax(tf.where(mask, scores, -1e9))
        expected += (weights @ (memory @ v[:, value])) @ layer.output_kernel.numpy()[value]
    output = layer(x, memory if cross else None, attention_mask=mask)
    np.testing.assert_allclose(output, expected, atol=1e-5)


def test_attention_to_padding_is_exactly_zero():
    layer = attention.MultiHeadAttention(8, 2, d_k=4, d_v=4, cross=True)
    memory, mask = draws.normal(1, 4, 8), attention.padding_mask(tf.constant([[4, 1, 0, 0]]))
    with attention.recording() as recorded:
        layer(draws.normal(1, 3, 8), memory, attention_mask=mask)
    (weights,) = recorded.values()
    np.testing.assert_array_equal(weights[..., 2:], np.zeros((1, 2, 3, 2)))
    np.testing.assert_allclose(tf.reduce_sum(weights, -1), np.ones((1, 2, 3)), atol=1e-6)


@pytest.mark.parametrize("gain", [1.0, 0.5])
def test_fused_kernels_are_initialised_part_by_part(gain):
    layer = attention.MultiHeadAttention(256, 4, d_k=16, d_v=128, qkv_gain=gain)
    layer.build()
    for part, width in zip(np.split(layer.qkv.numpy(), [64, 128], axis=1), (64, 64, 512)):
        limit = gain * math.sqrt(6 / (256 + width))  # Glorot uniform
        assert 0.95 * limit < np.abs(part).max() <= limit
    limit = math.sqrt(6 / (512 + 256))
    assert 0.95 * limit < np.abs(layer.output_kernel.numpy()).max() <= limit


def test_feed_forward_equals_the_formula():
    layer = feed_forward.FeedForward(4, 8)
    layer.build()
    layer.bias_1.assign(draws.normal(8))
    x = draws.normal(2, 3, 4)
    hidden = np.maximum(0, x @ layer.kernel_1 + layer.bias_1)
    np.testing.assert_allclose(layer(x), hidden @ layer.kernel_2 + layer.bias_2, atol=1e-5)


def test_the_papers_positions():
    # PE(pos, 2i) = sin(pos / 10000^(2i / D)), PE(pos, 2i + 1) = cos of the same angle.
    encoded = position.sinusoid(tf.constant([0, 1, 50]), 6).numpy()
    for row, pos in enumerate([0, 1, 50]):
        angles = [pos / 10_000 ** (2 * i / 6) for i in range(3)]
        expected = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
        np.testing.assert_allclose(encoded[row], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("positions", "rates"),
    [
        (imported.SinusoidHalves, [1, 10_000 ** (-1 / 3), 10_000 ** (-2 / 3)]),  # D / 2 intervals
        (imported.T2TSinusoids, [1, 1 / 100, 1 / 10_000]),  # D / 2 - 1 intervals
    ],
)
def test_positions_in_halves(positions, rates):
    encoded = positions(6)(tf.constant([3])).numpy()[0]
    angles = [3 * rate for rate in rates]
    expected = [*map(math.sin, angles), *map(math.cos, angles)]
    np.testing.assert_allclose(encoded, expected, atol=1e-5)


def test_a_learned_position_beyond_the_table_takes_its_last_row():
    layer = position.LearnedPositions(4, max_length=3)
    layer.build()
    encoded = layer(tf.constant([1, 2, 9]))
    np.testing.assert_array_equal(encoded[1], encoded[2])
    assert np.abs(encoded[0] - encoded[1]).max() > 0


def test_embeddings_are_scaled_and_padding_is_zero():
    layer = embedding.SharedEmbedding(5, 4)
    layer.build()
    np.testing.assert_allclose(layer(tf.constant([3, 0])), [layer.matrix[3] * 2, np.zeros(4)])


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_dropout_drops_its_share_and_keeps_the_mean(rate):
    x = tf.ones([1001, 101])  # an odd number of elements
    y = dropout.Dropout(rate, keras.random.SeedGenerator(1))(x, training=True).numpy()
    # Five standard deviations of a share among 101,101 draws.
    tolerance = 5 * math.sqrt(rate * (1 - rate) / y.size)
    assert (y == 0).mean() == pytest.approx(rate, abs=tolerance)
    assert y.max() == pytest.approx(1 / (1 - rate), rel=1e-6)


def test_layers_that_share_a_generator_are_independent():
    generator = keras.random.SeedGenerator(1)
    layers = [dropout.Dropout(0.5, generator) for _ in range(2)]
    x = tf.ones([100, 100])
    first, second = (layer(x, training=True).numpy() > 0 for layer in layers)
    assert (first == second).mean() == pytest.approx(0.5, abs=0.03)
