import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decode import candidates, top_k

VOCABULARY = top_k.Vocabulary(5, forbidden=(0,), blockable=(1,))
ROW = [0.3, 0.1, 0.2, 0.25, 0.15]  # of ids 0 to 4


def test_the_best_extensions_of_all_beams():
    found = candidates.best(
        tf.constant([ROW, [0.2, 0.2, 0.1, 0.05, 0.45]]),
        tf.constant([[-1.0, -1.5]]),
        num_candidates=4,
        vocabulary=VOCABULARY,
    )
    # -1 + log .25 = -2.386, -1 + log .2 = -2.609, -1 + log .15 = -2.897, -1.5 + log .45 = -2.299
    assert found.ids.numpy().tolist() == [[4, 3, 2, 4]]
    assert found.parents.numpy().tolist() == [[1, 0, 0, 0]]
    np.testing.assert_allclose(found.scores, [[-2.299, -2.386, -2.609, -2.897]], atol=1e-3)


def test_a_forced_token_is_the_only_candidate():
    probabilities, scores = tf.constant([ROW, ROW]), tf.constant([[-1.0], [-2.0]])
    free = candidates.best(probabilities, scores, num_candidates=2, vocabulary=VOCABULARY)
    found = candidates.forced(free, probabilities, scores, tf.constant([2, 0]))
    np.testing.assert_allclose(found.scores[0], [-1 + np.log(0.2), candidates.NEVER], rtol=1e-6)
    assert found.ids[0, 0] == 2
    np.testing.assert_array_equal(found.ids[1], free.ids[1])
    np.testing.assert_array_equal(found.scores[1], free.scores[1])


@pytest.mark.parametrize(
    ("sampling", "blocked", "expected"),
    [
        # By probability: 3 (.25), 2 (.2), 4 (.15), 1 (.1); id 0 may not be emitted.
        (candidates.Sampling(), False, [0, 1 / 7, 2 / 7, 2.5 / 7, 1.5 / 7]),
        (candidates.Sampling(), True, [0, 0, 2 / 6, 2.5 / 6, 1.5 / 6]),
        (candidates.Sampling(top_k=2), False, [0, 0, 2 / 4.5, 2.5 / 4.5, 0]),
        # .25 / .7 = .36 and with .2 / .7 together .64: both are needed for .5.
        (candidates.Sampling(top_p=0.5), False, [0, 0, 2 / 4.5, 2.5 / 4.5, 0]),
        # Squares: .01, .04, .0625, .0225, together .135.
        (candidates.Sampling(temperature=0.5), False, [0, 0.0741, 0.2963, 0.4630, 0.1667]),
    ],
)
def test_tokens_are_drawn_by_their_share_of_the_unit_interval(sampling, blocked, expected):
    count = 1000
    uniforms = (np.arange(count) + 0.5) / count  # evenly spread: shares come out exactly
    found = candidates.sampled(
        tf.constant([ROW] * count),
        tf.fill([count, 1], -1.0),
        tf.constant(uniforms, tf.float32),
        sampling=sampling,
        vocabulary=VOCABULARY,
        blocked=tf.constant(blocked),
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
        sampling=candidates.Sampling(top_k=3),
        vocabulary=VOCABULARY,
    )
    assert found.ids.numpy().tolist() == [[4]]


def test_exact_logits_of_the_candidates_mend_their_scores():
    # Rounded logits are off by up to 0.06. Those of the six candidates are computed again, those of
    # the last column (0.2 % of the sum) are not.
    exact = np.array([[8, 6, 5, 2], [7.5, 7.45, 3, 0]], np.float32)
    rounded = exact + np.array([[0.06, -0.06, 0.03, 0.06], [-0.06, 0.06, 0.05, -0.06]], np.float32)
    scores = tf.constant([[-1.0, -1.5]])
    logits = candidates.RoundedLogits(
        tf.constant(rounded), lambda parents, ids: tf.gather_nd(exact, tf.stack([parents, ids], 2))
    )
    found = candidates.best(
        tf.nn.softmax(logits.values),
        scores,
        num_candidates=7,
        vocabulary=top_k.Vocabulary(3),  # so the seventh does not exist
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
