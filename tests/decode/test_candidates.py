"""The best extensions, against a plain definition of them."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decode import candidates

EMITTABLE = candidates.EmittableIds(5, eos_id=1, forbidden=(0,))
ROW = [0.3, 0.1, 0.2, 0.25, 0.15]  # of ids 0 to 4


def _sorted(probabilities, scores, k, allowed):
    """Return what a sort of everything gives: scores, columns, beams."""
    num_beams, num_columns = probabilities.shape[-2:]
    totals = np.where(allowed, np.log(probabilities) + scores[:, :, None], -np.inf)
    totals = totals.reshape(-1, num_beams * num_columns)
    places = np.argsort(-totals, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(totals, places, axis=1), places % num_columns, places // num_columns


def _allowed(emittable, num_columns, *, may_end):
    allowed = np.arange(num_columns) < emittable.size
    allowed[list(emittable.forbidden) + [emittable.eos_id] * (not may_end)] = False
    return allowed


@pytest.mark.parametrize("may_end", [False, True])
@pytest.mark.parametrize(
    ("size", "num_columns"), [(5, 5), (61, 61), (997, 1000), (8000, 8000), (8000, 8040), (813, 813)]
)
def test_equals_a_sort_of_everything(size, num_columns, may_end):
    rng = np.random.default_rng(size)
    emittable = candidates.EmittableIds(size, eos_id=1, forbidden=(0, 2))
    for num_beams, k in ((1, 1), (2, 4), (4, 8)):
        probabilities = rng.dirichlet(np.full(num_columns, 0.3), (6, num_beams)).clip(1e-30)
        probabilities = probabilities.astype(np.float32)
        scores = rng.normal(-5, 3, (6, num_beams)).astype(np.float32)
        found = candidates.best(
            tf.reshape(probabilities, [-1, num_columns]),
            tf.constant(scores),
            k,
            emittable=emittable,
            may_end=tf.constant(may_end),
        )
        allowed = _allowed(emittable, num_columns, may_end=may_end)
        totals, ids, beams = _sorted(probabilities, scores, k, allowed)
        real = totals > -np.inf
        np.testing.assert_allclose(found.scores.numpy()[real], totals[real], rtol=1e-5)
        np.testing.assert_array_equal(found.ids.numpy()[real], ids[real])
        np.testing.assert_array_equal(found.parents.numpy()[real], beams[real])
        assert (found.scores.numpy()[~real] < candidates.NEVER / 2).all()


def test_forbidden_columns_push_no_group_out():
    # Forbidden columns have the largest values, so their groups look best; the k allowed ones that
    # matter lie in k groups of their own.
    num_columns, k = 20 * candidates.GROUP_SIZE - 3, 4
    emittable = candidates.EmittableIds(num_columns - 5, eos_id=100, forbidden=(0, 50))
    probabilities = np.full([2, num_columns], 1e-3, np.float32)
    probabilities[:, [0, 50, 100, *range(num_columns - 5, num_columns)]] = 0.9
    expected = [170, 210, 250, 290]  # columns of groups 4, 5, 6, 7
    probabilities[1, expected] = [0.04, 0.03, 0.02, 0.01]
    found = candidates.best(
        tf.constant(probabilities),
        tf.constant([[0.0, 0.0]]),
        k,
        emittable=emittable,
        may_end=tf.constant(False),
    )
    assert found.ids.numpy().tolist() == [expected]
    assert found.parents.numpy().tolist() == [[1] * 4]


def test_a_forced_token_is_the_only_candidate():
    probabilities, scores = tf.constant([ROW, ROW]), tf.constant([[-1.0], [-2.0]])
    free = candidates.best(probabilities, scores, 2, emittable=EMITTABLE)
    found = candidates.forced(free, probabilities, scores, tf.constant([2, 0]))
    np.testing.assert_allclose(found.scores[0], [-1 + np.log(0.2), candidates.NEVER], rtol=1e-6)
    assert found.ids[0, 0] == 2
    np.testing.assert_array_equal(found.ids[1], free.ids[1])
    np.testing.assert_array_equal(found.scores[1], free.scores[1])


@pytest.mark.parametrize(
    ("settings", "may_end", "expected"),
    [
        # By probability: 3 (.25), 2 (.2), 4 (.15), 1 (.1); id 0 may not be emitted.
        ({}, True, [0, 1 / 7, 2 / 7, 2.5 / 7, 1.5 / 7]),
        ({}, False, [0, 0, 2 / 6, 2.5 / 6, 1.5 / 6]),
        ({"top_k": 2}, True, [0, 0, 2 / 4.5, 2.5 / 4.5, 0]),
        # .25 / .7 = .36 and with .2 / .7 together .64: both are needed for .5.
        ({"top_p": 0.5}, True, [0, 0, 2 / 4.5, 2.5 / 4.5, 0]),
        # Squares: .01, .04, .0625, .0225, together .135.
        ({"temperature": 0.5}, True, [0, 0.0741, 0.2963, 0.4630, 0.1667]),
    ],
)
def test_tokens_are_drawn_by_their_share_of_the_unit_interval(settings, may_end, expected):
    count = 1000
    uniforms = (np.arange(count) + 0.5) / count  # evenly spread: shares come out exactly
    found = candidates.sampled(
        tf.constant([ROW] * count),
        tf.fill([count, 1], -1.0),
        tf.constant(uniforms, tf.float32),
        **settings,
        emittable=EMITTABLE,
        may_end=tf.constant(may_end),
    )
    ids = found.ids.numpy()[:, 0]
    np.testing.assert_allclose(np.bincount(ids, minlength=5) / count, expected, atol=2e-3)
    # The score is the model's own log-probability, whatever was drawn from.
    np.testing.assert_allclose(found.scores[:, 0], -1 + np.log(np.array(ROW)[ids]), rtol=1e-5)


def test_the_last_token_is_drawn_at_one():
    found = candidates.sampled(
        tf.constant([ROW]),
        tf.zeros([1, 1]),
        tf.constant([1.0]),
        top_k=3,
        emittable=EMITTABLE,
    )
    assert found.ids.numpy().tolist() == [[4]]


def test_exact_logits_of_the_candidates_mend_their_scores():
    # Rounded logits are off by up to 0.06. Those of the six candidates are computed again, those of
    # the last column (0.2 % of the sum) are not.
    exact = np.array([[8, 6, 5, 2], [7.5, 7.45, 3, 0]], np.float32)
    rounded = exact + np.array([[0.06, -0.06, 0.03, 0.06], [-0.06, 0.06, 0.05, -0.06]], np.float32)
    scores = tf.constant([[-1.0, -1.5]])
    # Products with the unit matrix are the exact logits themselves.
    logits = candidates.RoundedLogits(tf.constant(rounded), tf.constant(exact)[None], tf.eye(4))
    found = candidates.best(
        tf.nn.softmax(logits.values),
        scores,
        7,
        emittable=candidates.EmittableIds(3),  # so the seventh does not exist
    )
    mended = candidates.rescored(found, scores, logits)
    totals = (tf.nn.log_softmax(exact) + tf.reshape(scores, [2, 1])).numpy()

    def six(which):
        """Return the six existing candidates' ids, scores, and what the scores should be."""
        values, ids, parents = (x.numpy()[0, :6] for x in which)
        return ids.tolist(), values, totals[parents, ids]

    ids, values, expected = six(found)
    assert np.abs(values - expected).max() > 0.05
    mended_ids, values, expected = six(mended)
    np.testing.assert_allclose(values, expected, atol=5e-4)
    assert (np.diff(expected) < 0).all()  # best first, in another order than before
    assert mended_ids != ids
    assert mended_ids[0] == 0
    assert mended.scores.numpy()[0, 6] < candidates.NEVER / 2
