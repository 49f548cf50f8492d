"""The weights shown are those computed: by tensor2tensor and by the search."""

import base64
import html
import json
import re

import golden_numbers
import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import cached_decoder, options, translator
from t2t_lite.explore import attending
from t2t_lite.model import attention

TEXT = tiny_run.SENTENCES[2]


@pytest.fixture(scope="module")
def model():
    decode_options = options.for_model(tiny_run.HPARAMS)
    return translator.Translator(tiny_run.model(), tiny_run.task(), decode_options)


@pytest.mark.parametrize("name", ["t2t_paper", "t2t_prenorm"])
def test_weights_are_tensor2tensors(name):
    golden = golden_numbers.load(name)
    inputs, targets = golden.arrays["inputs"], golden.arrays["targets"]
    found = attending.weights(golden.model, tf.constant(inputs), tf.constant(targets))
    real = inputs != 0
    for layer in range(2):
        theirs = golden.arrays[f"attention/encoder/layer_{layer}/self_attention"]
        ours = found.encoder[:, layer].numpy()
        for row in range(len(inputs)):  # the original's queries at padding differ
            np.testing.assert_allclose(
                ours[row][:, real[row]], theirs[row][:, real[row]], atol=2e-5
            )
        for kind, their_kind in (("decoder", "self_attention"), ("cross", "encdec_attention")):
            theirs = golden.arrays[f"attention/decoder/layer_{layer}/{their_kind}"]
            np.testing.assert_allclose(getattr(found, kind)[:, layer].numpy(), theirs, atol=2e-5)


def test_the_best_outputs_weights_are_those_of_the_search(model):
    """What the cached decoder attends to along the best hypothesis, slot by slot."""
    found = attending.attention(model, TEXT)
    (translation,) = model.translate([TEXT])
    decoder = cached_decoder.CachedDecoder(model.models[0], 1)
    num_steps = len(translation.ids)
    # Two of the same sentence, since the cross-attention of one alone is folded.
    state = decoder.encode(tf.constant([translation.source_ids] * 2))
    ancestry = np.full([2, 1, num_steps], -1, np.int32)
    state = decoder.grow(state, tf.constant(ancestry[:, :, :0]), num_steps)
    for step, token in enumerate([0, *translation.ids[:-1]]):
        ancestry[:, 0, step] = 0
        with attention.recording() as seen:
            _, state = decoder.step(
                tf.constant([[token]] * 2), tf.constant(step), tf.constant(ancestry), state
            )
        cross = seen["decoder_0/cross_attention"][0, :, 0]
        np.testing.assert_allclose(found.cross[0, :, step], cross, atol=1e-5)
        own = seen["decoder_0/self_attention"][0, :, 0]
        np.testing.assert_allclose(found.decoder[0, :, step], own, atol=1e-5)


def test_names_fit_the_arrays(model):
    found = attending.attention(model, TEXT, "a dog")
    assert "".join(found.target_tokens).replace("▁", " ").endswith("a dog⟨end⟩")
    assert found.source_tokens[-1] == "⟨end⟩"
    num_sources, num_targets = len(found.source_tokens), len(found.target_tokens)
    assert found.encoder.shape == (1, 2, num_sources, num_sources)
    assert found.decoder.shape == (1, 2, num_targets, num_targets)
    assert found.cross.shape == (1, 2, num_targets, num_sources)
    for kind in attending.KINDS:
        np.testing.assert_allclose(getattr(found, kind).sum(axis=-1), 1, atol=1e-5)
    assert np.triu(found.decoder[0, 0], 1).max() == 0  # nobody looks ahead
    with pytest.raises(errors.UserError, match="blank"):
        attending.attention(model, "  ")


def test_a_notebooks_figure_has_the_data_that_it_asks_for(model):
    figure = attending.attention(model, TEXT)
    page = html.unescape(figure._repr_html_())
    (data,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page)
    content = json.loads(data)
    (saved,) = content["texts"]
    # The address names no text, so that the page takes the only one: its translation, then the
    # weights of that translation's text.
    assert saved["translation"]["text"] == saved["text"] == ""
    assert saved["translation"]["target"] == list(figure.target_tokens)
    for kind in attending.KINDS:
        (layer,) = map(base64.b64decode, saved["attention"][kind])
        weights = np.frombuffer(layer, "<u2") / 65535
        np.testing.assert_allclose(weights, getattr(figure, kind)[0].ravel(), atol=1e-5)
