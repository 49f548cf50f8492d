"""One result, whatever the devices: replicas, micro-batches, shapes."""

import collections
import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import config, registry
from t2t_lite.model import transformer
from t2t_lite.train import cost, devices, optimizer, step

TINY = config.HParams(
    d_model=16,
    d_ff=32,
    num_heads=2,
    d_k=8,
    d_v=8,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0.0,
)


def _batches(count=20):
    """Batches of two shapes whose halves hold very different numbers of tokens."""
    random = np.random.default_rng(1)
    for index in range(count):
        rows = 6 + index % 2
        inputs = random.integers(2, 40, (rows, 6))
        targets = random.integers(2, 40, (rows, 7))
        targets[1, 2:] = 0
        targets[2] = inputs[2] = 0
        yield {"inputs": tf.constant(inputs, tf.int32), "targets": tf.constant(targets, tf.int32)}


def _train_step(hparams, *, strategy="one_device", xla=False, vocab_size=40):
    chosen = devices.strategy(strategy)
    keras.utils.set_random_seed(1)
    with chosen.scope():
        model = transformer.Transformer(hparams, vocab_size)
        adam = optimizer.Adam(model.named_variables(), beta1=0.9, beta2=0.98, epsilon=1e-9)
    made = step.TrainStep(model, adam, hparams=hparams, strategy=chosen, xla=xla, random_seed=1)
    return made, model


def _trajectory(hparams, **kwargs):
    made, model = _train_step(hparams, **kwargs)
    losses = [
        float(made(batch, step=number, learning_rate=1e-3).loss)
        for number, batch in enumerate(_batches(), start=1)
    ]
    assert made.traces == 2  # one for each shape
    return losses, {name: v.numpy() for name, v in model.named_variables().items()}


@pytest.fixture(scope="module")
def plain():
    return _trajectory(TINY)


@pytest.mark.parametrize(
    ("changes", "kwargs"),
    [
        ({}, {"strategy": "mirrored"}),
        ({"max_tokens_per_device": 15}, {}),
        ({"max_tokens_per_device": 15}, {"strategy": "mirrored"}),
        ({"max_tokens_per_device": 15}, {"xla": True}),
        pytest.param({}, {"strategy": "mirrored", "xla": True}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_devices_and_micro_batches_change_nothing(plain, changes, kwargs):
    losses, weights = _trajectory(dataclasses.replace(TINY, **changes), **kwargs)
    np.testing.assert_allclose(losses, plain[0], atol=1e-5)
    for name, value in weights.items():
        np.testing.assert_allclose(value, plain[1][name], atol=1e-5, err_msg=name)


def test_compiling_in_advance_changes_nothing_and_little_stays_outside():
    made, model = _train_step(TINY, strategy="mirrored", xla=True)
    state = {**model.named_variables(), **made._adam.slots()}
    before = {name: variable.numpy() for name, variable in state.items()}
    batch = next(_batches(1))
    made.compile(6, 6, 7)
    for name, variable in state.items():
        np.testing.assert_array_equal(variable, before[name], err_msg=name)
    made(batch, step=1, learning_rate=1e-3)
    (function,) = made._compiled.values()
    kinds = collections.Counter(operation.type for operation in function.graph.get_operations())
    # Two programs a replica, and its part in one sum between them.
    assert kinds["StatefulPartitionedCall"] == 4
    assert kinds["CollectiveReduceV2"] == 2
    inputs = len(function.captured_inputs)
    assert sum(kinds.values()) - inputs < 100


@pytest.mark.parametrize(
    ("rows", "length", "limit", "parts"),
    [(96, 250, 256, 96), (248, 100, 150, 248), (96, 256, 1000, 32)],
)
def test_a_part_keeps_its_limit_where_one_row_does(rows, length, limit, parts):
    hparams = dataclasses.replace(TINY, max_tokens_per_device=limit)
    assert _train_step(hparams)[0].parts(rows, length, length) == parts


def test_dropout_follows_from_seed_and_step():
    dropping = dataclasses.replace(TINY, dropout=0.3)
    batch = next(_batches(1))

    def loss(number):
        made, _ = _train_step(dropping)
        return float(made(batch, step=number, learning_rate=0.0).loss)

    assert loss(1) == loss(1)
    assert loss(1) != loss(2)


@pytest.mark.parametrize("gpus", [[], ["GPU:0"]])
def test_an_update_without_a_finite_gradient_is_left_out(monkeypatch, gpus):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda *_: gpus)
    made, model = _train_step(TINY)
    scale = model.decoder_layers[0].feed_forward_norm.scale
    scale.assign(np.full(16, np.inf))
    before = {name: v.numpy() for name, v in model.named_variables().items()}
    result = made(next(_batches(1)), step=1, learning_rate=1e-3)
    assert not np.isfinite(float(result.gradient_norm))
    for name, variable in model.named_variables().items():
        np.testing.assert_array_equal(variable, before[name], err_msg=name)


def test_without_a_branch_the_bits_are_the_same(plain, monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda *_: ["GPU:0"])
    losses, weights = _trajectory(TINY)
    assert losses == plain[0]
    for name, value in weights.items():
        np.testing.assert_array_equal(value, plain[1][name], err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in registry.hparams_sets() if "_bas" in n or "_big" in n])
def test_every_row_of_table_3_trains(name):
    # A sixteenth of the width, the row's own structure: layers, heads, rates and positions.
    full = registry.hparams(name)
    sizes = {size: getattr(full, size) // 16 for size in ("d_model", "d_ff")}
    sizes |= {size: max(getattr(full, size) // 16, 1) for size in ("d_k", "d_v")}
    layers = {
        f"num_{side}_layers": min(full.num_encoder_layers, 2) for side in ("encoder", "decoder")
    }
    made, _ = _train_step(dataclasses.replace(full, **sizes, **layers))
    batch = next(_batches(1))
    losses = [
        float(made(batch, step=n, learning_rate=1e-3).negative_log_likelihood) for n in range(1, 9)
    ]
    assert np.isfinite(losses).all()
    assert np.mean(losses[-2:]) < np.mean(losses[:2])


def test_cost_equals_a_hand_count():
    # One encoder and one decoder layer of width 2 with one head of 2, d_ff 3, V 5, one row of
    # 2 source and 1 target token; products as rows x inner x columns, each counted twice.
    hparams = dataclasses.replace(TINY, d_model=2, d_ff=3, num_heads=1, d_k=2, d_v=2)
    encoder = 2 * 2 * 6 + 2 * 2 * 2 + (2 * 2 * 2 + 2 * 2 * 2) + (2 * 2 * 3 + 2 * 3 * 2)
    decoder_self = 1 * 2 * 6 + 1 * 2 * 2 + (1 * 2 * 1 + 1 * 1 * 2)
    cross = 1 * 2 * 2 + 2 * 2 * 4 + 1 * 2 * 2 + (1 * 2 * 2 + 1 * 2 * 2)
    feed_forward = 1 * 2 * 3 + 1 * 3 * 2
    softmax = 1 * 2 * 5
    forward = 2 * (encoder + decoder_self + cross + feed_forward + softmax)
    assert cost.step_flops(hparams, 5, batch=1, source=2, target=1) == 3 * forward
