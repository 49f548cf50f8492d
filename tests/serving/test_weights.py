"""Weights of an export: their size, and what rounding to int8 costs."""

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.serving import weights


def test_quantized_example_by_hand():
    # Column maxima 254 and 1: scales 2 and 1 / 127.
    integers, scales = weights.quantize(tf.constant([[254.0, -0.5], [-3.0, 1.0]]), axis=0)
    np.testing.assert_allclose(scales, [[2.0, 1 / 127]])
    assert integers.numpy().tolist() == [[127, -64], [-2, 127]]


@pytest.mark.parametrize("axis", [0, 1])
def test_error_is_at_most_half_a_scale(axis):
    matrix = np.random.default_rng(1).normal(size=[50, 30]).astype(np.float32)
    matrix[3], matrix[:, 4] = 0, 0
    integers, scales = weights.quantize(tf.constant(matrix), axis=axis)
    error = np.abs(matrix - integers.numpy() * scales.numpy())
    assert (error <= scales.numpy() * 0.5001).all()
    assert (error[3] == 0).all()
    assert (scales.numpy() > 0).all()  # no division by zero for a column of zeros


def test_model_computes_with_the_rounded_weights_only_in_the_context():
    model = tiny_run.model()
    exact = {name: v.numpy() for name, v in model.named_variables().items()}
    rounded = weights.Int8Weights([model])
    inputs, targets = tf.constant([[5, 6, 1]]), tf.constant([[7, 1]])
    before = model(inputs, targets).numpy()
    with rounded.used():
        within = model(inputs, targets).numpy()
    np.testing.assert_array_equal(model(inputs, targets), before)
    for name, variable in model.named_variables().items():
        if len(variable.shape) == 2:
            axis = 1 if name == "embedding/matrix" else 0
            integers, scales = weights.quantize(variable, axis=axis)
            variable.assign(integers.numpy() * scales.numpy())
    np.testing.assert_allclose(model(inputs, targets), within, atol=1e-5)
    assert 0 < np.abs(within - before).max() < 0.1 * np.abs(before).max()
    assert any((exact[name] != v.numpy()).any() for name, v in model.named_variables().items())


def test_sizes_of_what_is_saved():
    model = tiny_run.model()
    total = sum(v.shape.num_elements() for v in model.named_variables().values())
    vectors = sum(
        v.shape.num_elements() for v in model.named_variables().values() if len(v.shape) != 2
    )
    saved = weights.Int8Weights([model]).variables
    assert sum(v.shape.num_elements() for v in saved if v.dtype == tf.int8) == total - vectors
    assert len(weights.Weights([model]).variables) == len(model.named_variables())
