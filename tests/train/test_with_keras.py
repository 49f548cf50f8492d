"""Training by fit: schedule, loss and accuracy against the trainer's, Keras' callbacks, and the way
to an output_dir and back."""

import dataclasses
import itertools
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_run
import tiny_training

import t2t_lite
from t2t_lite import config, errors
from t2t_lite.data import pipeline
from t2t_lite.decode import translator
from t2t_lite.model import transformer
from t2t_lite.run import output_dir
from t2t_lite.train import loss, optimizer, schedule, step, with_keras

TARGETS = np.array([[9, 8, 1, 0, 0], [7, 6, 5, 4, 1], [3, 1, 0, 0, 0], [4, 5, 6, 1, 0]])
INPUTS = TARGETS[::-1].copy()
HPARAMS = dataclasses.replace(tiny_run.HPARAMS, batch_tokens=512, max_buckets=2)


def _model(dtype=None, **changes):
    keras.utils.set_random_seed(3)
    return transformer.Transformer(dataclasses.replace(HPARAMS, **changes), 50, dtype=dtype)


def _compiled(model):
    adam = keras.optimizers.Adam(with_keras.PaperSchedule(16, warmup_steps=10), 0.9, 0.98, 1e-9)
    model.compile(adam, with_keras.SmoothedCrossEntropy(), metrics=[with_keras.MaskedAccuracy()])
    return model


def _batches(count=2):
    return tf.data.Dataset.from_tensors(((INPUTS, TARGETS), TARGETS)).repeat(count)


def test_the_schedule_is_the_trainers():
    rates = with_keras.PaperSchedule(512, scale=2.0)
    for number in (1, 100, 4000, 100_000):
        expected = schedule.learning_rate(number, d_model=512, warmup_steps=4000, scale=2.0)
        assert float(rates(number - 1)) == pytest.approx(expected, rel=1e-6)
    again = with_keras.PaperSchedule.from_config(rates.get_config())
    rate = float(keras.optimizers.Adam(again).learning_rate)
    assert rate == pytest.approx(float(rates(0)))


def test_the_loss_and_its_gradient_are_the_trainers():
    model = _model()
    variables = model.trainable_variables
    labels = tf.constant(TARGETS, tf.int32)
    weights = loss.token_weights(labels) / 14  # tokens
    with tf.GradientTape(persistent=True) as tape:
        states = model.decode(TARGETS, model.encode(INPUTS))
        expected = loss.smoothed_cross_entropy(
            states, model.logits.matrix(), labels, weights, label_smoothing=0.1
        ).smoothed
        found = with_keras.SmoothedCrossEntropy(0.1)(TARGETS, model.logits(states))
    assert float(found) == pytest.approx(float(expected), rel=1e-6)
    for ours, theirs in zip(
        tape.gradient(found, variables), tape.gradient(expected, variables), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_weights_of_samples_multiply_losses_and_accuracy_leaves_out_padding():
    logits = tf.one_hot(np.where(TARGETS == 5, 6, TARGETS), 50) * 5.0
    function = with_keras.SmoothedCrossEntropy()
    once = [float(function(TARGETS, logits, sample_weight=w)) for w in np.eye(4)]
    assert sum(once) == pytest.approx(float(function(TARGETS, logits)), rel=1e-6)
    accuracy = with_keras.MaskedAccuracy()
    accuracy.update_state(TARGETS, logits)
    assert float(accuracy.result()) == pytest.approx(12 / 14)


def test_callbacks_of_a_functional_model(tmp_path):
    source, target = (keras.Input([None], dtype="int32") for _ in range(2))
    model = _compiled(keras.Model([source, target], _model()(source, target)))
    history = model.fit(
        _batches(),
        epochs=3,
        validation_data=_batches(1),
        verbose=0,
        callbacks=[
            keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.keras", save_best_only=True),
            keras.callbacks.EarlyStopping(min_delta=100.0, patience=1),
            keras.callbacks.TensorBoard(tmp_path / "events"),
        ],
    )
    assert len(history.history["loss"]) == 2
    assert history.history["loss"][1] < history.history["loss"][0]
    assert list((tmp_path / "events").rglob("events.*"))
    loaded = keras.models.load_model(tmp_path / "2.keras")
    np.testing.assert_array_equal(loaded([INPUTS, TARGETS]), model([INPUTS, TARGETS]))
    loaded.fit(_batches(), verbose=0)


def test_a_subclass_and_mixed_precision():
    class Counting(transformer.Transformer):
        calls = 0

        def encode(self, inputs, training=False):
            self.calls += 1
            return super().encode(inputs, training)

    model = _compiled(Counting(HPARAMS, 50, dtype="mixed_bfloat16"))
    first, *_, last = model.fit(_batches(20), epochs=3, verbose=0).history["loss"]
    assert last < first - 0.5
    assert model.calls
    assert {variable.dtype for variable in model.trainable_variables} == {"float32"}
    assert model(INPUTS, TARGETS).dtype == tf.float32


_TWO_REPLICAS = """
import dataclasses, keras, numpy as np, tensorflow as tf, tiny_run
from t2t_lite.model import transformer
from t2t_lite.train import with_keras

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
targets = np.array([[9, 8, 1, 0, 0], [7, 6, 5, 4, 1], [3, 1, 0, 0, 0], [4, 5, 6, 1, 0]])
data = tf.data.Dataset.from_tensor_slices(((targets[::-1], targets), targets)).batch(4).repeat(3)
two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
one = tf.distribute.get_strategy()
assert (one.num_replicas_in_sync, two.num_replicas_in_sync) == (1, 2)


def losses(strategy, dropout):
    with strategy.scope():
        keras.utils.set_random_seed(3)
        hparams = dataclasses.replace(tiny_run.HPARAMS, dropout=dropout)
        model = transformer.Transformer(hparams, 50)
        adam = keras.optimizers.Adam(0.01, 0.9, 0.98, 1e-9)
        model.compile(adam, with_keras.SmoothedCrossEntropy(), jit_compile=False)
    return model.fit(data, epochs=3, steps_per_epoch=1, verbose=0).history["loss"]


np.testing.assert_allclose(losses(two, 0.0), losses(one, 0.0), atol=1e-5)
assert np.isfinite(losses(two, 0.3)).all()
"""


def test_two_replicas_with_unequal_tokens_have_the_loss_of_one():
    """The first replica's rows have 8 tokens, the second's 6; in a process of its own, since
    TensorFlow mixes up the collectives of several strategies in one."""
    path = os.pathsep.join([str(pathlib.Path(tiny_run.__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(
        [sys.executable, "-c", _TWO_REPLICAS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not result.returncode, result.stderr


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return with_keras.read_data(tiny_training.generate_data(tmp_path_factory.mktemp("corpus")))


def test_batches_are_the_trainers_in_its_order(data):
    found = t2t_lite.dataset(data, "train", HPARAMS, seed=7)
    expected = pipeline.train_batches(data, **HPARAMS.batch_limits, seed=7)
    for ((inputs, targets), labels), batch in itertools.islice(zip(found, expected), 20):
        np.testing.assert_array_equal(inputs, batch["inputs"])
        np.testing.assert_array_equal(targets, batch["targets"])
        np.testing.assert_array_equal(labels, batch["targets"])
    dev = t2t_lite.dataset(data.folder, "dev", HPARAMS)
    assert sum(np.count_nonzero(labels == 1) for _, labels in dev) == 20


def test_fit_learns_what_the_trainer_learns(data):
    """The same batches, without dropout: the losses of 20 steps are equal but for rounding."""
    hparams = dataclasses.replace(HPARAMS, dropout=0.0, warmup_steps=10)
    batches, same = (t2t_lite.dataset(data, "train", hparams) for _ in range(2))
    by_fit, by_trainer = (
        transformer.Transformer(hparams, data.vocabulary.targets.size) for _ in range(2)
    )
    by_trainer.set_weights(by_fit.get_weights())
    found = _compiled(by_fit).fit(batches, epochs=20, steps_per_epoch=1, verbose=0)
    adam = optimizer.Adam(by_trainer.named_variables(), beta1=0.9, beta2=0.98, epsilon=1e-9)
    train_step = step.TrainStep(
        by_trainer,
        adam,
        hparams=hparams,
        strategy=tf.distribute.get_strategy(),
        xla=False,
        random_seed=1,
    )
    expected = []
    for number, ((inputs, targets), _) in enumerate(same.take(20), start=1):
        rate = schedule.learning_rate(number, d_model=16, warmup_steps=10)
        batch = {"inputs": inputs, "targets": targets}
        expected.append(float(train_step(batch, step=number, learning_rate=rate).loss))
    np.testing.assert_allclose(found.history["loss"], expected, rtol=1e-3)
    assert expected[-1] < expected[0] - 0.5


def test_what_fit_trained_becomes_an_output_dir_and_comes_back(data, tmp_path):
    keras.utils.set_random_seed(3)
    model = _compiled(transformer.Transformer(HPARAMS, data.vocabulary.targets.size))
    model.fit(t2t_lite.dataset(data, "train", HPARAMS), steps_per_epoch=3, verbose=0)
    prefix = t2t_lite.save_output_dir(model, data, tmp_path / "run")
    assert prefix == str(tmp_path / "run" / "ckpt-3")
    assert output_dir.read(tmp_path / "run").run.problem == "parallel_text"
    again = translator.Translator.from_output_dir(tmp_path / "run")
    for name, variable in again.models[0].named_variables().items():
        np.testing.assert_array_equal(variable, model.named_variables()[name])
    assert len(again.translate(["A dog runs."])) == 1
    with pytest.raises(errors.UserError, match="is there already"):
        t2t_lite.save_output_dir(model, data, tmp_path / "run")
    with pytest.raises(errors.UserError, match=r"expected a t2t_lite\.Transformer, got Sequential"):
        t2t_lite.save_output_dir(keras.Sequential(), data, tmp_path / "other")


def test_a_data_dir_of_no_or_several_problems_needs_a_name(data, tmp_path):
    with pytest.raises(errors.UserError, match="has no finished data: give problem="):
        with_keras.read_data(tmp_path)
    assert with_keras.read_data(data.folder, "parallel_text").pairs("train") == 300


def test_hparams_are_plain_json():
    hparams = config.HParams(imported=config.ImportedModel(activation="swish"))
    assert config.from_dict(dataclasses.asdict(hparams)) == hparams
