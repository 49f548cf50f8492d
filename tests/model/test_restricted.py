"""Restricted self-attention in blocks against full attention with a band."""

import dataclasses

import draws
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import config
from t2t_lite.model import attention, restricted, transformer

SIZES = config.HParams(
    d_model=8, d_ff=8, num_heads=2, d_k=4, d_v=6, num_encoder_layers=2, num_decoder_layers=2
)


def test_the_band_of_a_small_example():
    # r = 1: each position sees itself, the one before and, where that is allowed, the one after
    both = restricted.band_mask(4, 1, causal=False)[0]
    expected = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    np.testing.assert_array_equal(both, np.array(expected, bool))
    before = restricted.band_mask(4, 1, causal=True)[0]
    np.testing.assert_array_equal(before, np.tril(np.array(expected, bool)))


@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize(
    ("length", "window"), [(1, 3), (3, 3), (4, 3), (5, 1), (8, 4), (17, 3), (17, 4), (17, 100)]
)
def test_blocks_equal_full_attention_with_a_band(length, window, causal):
    """Outputs and gradients; the second row is padded."""
    inputs = tuple(draws.normal(2, 2, length, size) for size in (4, 4, 6))
    ids = np.ones([2, length], np.int32)
    ids[1, -(-length // 2) :] = 0
    bias = None if causal else attention.mask_bias(attention.padding_mask(tf.constant(ids)))
    attend = attention.MultiHeadAttention(8, 2, d_k=4, d_v=6).attend
    weights = draws.normal(2, 2, length, 6)
    if not causal:  # what comes out at padding is nobody's
        weights *= tf.cast(ids, tf.float32)[:, None, :, None]

    def full(q, k, v):
        band = attention.mask_bias(restricted.band_mask(length, window, causal=causal))
        return attend(q, k, v, band if causal else band + bias)

    def blocks(q, k, v):
        return restricted.in_blocks(attend, q, k, v, bias, window=window, causal=causal)

    def run(function):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = function(*inputs)
            value = tf.reduce_sum(outputs * weights)
        return outputs * tf.cast(weights != 0, tf.float32), *tape.gradient(value, inputs)

    for ours, expected in zip(run(blocks), run(full)):
        np.testing.assert_allclose(ours, expected, atol=1e-5)


def _models():
    full, narrow = (
        transformer.Transformer(dataclasses.replace(SIZES, attention_window=window), 20)
        for window in (0, 3)
    )
    for ours, theirs in zip(narrow.named_variables().values(), full.named_variables().values()):
        ours.assign(theirs)
    return full, narrow


def test_a_wide_window_is_the_base_model():
    """With as many positions as the window reaches nothing is restricted."""
    full, narrow = _models()
    inputs, targets = tf.constant([[4, 5, 6, 1], [7, 1, 0, 0]]), tf.constant([[8, 9, 1], [3, 1, 0]])
    found, expected = narrow(inputs, targets), full(inputs, targets)
    real = targets != 0
    np.testing.assert_allclose(found[real], expected[real], atol=1e-5)
    # and with more it is another function
    inputs = tf.constant([[4, 5, 6, 7, 8, 9, 10, 11, 1]])
    difference = narrow(inputs, inputs) - full(inputs, inputs)
    assert tf.reduce_max(tf.abs(difference)) > 1e-3


def test_nothing_is_seen_beyond_the_layers_windows():
    """Two layers of window 3 reach 6 positions: further away the source changes nothing."""
    _, model = _models()
    ids = np.arange(3, 20)[None]
    changed = ids.copy()
    changed[0, 8] = 3
    difference = np.abs(model.encode(ids).states - model.encode(changed).states)[0].max(-1)
    assert (difference[2:15] > 0).all()
    assert (difference[:2] == 0).all()
    assert (difference[15:] == 0).all()


def test_the_weights_shown_are_those_of_the_band():
    _, model = _models()
    ids = tf.constant([[4, 5, 6, 7, 8, 9, 10, 1]])
    with attention.recording() as attended:
        model(ids, ids)
    for name, causal in (("encoder_1/self_attention", False), ("decoder_1/self_attention", True)):
        weights = attended[name]
        band = restricted.band_mask(8, 3, causal=causal)
        assert tf.reduce_max(tf.where(band, 0.0, weights)) == 0
        np.testing.assert_allclose(tf.reduce_sum(weights, -1), np.ones([1, 2, 8]), atol=1e-5)
