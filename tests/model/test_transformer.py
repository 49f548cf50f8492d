"""The model: parameter counts, identities, every kind of position and norm."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.model import transformer

TINY = dataclasses.replace(
    tiny_run.HPARAMS, num_encoder_layers=2, num_decoder_layers=2, max_length=20
)


def _model(vocab_size=50, **changes):
    keras.utils.set_random_seed(3)
    return transformer.Transformer(dataclasses.replace(TINY, **changes), vocab_size)


INPUTS = tf.constant([[5, 6, 7, 1, 0, 0], [8, 9, 3, 4, 2, 1]])
TARGETS = tf.constant([[9, 8, 1, 0, 0], [7, 6, 5, 4, 1]])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pre_norm": True},
        {"position_encoding": "learned"},
        {"position_encoding": "sinusoid_t2t"},
        {"d_k": 4},
        {"d_v": 4},
    ],
    ids=str,
)
def test_padding_changes_nothing(changes):
    model = _model(**changes)
    padded = model(INPUTS[:1], TARGETS[:1])
    alone = model(INPUTS[:1, :4], TARGETS[:1, :3])
    np.testing.assert_allclose(padded[:, :3], alone, atol=1e-5)


@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_target_sees_only_what_comes_before(pre_norm):
    model = _model(pre_norm=pre_norm)
    changed = tf.tensor_scatter_nd_update(TARGETS, [[1, 3]], [11])
    before, after = model(INPUTS, TARGETS)[1], model(INPUTS, changed)[1]
    # The token at position 3 is an input of position 4, not of its own prediction.
    np.testing.assert_allclose(before[:4], after[:4], atol=1e-6)
    assert np.abs(before[4] - after[4]).max() > 1e-3


def test_rows_of_the_embedding_are_a_multiple_of_eight():
    assert _model(vocab_size=50).embedding.matrix.shape == (56, 16)
    assert _model(vocab_size=50, vocab_multiple=1).embedding.num_rows == 50


def test_separate_embeddings_that_are_equal_compute_what_a_shared_one_does():
    shared, separate = _model(), _model(embeddings="separate")
    values = shared.named_variables()
    for name, variable in separate.named_variables().items():
        same = "embedding/matrix" if name in ("source_embedding/matrix", "softmax/matrix") else name
        variable.assign(values[same])
    np.testing.assert_array_equal(separate(INPUTS, TARGETS), shared(INPUTS, TARGETS))
    # Each is the one that its name says.
    for name, changed in (
        ("embedding", lambda: separate.decode(TARGETS, separate.encode(INPUTS))),
        ("source_embedding", lambda: separate.encode(INPUTS).states),
        ("softmax", lambda: separate(INPUTS, TARGETS)),
    ):
        before = changed().numpy()
        variable = separate.named_variables()[f"{name}/matrix"]
        variable.assign(variable * 2)
        assert np.abs(changed() - before).max() > 1e-3, name


def test_dropout_depends_on_the_seed_alone():
    model = _model(dropout=0.3, attention_dropout=0.2, relu_dropout=0.2)

    def outputs(seed):
        model.seed_generator.state.assign(seed)
        return model(INPUTS, TARGETS, training=True).numpy()

    first, again, *others = map(outputs, ([1, 2], [1, 2], [1, 3], [2, 2]))
    np.testing.assert_array_equal(first, again)
    assert all(np.abs(first - other).max() > 1e-2 for other in others)


def test_bfloat16_stays_near_float32():
    model = _model()
    rounded = transformer.Transformer(TINY, 50, dtype="mixed_bfloat16")
    for ours, theirs in zip(rounded.named_variables().values(), model.named_variables().values()):
        ours.assign(theirs)
    assert rounded.embedding.matrix.dtype == "float32"
    # bfloat16 has 8 bits: 2^-8 of logits that are about 1, over a dozen products.
    np.testing.assert_allclose(rounded(INPUTS, TARGETS), model(INPUTS, TARGETS), atol=0.1)


def test_initial_logits_have_unit_scale():
    # N(0, d_model^-0.5) without the sqrt(d_model) scaling at the softmax: logits start near 1.
    model = transformer.Transformer(dataclasses.replace(TINY, d_model=256), 1000)
    assert 0.5 < np.std(model(INPUTS, TARGETS)) < 2
