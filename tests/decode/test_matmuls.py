import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import matmuls

RNG = np.random.default_rng(1)
# 2^17 weights and more: a smaller kernel is not rounded.
KERNEL = (RNG.normal(size=[257, 512]) * RNG.uniform(0.1, 2, size=512)).astype(np.float32)
BIAS = RNG.normal(size=512).astype(np.float32)
# Of features of very different sizes, as a layer norm's scale makes them.
BOUNDS = RNG.uniform(0.1, 4, size=257).astype(np.float32)
# 200 of very different sizes; tests draw no other numbers, so that their order does not matter.
ROWS = (RNG.normal(size=[200, 257]) * RNG.lognormal(size=[200, 1])).astype(np.float32)
BOUNDED_ROWS = (RNG.uniform(-1, 1, size=[200, 257]) * BOUNDS).astype(np.float32)


def _looped(bias=None, **bounds):
    """Return the product of integers as a function of rows, any number of them."""
    product = matmuls.matmul(tf.constant(KERNEL), bias, dtype=tf.int8, **bounds)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 257])])
    def looped(x):
        # Twice, in a loop, as a search does: the second time with the weights that it kept.
        return tf.while_loop(
            lambda i, _: i < 2,
            lambda i, _: (i + 1, product(x)),
            (0, tf.zeros([tf.shape(x)[0], 512])),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 512])),
        )[1]

    return lambda x: looped(tf.constant(x)).numpy()


@pytest.mark.usefixtures("integers")
def test_integers_are_multiplied_as_defined():
    x = ROWS[:6]
    found = _looped()(x)
    largest = np.abs(x).max(axis=1, keepdims=True)
    codes = np.floor(x.astype(np.float64) * 127 / largest + 0.5)
    scales = np.abs(KERNEL).max(axis=0) / 127
    integers = np.round(KERNEL / scales)
    expected = codes @ integers * largest * scales / 127
    # A code on the border of two may be rounded either way: one step of x times one weight.
    step = largest * np.abs(KERNEL).max(axis=0) / 127
    assert (np.abs(found - expected) <= 1.01 * step + 1e-4).all()
    assert np.median(np.abs(found - expected) / step) < 1e-3


@pytest.mark.usefixtures("integers")
def test_rounding_costs_about_a_hundredth():
    product, exact = _looped(tf.constant(BIAS)), ROWS[:40] @ KERNEL + BIAS
    error = np.abs(product(ROWS[:40]) - exact).mean() / np.abs(exact).mean()
    # A step is 1/127 of the largest of 257 normal numbers, about 2.8 deviations, so each of two
    # factors is off by 2.8 / 127 / sqrt(12) = 0.6 %.
    assert 0.004 < error < 0.015
    zeros = np.zeros([2, 257], np.float32)
    np.testing.assert_array_equal(product(zeros), [BIAS, BIAS])


@pytest.mark.usefixtures("integers")
@pytest.mark.parametrize(
    ("rows", "bounds"), [(ROWS, None), (BOUNDED_ROWS, BOUNDS)], ids=["any", "bounded"]
)
def test_a_row_does_not_depend_on_others(rows, bounds):
    # The weights that are kept are in an order that may suit one number of rows only.
    product = _looped() if bounds is None else _looped(bounds=tf.constant(bounds))
    together = product(rows)
    for num_rows in (1, 7, 64, 200, 4):
        # The sums are exact; the scales of rows without bounds may differ in the last digit.
        expected = pytest.approx(together[:num_rows], rel=1e-5 if bounds is None else 0, abs=0)
        assert product(rows[:num_rows]) == expected


def _bounded(x, bias=None):
    return _looped(bias, bounds=tf.constant(BOUNDS))(x)


@pytest.mark.usefixtures("integers")
def test_integers_of_bounded_inputs_are_multiplied_as_defined():
    x = BOUNDED_ROWS[:6]
    found = _bounded(x, tf.constant(BIAS))
    weights = KERNEL.astype(np.float64) * BOUNDS[:, None]
    scale = np.abs(weights).max() / 127
    codes = np.floor(x.astype(np.float64) / BOUNDS * 127 + 0.5)
    expected = codes @ np.round(weights / scale) * scale / 127 + BIAS
    # One code in a row may lie on the border of two, and the bias is rounded to a unit.
    tolerance = 1.01 * np.abs(weights).max() / 127
    assert np.abs(found - expected).max() <= tolerance
    assert np.median(np.abs(found - expected)) < 0.01 * tolerance


@pytest.mark.usefixtures("integers")
def test_what_is_beyond_its_bound_counts_as_the_bound():
    signs = np.sign(BOUNDED_ROWS[:3])
    far, at = _bounded(50 * signs * BOUNDS), _bounded(signs * BOUNDS)
    # The lowest code is -128, the bound's -127.
    assert np.abs(far - at).max() <= 1.01 * np.abs(KERNEL * BOUNDS[:, None]).sum(0).max() / 127
    assert np.abs(at).max() > 10  # so they were not nothing


@pytest.mark.usefixtures("integers")
def test_a_hidden_column_stays_hidden_and_others_keep_their_bias():
    bias = np.where(np.arange(512) < 500, BIAS, -1e9).astype(np.float32)
    y = _bounded(np.zeros([2, 257], np.float32), tf.constant(bias))
    np.testing.assert_allclose(y[:, :500], np.tile(BIAS[:500], [2, 1]), atol=1e-3)
    assert (y[:, 500:] < -1e4).all()


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.int8])
def test_small_kernels_are_never_rounded_to_integers(dtype):
    kernel, x = KERNEL[:, :64], ROWS[:3]
    y = matmuls.matmul(tf.constant(kernel), tf.constant(BIAS[:64]), dtype=dtype)(tf.constant(x))
    assert y.dtype == (tf.bfloat16 if dtype == tf.bfloat16 else tf.float32)
    # float32 sums of 257 terms; bfloat16 has 8 binary digits.
    tolerance = 0.02 if dtype == tf.bfloat16 else 1e-5
    expected = x @ kernel + BIAS[:64]
    assert np.abs(y - expected).max() < tolerance * np.abs(expected).max()


@pytest.mark.parametrize(
    "wrong",
    # TensorFlow's operation where it does nothing; pairs stop at the largest 16-bit number.
    [lambda sums: tf.zeros([0]), lambda sums: sums - 128 * (2 * 255 * 127 - 32767)],
    ids=["nothing", "16 bits"],
)
def test_a_processor_without_exact_products_is_refused(monkeypatch, wrong):
    matmuls.has_integers.cache_clear()
    exact = tf.fill([1, 16], 64.0 * 127 * 127)
    monkeypatch.setattr(matmuls.Int8Matmul, "sums", lambda self, codes: exact)
    assert matmuls.has_integers()
    matmuls.require_precision("mixed_int8")
    with monkeypatch.context() as patch:
        patch.setattr(tf.config, "list_physical_devices", lambda _: ["GPU:0"])
        with pytest.raises(errors.UserError, match="is for processors"):
            matmuls.require_precision("mixed_int8")
    matmuls.has_integers.cache_clear()
    monkeypatch.setattr(matmuls.Int8Matmul, "sums", lambda self, codes: wrong(exact))
    with pytest.raises(errors.UserError, match="take precision=mixed"):
        matmuls.require_precision("mixed_int8")
    matmuls.has_integers.cache_clear()


def test_a_graph_on_such_a_processor_fails(monkeypatch):
    monkeypatch.setattr(matmuls.Int8Matmul, "sums", lambda self, codes: tf.zeros([1, 16]))

    @tf.function(autograph=False)
    def identity(x):
        with tf.control_dependencies([matmuls.assert_integers()]):
            return tf.identity(x)

    with pytest.raises(tf.errors.InvalidArgumentError, match="8-bit integers"):
        identity(1.0)
