import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decode import top_k


def _flat(probabilities, scores, k, allowed):
    """Return what a sort of everything gives: scores, columns, beams."""
    num_beams, num_columns = probabilities.shape[-2:]
    totals = np.where(allowed, np.log(probabilities) + scores[:, :, None], -np.inf)
    totals = totals.reshape(-1, num_beams * num_columns)
    places = np.argsort(-totals, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(totals, places, axis=1), places % num_columns, places // num_columns


def _allowed(vocabulary, num_columns, *, blocked):
    allowed = np.arange(num_columns) < vocabulary.size
    allowed[list(vocabulary.forbidden) + list(vocabulary.blockable) * blocked] = False
    return allowed


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize(
    ("size", "num_columns"), [(5, 5), (61, 61), (997, 1000), (8000, 8000), (8000, 8040), (813, 813)]
)
def test_equals_a_sort_of_everything(size, num_columns, blocked):
    rng = np.random.default_rng(size)
    vocabulary = top_k.Vocabulary(size, forbidden=(0, 2), blockable=(1,))
    for num_beams, k in ((1, 1), (2, 4), (4, 8)):
        probabilities = rng.dirichlet(np.full(num_columns, 0.3), (6, num_beams)).clip(1e-30)
        probabilities = probabilities.astype(np.float32)
        scores = rng.normal(-5, 3, (6, num_beams)).astype(np.float32)
        found = top_k.top_k(
            tf.reshape(probabilities, [-1, num_columns]),
            tf.constant(scores),
            k,
            vocabulary,
            tf.constant(blocked),
        )
        allowed = _allowed(vocabulary, num_columns, blocked=blocked)
        totals, ids, beams = _flat(probabilities, scores, k, allowed)
        real = totals > -np.inf
        np.testing.assert_allclose(found.scores.numpy()[real], totals[real], rtol=1e-5)
        np.testing.assert_array_equal(found.ids.numpy()[real], ids[real])
        np.testing.assert_array_equal(found.beams.numpy()[real], beams[real])
        assert (found.scores.numpy()[~real] < top_k.NEVER / 2).all()


def test_forbidden_columns_push_no_group_out():
    # Forbidden columns have the largest values, so their groups look best; the k allowed ones that
    # matter lie in k groups of their own.
    num_columns, k = 20 * top_k.GROUP_SIZE - 3, 4
    vocabulary = top_k.Vocabulary(num_columns - 5, forbidden=(0, 50), blockable=(100,))
    probabilities = np.full([2, num_columns], 1e-3, np.float32)
    probabilities[:, [0, 50, 100, *range(num_columns - 5, num_columns)]] = 0.9
    expected = [170, 210, 250, 290]  # columns of groups 4, 5, 6, 7
    probabilities[1, expected] = [0.04, 0.03, 0.02, 0.01]
    found = top_k.top_k(
        tf.constant(probabilities), tf.constant([[0.0, 0.0]]), k, vocabulary, tf.constant(True)
    )
    assert found.ids.numpy().tolist() == [expected]
    assert found.beams.numpy().tolist() == [[1] * 4]


def test_beams_that_do_not_exist_come_last():
    probabilities = tf.constant([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]])
    scores = tf.constant([[-1.0, top_k.NEVER]])
    found = top_k.top_k(probabilities, scores, 4, top_k.Vocabulary(3))
    assert found.ids.numpy().tolist()[0][:3] == [0, 1, 2]
    assert (found.scores.numpy()[0] < top_k.NEVER / 2).tolist() == [False, False, False, True]
