"""The loss against its plain definition: dense smoothed targets and automatic gradients."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.train import loss

ROWS = 24


def _example():
    random = np.random.default_rng(0)
    states = tf.constant(random.normal(size=(2, 3, 8)), tf.float32)
    embedding = tf.constant(random.normal(size=(ROWS, 8)), tf.float32)
    targets = tf.constant([[3, 5, 1], [23, 1, 0]])
    return states, embedding, targets, loss.token_weights(targets) / 5


def _plain(states, embedding, targets, weights, *, label_smoothing):
    """Cross entropy with the dense distribution: 1 - eps for the token, eps / (V - 1) elsewhere."""
    logits = tf.einsum("btd,vd->btv", states, embedding)
    low = label_smoothing / (ROWS - 1)
    dense = tf.one_hot(targets, ROWS, 1 - label_smoothing, low)
    losses = tf.nn.softmax_cross_entropy_with_logits(dense, logits)
    return tf.reduce_sum(losses * weights)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.2])
def test_loss_and_gradients_equal_the_plain_definition(label_smoothing):
    states, embedding, targets, weights = _example()

    def ours(states, embedding):
        losses = loss.smoothed_cross_entropy(
            states, embedding, targets, weights, label_smoothing=label_smoothing
        )
        return losses.smoothed

    def plain(states, embedding):
        return _plain(states, embedding, targets, weights, label_smoothing=label_smoothing)

    values, gradients = [], []
    for function in (ours, plain):
        with tf.GradientTape() as tape:
            tape.watch([states, embedding])
            # Twice the loss: the gradient that comes from above must count.
            value = 2 * function(states, embedding)
        values.append(float(value))
        gradients.append(tape.gradient(value, [states, embedding]))
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    for of_ours, of_plain in zip(*gradients):
        np.testing.assert_allclose(of_ours, of_plain, atol=1e-6)


def test_likelihood_ignores_smoothing_and_padding():
    states, embedding, targets, weights = _example()
    smoothed = loss.smoothed_cross_entropy(states, embedding, targets, weights, label_smoothing=0.1)
    plain = _plain(states, embedding, targets, weights, label_smoothing=0.0)
    assert float(smoothed.negative_log_likelihood) == pytest.approx(float(plain), rel=1e-6)
    changed = tf.tensor_scatter_nd_update(states, [[1, 2]], [tf.fill([8], 9.0)])
    again = loss.smoothed_cross_entropy(changed, embedding, targets, weights, label_smoothing=0.1)
    assert float(again.smoothed) == pytest.approx(float(smoothed.smoothed), rel=1e-6)


def test_bfloat16_products_keep_the_loss_within_their_rounding():
    exact, rounded = (
        loss.smoothed_cross_entropy(*_example(), label_smoothing=0.1, dtype=dtype).smoothed
        for dtype in ("float32", "bfloat16")
    )
    # Eight bits of mantissa: logits of about 8 are off by up to 2^-8 * 8.
    assert float(rounded) == pytest.approx(float(exact), abs=0.03)


def test_a_hopeless_token_has_a_finite_loss():
    states = tf.constant([[[100.0]]])
    embedding = tf.constant([[0.0], [1.0], [-1.0]])
    losses = loss.smoothed_cross_entropy(
        states, embedding, tf.constant([[2]]), tf.ones([1, 1]), label_smoothing=0.0
    )
    assert np.isfinite(float(losses.smoothed))
