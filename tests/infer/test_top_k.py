import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.infer import top_k


def _flat(probabilities, k, allowed):
    """Return what a sort of whole rows gives."""
    masked = np.where(allowed, probabilities, -1)
    ids = np.argsort(-masked, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(masked, ids, axis=1), ids


def _allowed(vocabulary, num_columns, *, blocked):
    allowed = np.arange(num_columns) < vocabulary.size
    allowed[list(vocabulary.forbidden) + list(vocabulary.blockable) * blocked] = False
    return allowed


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize(
    ("size", "num_columns"), [(5, 5), (61, 61), (997, 1000), (8000, 8000), (8000, 8040), (813, 813)]
)
def test_equals_a_sort_of_whole_rows(size, num_columns, blocked):
    # A permutation in each row: no ties, and each value knows its place.
    rng = np.random.default_rng(size)
    probabilities = rng.permuted(np.tile(np.arange(num_columns), (6, 1)), axis=1) / num_columns
    probabilities = probabilities.astype(np.float32)
    vocabulary = top_k.Vocabulary(size, forbidden=(0, 2), blockable=(1,))
    for k in (1, 3, 5):
        found = top_k.top_k(tf.constant(probabilities), k, vocabulary, tf.constant(blocked))
        values, ids = _flat(probabilities, k, _allowed(vocabulary, num_columns, blocked=blocked))
        real = values >= 0
        np.testing.assert_array_equal(found.values, values)
        np.testing.assert_array_equal(found.ids.numpy()[real], ids[real])


def test_forbidden_columns_push_no_group_out():
    # Forbidden columns have the largest values, so their groups look best; the k allowed ones that
    # matter lie in k groups of their own.
    num_columns, k = 20 * top_k.GROUP_SIZE - 3, 4
    vocabulary = top_k.Vocabulary(num_columns - 5, forbidden=(0, 50), blockable=(100,))
    probabilities = np.full([1, num_columns], 1e-3, np.float32)
    probabilities[0, [0, 50, 100, *range(num_columns - 5, num_columns)]] = 0.9
    expected = [170, 210, 250, 290]  # columns of groups 4, 5, 6, 7
    probabilities[0, expected] = [0.04, 0.03, 0.02, 0.01]
    found = top_k.top_k(tf.constant(probabilities), k, vocabulary, tf.constant(True))
    assert found.ids.numpy().tolist() == [expected]


def test_what_may_not_be_emitted_has_the_value_minus_one():
    vocabulary = top_k.Vocabulary(3, forbidden=(0,))
    found = top_k.top_k(tf.constant([[0.1, 0.2, 0.3, 0.4]]), 4, vocabulary)
    np.testing.assert_allclose(found.values, [[0.3, 0.2, -1, -1]])
    assert found.ids[0, :2].numpy().tolist() == [2, 1]
