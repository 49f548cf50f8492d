"""Batches by tokens: as many rows as the tokens allow, each pair in the smallest shape."""

import pytest
import tensorflow as tf

from t2t_lite.data import shards, token_batches


@pytest.mark.parametrize(
    ("size", "tokens", "rows"), [((20, 25), 4096, 160), ((100, 20), 512, 5), ((600, 20), 512, 1)]
)
def test_rows_hold_both_sides_and_come_in_eights(size, tokens, rows):
    assert token_batches.shape(size, tokens) == (rows, *size)


def test_the_docstrings_example():
    shapes = [token_batches.shape(size, 512) for size in ((8, 8), (24, 32))]
    assert shapes == [(64, 8, 8), (16, 24, 32)]
    records = [shards.example([5] * 5, [7] * 6), shards.example([6] * 21, [8] * 24)]
    blocks = tf.data.Dataset.from_tensors(records)
    short, long = token_batches.batch_by_tokens(blocks, shapes)
    assert short["inputs"].shape == short["targets"].shape == (64, 8)
    assert short["inputs"].numpy()[0].tolist() == [5] * 5 + [0] * 3
    assert (long["inputs"].shape, long["targets"].shape) == ((16, 24), (16, 32))
    assert long["targets"].numpy()[0].tolist() == [8] * 24 + [0] * 8
