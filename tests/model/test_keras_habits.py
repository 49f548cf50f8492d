"""The model and its layers do what users of Keras expect of any model."""

import dataclasses
import subprocess
import sys

import draws
import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import config
from t2t_lite.model import (
    attention,
    compatibility,
    dropout,
    embedding,
    feed_forward,
    imported,
    normalization,
    position,
    relative,
    restricted,
    transformer,
)

TINY = dataclasses.replace(tiny_run.HPARAMS, dropout=0.1)
SOURCE = np.array([[5, 6, 7, 1, 0, 0], [8, 9, 3, 4, 2, 1]])
TARGET = np.array([[9, 8, 1, 0, 0], [7, 6, 5, 4, 1]])
SIZES = {"d_k": 4, "d_v": 3}


@pytest.fixture
def model():
    keras.utils.set_random_seed(3)
    return transformer.Transformer(TINY, 50)


def test_training_drops_and_the_random_seed_repeats_it(model):
    def twice():
        keras.utils.set_random_seed(5)
        model = transformer.Transformer(TINY, 50)
        return [model(SOURCE, TARGET, training=True).numpy() for _ in range(2)]

    first, second = twice()
    assert np.abs(first - second).max() > 1e-2
    for before, after in zip([first, second], twice()):
        np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(model(SOURCE, TARGET), model(SOURCE, TARGET, training=False))


def test_the_sides_come_apart_as_a_pair_or_by_name(model):
    expected = model(SOURCE, TARGET)
    for given in ((SOURCE, TARGET), [SOURCE, TARGET], {"inputs": SOURCE, "targets": TARGET}):
        np.testing.assert_array_equal(model(given), expected)
    for given in (SOURCE, {"source": SOURCE, "target": TARGET}):
        with pytest.raises(ValueError, match=r"called with source and target ids"):
            model(given)


def test_the_model_shifts_the_targets_itself(model):
    """The same ids are targets and labels: what is predicted at a position is not seen there."""
    changed = TARGET.copy()
    changed[1, 3:] = 20
    np.testing.assert_allclose(
        model(SOURCE, changed)[1, :4], model(SOURCE, TARGET)[1, :4], atol=1e-6
    )


LAYERS = [
    attention.MultiHeadAttention(8, 2, cross=True, qkv_gain=0.5, dropout=0.2, **SIZES),
    compatibility.AdditiveAttention(8, 2, causal=True, **SIZES),
    relative.RelativeAttention(8, 2, first=-1, last=2, **SIZES),
    restricted.RestrictedAttention(8, 2, window=2, **SIZES),
    imported.BiasedAttention(8, 2, **SIZES),
    feed_forward.FeedForward(8, 12, activation="swish", dropout=0.1),
    normalization.LayerNormalization(8, epsilon=1e-3),
    dropout.Dropout(0.3),
    transformer.EncoderLayer(dataclasses.replace(TINY, d_model=8)),
    transformer.DecoderLayer(dataclasses.replace(TINY, d_model=8, pre_norm=True)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_a_layer_is_made_again_from_its_config_and_in_a_saved_model(layer, tmp_path):
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    x = keras.Input([None, 8])
    y = again(x, x) if isinstance(layer, transformer.DecoderLayer) else again(x)
    functional = keras.Model(x, y)
    functional.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    values = draws.normal(2, 5, 8)
    np.testing.assert_array_equal(loaded(values), functional(values))
    keras.models.clone_model(functional)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pre_norm": True},
        {"imported": config.ImportedModel(logits_bias=True, first_position=1)},
    ],
    ids=str,
)
def test_a_model_is_saved_cloned_and_exported(changes, tmp_path, capfd):
    model = transformer.Transformer(dataclasses.replace(TINY, **changes), 50)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    model.save(tmp_path / "model.keras")
    model.export(tmp_path / "export")
    exported = tf.saved_model.load(tmp_path / "export")
    expected = model(SOURCE, TARGET)
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for again in (clone, loaded):
        np.testing.assert_array_equal(again(SOURCE, TARGET), expected)
    ids = tf.constant(SOURCE, tf.int32), tf.constant(TARGET, tf.int32)
    np.testing.assert_allclose(exported.serve(ids), expected, atol=1e-5)


def test_a_saved_model_is_loaded_in_a_fresh_process(model, tmp_path):
    model.save(tmp_path / "model.keras")
    np.save(tmp_path / "logits.npy", model(SOURCE, TARGET))
    script = f"""
import keras, numpy
from t2t_lite import Transformer
model = keras.models.load_model("model.keras")
logits = model((numpy.array({SOURCE.tolist()}), numpy.array({TARGET.tolist()})))
numpy.testing.assert_array_equal(logits, numpy.load("logits.npy"))
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


def test_the_summary_has_shapes(model):
    lines = []
    model.summary(print_fn=lines.append)
    text = "\n".join(lines)
    assert "(None, None, 16)" in text
    assert "?" not in text


def test_attention_looks_where_it_is_told():
    """At a memory, if it is given one, and not ahead, if it is causal; whatever `cross` is."""
    x, memory = draws.normal(2, 5, 8), draws.normal(2, 3, 8)
    own, cross = (attention.MultiHeadAttention(8, 2, cross=cross, **SIZES) for cross in (0, 1))
    own.build()
    cross.build()
    q, kv = np.split(own.qkv.numpy(), [8], axis=1)
    for ours, theirs in ((cross.q, q), (cross.kv, kv), (cross.output_kernel, own.output_kernel)):
        ours.assign(theirs)
    np.testing.assert_allclose(own(x, memory), cross(x, memory), atol=1e-6)
    np.testing.assert_allclose(own(x), cross(x), atol=1e-6)
    causal = attention.MultiHeadAttention(8, 2, causal=True, **SIZES)
    causal.build()
    causal.set_weights(own.get_weights())
    mask = attention.causal_mask(5)
    np.testing.assert_allclose(causal(x), own(x, attention_mask=mask), atol=1e-6)
    np.testing.assert_allclose(causal(x, x[:, :3]), own(x, x[:, :3], mask[..., :3]), atol=1e-6)
    padding = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    np.testing.assert_allclose(
        causal(x, attention_mask=tf.constant(padding)),
        own(x, attention_mask=mask & padding[:, None]),
        atol=1e-6,
    )


def test_masks_are_boolean_of_two_to_four_axes():
    layer, x = attention.MultiHeadAttention(8, 2, **SIZES), draws.normal(2, 3, 8)
    mask = np.array([[True, True, False], [True, False, False]])
    expected = layer(x, attention_mask=mask)
    for same in (np.tile(mask[:, None], [1, 3, 1]), np.tile(mask[:, None, None], [1, 2, 3, 1])):
        np.testing.assert_allclose(layer(x, attention_mask=same), expected, atol=1e-6)
    changed = x + tf.where(mask[..., None], 0.0, 9.0)  # of what is hidden
    np.testing.assert_allclose(
        layer(changed, attention_mask=mask)[0, :2], expected[0, :2], atol=1e-6
    )
    for wrong in (mask.astype(np.float32), mask.astype(np.int32), mask[0]):
        with pytest.raises(ValueError, match="mask is boolean"):
            layer(x, attention_mask=wrong)


@pytest.mark.parametrize("automatic", [False, True])
def test_a_functional_model_hides_padding(automatic):
    ids = keras.Input([None], dtype="int32")
    x = embedding.SharedEmbedding(50, 16)(ids)
    if not automatic:
        x = x + position.PositionalEncoding(16)(keras.ops.arange(6))
    mask = {} if automatic else {"mask": attention.padding_mask(ids)}
    model = keras.Model(ids, transformer.EncoderLayer(TINY)(x, **mask))
    source = SOURCE.copy()
    before = model(source)[0, :4]
    longer = np.pad(source, [(0, 0), (0, 3)])[:, :6]
    np.testing.assert_allclose(model(longer)[0, :4], before, atol=1e-6)
    assert model.layers[-1].get_config()["hparams"]["d_model"] == 16
    # Without the mask, padding is seen.
    layer = model.layers[-1]
    hidden = layer(model.layers[1](source), tf.ones([2, 6], tf.bool))
    assert np.abs(hidden[0, :4] - layer(model.layers[1](source), SOURCE > 0)[0, :4]).max() > 1e-3
