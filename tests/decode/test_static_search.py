"""The search of static size finds what the growing one finds."""

import dataclasses
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import config
from t2t_lite.decode import beam_search, cached_decoder, candidates, static_decoder
from t2t_lite.decode import options as decode_options
from t2t_lite.model import next_word

TINY = config.HParams(
    d_model=16, d_ff=24, num_heads=2, d_k=8, d_v=8, num_encoder_layers=1, num_decoder_layers=2
)
VOCABULARY = 50
INPUTS = np.array([[7, 9, 30, 1, 0, 0, 0], [5, 6, 7, 8, 9, 40, 1], [11, 1, 0, 0, 0, 0, 0]])
PREFIX = np.array([[7, 8], [9, 0], [0, 0]])
MAX_LENGTHS = np.array([12, 3, 9])


class _Words:
    def numbers(self, inputs):
        return tf.broadcast_to(tf.range(tf.shape(inputs)[1]) // 2, tf.shape(inputs))

    def passes(self, ids):
        return (ids > 0) & (ids % 3 == 0)


def _model(**changes: Any):
    keras.utils.set_random_seed(3)
    parts = config.ImportedModel(**changes.pop("imported", {}))
    hparams = dataclasses.replace(TINY, **changes, imported=parts)
    model = next_word.create(hparams, VOCABULARY, words=_Words())
    for variable in model.named_variables().values():
        variable.assign_add(tf.cast(tf.random.normal(variable.shape, stddev=0.5), variable.dtype))
    return model


def _both(model, rows, options, prefix=None, room=12):
    """Return the hypotheses of the two searches, and whether the room was enough."""
    emittable = candidates.EmittableIds(VOCABULARY, forbidden=(0, 2))
    given = {"emittable": emittable, "max_lengths": tf.constant(MAX_LENGTHS[rows], tf.int32)}
    if prefix is not None:
        given["prefix_ids"] = tf.constant(prefix[rows], tf.int32)
    inputs = tf.constant(INPUTS[rows], tf.int32)
    beams = beam_search.num_beams(options)

    @tf.function
    def growing():
        decoder = cached_decoder.CachedDecoder(model, beams)
        return beam_search.search(decoder, decoder.encode(inputs), options, **given)

    @tf.function(jit_compile=True)
    def static():
        decoder = static_decoder.StaticDecoder(model, beams)
        state = decoder.encode(inputs)
        return beam_search.search_in_room(decoder, state, options, room=room, **given)

    return growing(), *static()


def _assert_equal(found, expected):
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    np.testing.assert_array_equal(found.finished, expected.finished)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)
    width = expected.ids.shape[2]
    np.testing.assert_array_equal(found.ids[:, :, :width], expected.ids)
    assert not found.ids.numpy()[:, :, width:].any()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"beam_size": 1},
        {"alpha": 0.0, "return_beams": 4},
        {"alpha": -0.5, "strict_ends": True},
        {"alpha": 1.0, "length_penalty": "power", "early_stop": True, "return_beams": 3},
        {"min_length": 5, "return_beams": 2},
        {"alpha": 1.0, "length_penalty": "power", "early_stop": "heuristic", "return_beams": 2},
        {"no_repeat_ngram": 1, "return_beams": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [[0], [1], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("prefix", [None, PREFIX], ids=["free", "prefix"])
def test_equals_the_growing_search(settings, rows, prefix):
    options = decode_options.DecodeOptions(**{"beam_size": 4, "alpha": 0.6, **settings})
    expected, found, is_done = _both(_model(), rows, options, prefix)
    assert is_done.numpy().all()
    _assert_equal(found, expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"pre_norm": True},
        {"d_k": 4, "d_v": 6, "num_heads": 3},
        {"position_encoding": "learned", "max_length": 12},
        {"imported": {"attention_bias": True, "logits_bias": True, "activation": "swish"}},
        {"imported": {"first_position": 2, "start_vector": True, "source_eos": False}},
        {"attention_function": "additive"},
        {"attention_function": "dot"},
        {"relative_bias": 2},
        {"next_word": 2},
        {"attention_window": 2},
    ],
    ids=str,
)
def test_variants(changes):
    options = decode_options.DecodeOptions(beam_size=3, return_beams=3)
    expected, found, _ = _both(_model(**changes), [0], options)
    _assert_equal(found, expected)


def test_a_search_cut_off_by_its_room_says_so():
    options = decode_options.DecodeOptions(beam_size=4, min_length=8)
    _, found, is_done = _both(_model(), [0, 1], options, room=5)
    # The second sentence met its own limit of 3 tokens.
    np.testing.assert_array_equal(is_done, [False, True])
    assert not found.finished.numpy().any()
