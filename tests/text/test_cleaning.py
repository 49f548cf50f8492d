"""Why pairs are dropped, by small examples."""

import pytest

from t2t_lite.text import cleaning


@pytest.mark.parametrize(
    ("rules", "pair", "lengths", "reason"),
    [
        ({}, ("a", "b"), (1, 99), ""),
        ({}, ("", "b"), (0, 1), "empty"),
        ({}, ("a", " \t"), (1, 2), "empty"),
        ({"drop_empty": False}, ("", "b"), (0, 1), ""),
        ({"max_length": 4}, ("a", "b"), (1, 4), ""),
        ({"max_length": 4}, ("a", "b"), (5, 1), "too_long"),
        ({"max_length_ratio": 2}, ("a", "b"), (4, 2), ""),
        ({"max_length_ratio": 2}, ("a", "b"), (2, 5), "length_ratio"),
    ],
)
def test_reasons(rules, pair, lengths, reason):
    assert cleaning.Cleaning(**rules).reason(*pair, *lengths) == reason
