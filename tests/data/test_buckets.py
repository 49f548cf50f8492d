"""Few shapes, little padding, and every pair finds one."""

import numpy as np
import pytest

from t2t_lite.data import buckets


def test_two_kinds_of_pairs_get_two_shapes():
    table = np.array([[3, 4, 100], [10, 9, 50]])
    assert buckets.choose(table, max_buckets=4) == [(3, 4), (10, 9)]
    assert buckets.fill(table, [(3, 4), (10, 9)]) == 1.0


def test_one_bucket_is_the_box_of_all():
    table = np.array([[3, 9, 1], [8, 2, 1]])
    assert buckets.choose(table, max_buckets=1) == [(8, 9)]
    # real 3 + 9 + 8 + 2 = 22 of 2 * 17 tokens
    assert buckets.fill(table, [(8, 9)]) == pytest.approx(22 / 34)


@pytest.mark.parametrize("count", [2, 3, 5, 12])
def test_every_pair_fits_and_more_shapes_fill_better(count):
    rng = np.random.default_rng(0)
    sources = rng.integers(1, 60, 300)
    targets = np.clip((sources * rng.normal(1.1, 0.2, 300)).astype(int), 1, 80)
    table = np.stack([sources, targets, rng.integers(1, 9, 300)], axis=1)
    sizes = buckets.choose(table, max_buckets=count, min_fill=1.0)
    assert len(sizes) <= count
    for source, target, _ in table:
        assert any(source <= s and target <= t for s, t in sizes)
    assert buckets.fill(table, sizes) > buckets.fill(table, sizes[-1:])


def test_a_best_pair_of_shapes_is_found():
    rng = np.random.default_rng(1)
    table = np.unique(rng.integers(1, 12, (12, 2)), axis=0)
    table = np.concatenate([table, rng.integers(1, 9, (len(table), 1))], axis=1)
    largest = (int(table[:, 0].max()), int(table[:, 1].max()))
    best = max(buckets.fill(table, [(s, t), largest]) for s in range(1, 12) for t in range(1, 12))
    found = buckets.fill(table, buckets.choose(table, max_buckets=2, min_fill=1.0))
    assert found == pytest.approx(best)


@pytest.mark.parametrize(
    ("size", "tokens", "rows"), [((20, 25), 4096, 160), ((100, 20), 512, 5), ((600, 20), 512, 1)]
)
def test_rows_hold_both_sides_and_come_in_eights(size, tokens, rows):
    assert buckets.batch_size(size, tokens) == rows
