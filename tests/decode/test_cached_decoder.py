"""The cached decoder gives what the whole decoder gives, one position at a time."""

import dataclasses
from typing import Any
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import config
from t2t_lite.decode import cached_decoder, candidates, matmuls
from t2t_lite.model import next_word

TINY = config.HParams(
    d_model=16, d_ff=24, num_heads=2, d_k=8, d_v=8, num_encoder_layers=2, num_decoder_layers=2
)
VOCABULARY = 53  # 56 rows, 80 columns


class _Words:
    """Two input tokens are a word, and every third target token stands for one."""

    def numbers(self, inputs):
        return tf.broadcast_to(tf.range(tf.shape(inputs)[1]) // 2, tf.shape(inputs))

    def passes(self, ids):
        return (ids > 0) & (ids % 3 == 0)


def _model(dtype=None, **changes: Any):
    keras.utils.set_random_seed(3)
    parts = config.ImportedModel(**changes.pop("imported", {}))
    hparams = dataclasses.replace(TINY, **changes, imported=parts)
    model = next_word.create(hparams, VOCABULARY, words=_Words(), dtype=dtype)
    for variable in model.named_variables().values():  # no bias is zero, no scale is one
        variable.assign_add(tf.cast(tf.random.normal(variable.shape, stddev=0.3), variable.dtype))
    return model


def _step_through(model, inputs, *, num_beams, num_steps, seed=0, dtype=None):
    """Decode random tokens with random changes of beams.

    Returns each step's logits [B, N, W] (of RoundedLogits the exact ones of all rows of the
    embedding) and the histories [B, N, step] they belong to.
    """
    rng = np.random.default_rng(seed)
    decoder = cached_decoder.CachedDecoder(model, num_beams, dtype)
    state = decoder.encode(inputs)
    batch_size, room = inputs.shape[0], 4
    histories = np.zeros([batch_size, num_beams, 0], np.int32)
    ancestry = np.full([batch_size, num_beams, 0], -1, np.int32)
    ids = np.zeros([batch_size, num_beams], np.int32)
    rows = np.arange(batch_size)[:, None]
    for position in range(num_steps):
        if position % room == 0:
            state = decoder.grow(state, tf.constant(ancestry), room)
            ancestry = np.pad(ancestry, [(0, 0), (0, 0), (0, room)], constant_values=-1)
        ancestry[:, :, position] = np.arange(num_beams)
        logits, state = decoder.step(
            tf.constant(ids), tf.constant(position), tf.constant(ancestry), state
        )
        if isinstance(logits, candidates.RoundedLogits):
            logits = _exact(logits, batch_size, num_beams, model.embedding.num_rows)
        yield tf.reshape(logits, [batch_size, num_beams, -1]).numpy(), histories
        parents = rng.integers(num_beams, size=[batch_size, num_beams])
        ids = rng.integers(3, VOCABULARY, size=[batch_size, num_beams]).astype(np.int32)
        ancestry = ancestry[rows, parents]
        histories = np.concatenate([histories[rows, parents], ids[:, :, None]], axis=2)


def _exact(logits, batch_size, num_beams, num_rows):
    """Return the exact logits of every extension, after a look at the rounded ones."""
    shape = [batch_size, num_beams * num_rows]
    places = tf.broadcast_to(tf.range(shape[1]), shape)
    exact = tf.reshape(logits.exact(places // num_rows, places % num_rows), [-1, num_rows])
    rounded = tf.cast(logits.values[:, :num_rows], tf.float32)
    # bfloat16 has 8 binary digits.
    assert 0 < np.abs(rounded - exact).max() < 0.01 * np.abs(exact).max()
    return exact


INPUTS = tf.constant([[7, 9, 30, 1, 0, 0], [5, 6, 7, 8, 9, 1]])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pre_norm": True},
        {"d_k": 4, "d_v": 6, "num_heads": 3},
        {"position_encoding": "learned", "max_length": 5},
        {"embeddings": "separate", "imported": {"source_vector": True}, "vocab_multiple": 1},
        {"imported": {"attention_bias": True, "logits_bias": True, "activation": "swish"}},
        {"imported": {"first_position": 2, "start_vector": True, "source_eos": False}},
        {"imported": {"norm_epsilon": 1e-3}},
        {"attention_function": "dot"},
        {"attention_function": "additive"},
        {"relative_bias": 2},
        {"next_word": 1},
        {"relative_bias": 1, "next_word": 2, "pre_norm": True},
        {"attention_window": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("batch_size", [2, 1])  # one sentence's memory is folded
def test_cached_steps_equal_the_full_pass(changes, batch_size):
    model, inputs = _model(**changes), INPUTS[:batch_size]
    num_rows = model.embedding.num_rows
    for logits, histories in _step_through(model, inputs, num_beams=3, num_steps=7):
        for n in range(3):
            targets = np.pad(histories[:, n], [(0, 0), (0, 1)])  # the last one is what is predicted
            expected = model(inputs, tf.constant(targets))[:, -1]
            # Sums of 16 to 24 products in another order: a few units in the 7th digit.
            np.testing.assert_allclose(logits[:, n, :num_rows], expected, atol=2e-5)
            assert (logits[:, n, num_rows:] < -1e8).all()


@pytest.mark.parametrize("batch_size", [2, 1])
@pytest.mark.parametrize("has_biases", [False, True])
@pytest.mark.parametrize(("weights", "dtype"), [("bfloat16", None), ("float32", "bfloat16")])
def test_bfloat16_steps_follow_the_full_pass(weights, dtype, has_biases, batch_size):
    model = _model(weights, imported={"attention_bias": has_biases, "logits_bias": has_biases})
    inputs = INPUTS[:batch_size]
    steps = _step_through(model, inputs, num_beams=2, num_steps=5, dtype=dtype)
    for logits, histories in steps:
        for n in range(2):
            targets = np.pad(histories[:, n], [(0, 0), (0, 1)])
            expected = model(inputs, tf.constant(targets))[:, -1].numpy()
            # Logits here are up to about 40.
            assert np.abs(logits[:, n] - expected).max() < 0.02 * np.abs(expected).max()


@pytest.mark.usefixtures("integers")
def test_integers_of_the_encoder_follow_the_model(monkeypatch):
    monkeypatch.setattr(matmuls, "_LARGE", 16)
    model = _model()
    found = cached_decoder.CachedDecoder(model, 2, "int8").encode(INPUTS)
    exact = cached_decoder.CachedDecoder(model, 2).encode(INPUTS)
    for memory, expected in zip(found.memories, exact.memories):
        for x, y in zip(memory, expected):
            # Each product rounds both factors by about 1 %, and there are nine in a row.
            assert 0.001 < np.abs(x - y).mean() / np.abs(y).mean() < 0.1


@pytest.mark.usefixtures("integers")
def test_a_large_bias_of_the_logits_does_not_coarsen_integers(monkeypatch):
    """Marian's models have a bias of -100 where an output must never go."""
    monkeypatch.setattr(matmuls, "_LARGE", 16)
    model = _model(imported={"logits_bias": True})
    bias = np.full(model.embedding.num_rows, 0.5, np.float32)
    bias[0] = -100
    model.logits.bias.assign(bias)
    states = tf.reshape(model.decode(INPUTS, model.encode(INPUTS)), [-1, model.hparams.d_model])
    expected = model.logits(states).numpy()
    logits = cached_decoder.CachedDecoder(model, 2, "int8").softmax(states)
    error = np.abs(logits[:, : expected.shape[1]] - expected)
    assert 0 < error.max() < 0.02 * np.ptp(expected[:, 1:])


def test_the_cache_of_restricted_attention_stops_growing():
    """It holds the 3 times of the window and the 4 newest, of 2 beams each."""
    model, sizes = _model(attention_window=3), []
    grow = cached_decoder.CachedDecoder.grow

    def grow_and_tell(decoder, *args):
        state = grow(decoder, *args)
        sizes.append((state.slots.shape[1], state.caches[0].keys.shape[2]))
        return state

    with mock.patch.object(cached_decoder.CachedDecoder, "grow", grow_and_tell):
        for _ in _step_through(model, INPUTS, num_beams=2, num_steps=60):
            pass
    assert len(sizes) == 15
    assert max(sizes) <= ((3 + 4) * 2, (3 + 4) * 2)


def test_caches_leave_behind_what_no_beam_went_through():
    model = _model()
    decoder = cached_decoder.CachedDecoder(model, 2)
    ancestry = tf.constant([[[0, 0, -1], [0, 1, -1]]])
    ids = tf.constant([[5, 6]])
    state = decoder.grow(decoder.encode(INPUTS[:1]), ancestry[:, :, :0], 3)
    _, state = decoder.step(ids, tf.constant(2), ancestry, state)
    assert state.slots.numpy().tolist() == [[0, 1, 2, 3, 4, 5]]
    # Slots 0, 2 and 3 are somebody's; 1 makes the number even.
    grown = decoder.grow(state, ancestry, 2)
    assert grown.slots.numpy().tolist() == [[0, 2, 3, 1, 6, 7, 8, 9]]
    for old, new in zip(tf.nest.flatten(state.caches), tf.nest.flatten(grown.caches)):
        np.testing.assert_array_equal(new[:, :, :4], tf.gather(old, [0, 2, 3, 1], axis=2))
