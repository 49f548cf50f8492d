"""Packed rows hold every pair once, whole, and little else."""

import numpy as np

from t2t_lite.data import packing


def test_the_example_of_the_docstring():
    ids, segments, positions = packing.fill_rows(
        np.array([5, 6, 1, 7, 1]), np.array([3, 2]), np.array([0, 0]), 1, 6
    )
    assert ids.tolist() == [[5, 6, 1, 7, 1, 0]]
    assert segments.tolist() == [[1, 1, 1, 2, 2, 0]]
    assert positions.tolist() == [[0, 1, 2, 0, 1, 0]]


def test_rows_are_filled_exactly_where_they_can_be():
    rows = packing.assign(np.array([4, 6, 6, 4]), np.array([5, 5, 5, 5]), (10, 10))
    assert rows.max() == 1
    assert all(np.array([4, 6, 6, 4])[rows == row].sum() == 10 for row in (0, 1))


def test_no_row_overflows_and_few_are_used():
    rng = np.random.default_rng(0)
    sources = rng.integers(2, 40, 2000)
    targets = np.clip((sources * rng.normal(1.1, 0.15, 2000)).astype(int), 1, 64)
    size = packing.sizes(sources.mean(), targets.mean(), 128)
    rows = packing.assign(sources, targets, size)
    for lengths, limit in zip((sources, targets), size):
        assert np.bincount(rows, lengths).max() <= limit
    assert (sources.sum() + targets.sum()) / ((rows.max() + 1) * sum(size)) > 0.97


def test_unpacking_returns_every_pair():
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 9, 50)
    ids = rng.integers(3, 99, lengths.sum())
    rows = packing.assign(lengths, lengths, (16, 16))
    packed, segments, positions = packing.fill_rows(ids, lengths, rows, rows.max() + 1, 16)
    assert (packed[segments == 0] == 0).all()
    unpacked = sorted(
        tuple(packed[row][segments[row] == segment])
        for row in range(len(packed))
        for segment in range(1, segments[row].max() + 1)
    )
    assert unpacked == sorted(map(tuple, np.split(ids, np.cumsum(lengths)[:-1])))
    for row in range(len(packed)):
        for segment in range(1, segments[row].max() + 1):
            inside = positions[row][segments[row] == segment]
            assert inside.tolist() == list(range(len(inside)))
