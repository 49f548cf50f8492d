"""Batches by length: every sentence once, in order again, within the limits."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decode import batching, translator


def _run(lengths, *, batch_size, batch_tokens):
    """Return the results and the parts: (rows, longest length)."""
    parts = []

    def note(rows, length):
        parts.append((rows.tolist(), int(length)))
        return np.int32(0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)], autograph=False)
    def run(lengths):
        def part(rows, length):
            zero = tf.numpy_function(note, [rows, length], tf.int32)
            texts = tf.strings.as_string(rows + zero)
            return {"text": texts, "pair": tf.stack([rows, tf.gather(lengths, rows)], axis=1)}

        empty = {"text": tf.zeros([0], tf.string), "pair": tf.zeros([0, 2], tf.int32)}
        return batching.run_in_batches(
            part, lengths, empty=empty, batch_size=batch_size, batch_tokens=batch_tokens
        )

    return {name: x.numpy() for name, x in run(tf.constant(lengths, tf.int32)).items()}, parts


def test_the_docstrings_example():
    found, parts = _run([2, 0, 9, 3], batch_size=2, batch_tokens=18)
    assert parts == [([2, 3], 9), ([0], 2)]
    assert found["text"].tolist() == [b"0", b"", b"2", b"3"]
    assert found["pair"].tolist() == [[0, 2], [0, 0], [2, 9], [3, 3]]


@pytest.mark.parametrize("size", [0, 1, 7, 300])
def test_parts_are_those_of_the_decoder_and_results_in_order(size):
    lengths = np.random.default_rng(size).integers(1, 40, size)
    found, parts = _run(lengths, batch_size=16, batch_tokens=200)
    assert [rows for rows, _ in parts] == translator.batches(
        lengths.tolist(), batch_size=16, batch_tokens=200
    )
    assert found["pair"].tolist() == [[i, n] for i, n in enumerate(lengths)]


def test_nothing_runs_for_blank_rows():
    found, parts = _run([0, 0], batch_size=4, batch_tokens=10)
    assert parts == []
    assert found["text"].tolist() == [b"", b""]
