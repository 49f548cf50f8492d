"""The histogram of lengths stays small and covers every pair."""

import numpy as np

from t2t_lite.data import lengths


def test_rounded_lengths_cover_and_are_few():
    exact = np.arange(1, 2000)
    rounded = lengths.round_up(exact)
    assert (rounded >= exact).all()
    assert (rounded[:128] == exact[:128]).all()
    assert (rounded / exact).max() < 1.02
    assert (lengths.round_up(rounded) == rounded).all()


def test_the_example_of_the_docstring():
    table = lengths.histogram(np.array([5, 5, 129]), np.array([6, 6, 120]))
    assert table == [[5, 6, 2], [130, 120, 1]]
    assert lengths.is_too_long(np.array(table), 129).tolist() == [False, False]
    assert lengths.is_too_long(np.array(table), 128).tolist() == [False, True]
