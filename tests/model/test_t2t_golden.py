"""The model, its loss, gradients and updates against tensor2tensor's own numbers.

Tolerances are those that the golden data's description suggests for float32.
"""

import golden_numbers
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.model import attention
from t2t_lite.train import loss, optimizer, schedule

FORWARD, LOSS, GRADIENT = 2e-5, 1e-5, 1e-5


@pytest.fixture(scope="module", params=["t2t_paper", "t2t_prenorm"])
def golden(request):
    return golden_numbers.load(request.param)


def _batch(golden):
    return tf.constant(golden.arrays["inputs"]), tf.constant(golden.arrays["targets"])


def _mean_loss(golden):
    inputs, targets = _batch(golden)
    states = golden.model.decode(targets, golden.model.encode(inputs))
    weights = loss.token_weights(targets)
    weights /= tf.reduce_sum(weights)
    matrix = tf.convert_to_tensor(golden.model.softmax.matrix)
    return loss.smoothed_cross_entropy(states, matrix, targets, weights, label_smoothing=0.1)


def test_outputs_and_logits_agree(golden):
    # The original skips the feed-forward network at padding (its output there is 0, ours is not);
    # nothing attends to padding, so only real positions are comparable and the rest follows.
    inputs, targets = _batch(golden)
    encoded, real = golden.model.encode(inputs), golden.arrays["inputs"] != 0
    expected = golden.arrays["encoder_output"]
    np.testing.assert_allclose(encoded.states.numpy()[real], expected[real], atol=FORWARD)
    states = golden.model.decode(targets, encoded)
    np.testing.assert_allclose(states, golden.arrays["decoder_output"], atol=FORWARD)
    logits = golden.model(inputs, targets)
    np.testing.assert_allclose(logits, golden.arrays["logits"], atol=FORWARD)


def test_attention_weights_agree(golden):
    arrays = golden.arrays
    with attention.recording() as attended:
        golden.model(*_batch(golden))
    theirs_of = {f"encoder_{i}/self_attention": f"encoder/layer_{i}/self_attention" for i in (0, 1)}
    for i in (0, 1):
        theirs_of[f"decoder_{i}/self_attention"] = f"decoder/layer_{i}/self_attention"
        theirs_of[f"decoder_{i}/cross_attention"] = f"decoder/layer_{i}/encdec_attention"
    assert attended.keys() == theirs_of.keys()
    real = arrays["inputs"] != 0
    for name, their_name in theirs_of.items():
        ours, theirs = attended[name].numpy(), arrays[f"attention/{their_name}"]
        if name.startswith("encoder"):  # queries at padding differ after the first layer, as above
            ours, theirs = ours.transpose(0, 2, 1, 3)[real], theirs.transpose(0, 2, 1, 3)[real]
        np.testing.assert_allclose(ours, theirs, atol=FORWARD, err_msg=name)


def test_smoothed_loss_and_likelihood_agree(golden):
    losses = _mean_loss(golden)
    # The original subtracts the entropy of the smoothed targets, a constant; we do not.
    constant = float(golden.arrays["loss/normalizing_constant"])
    expected = float(golden.arrays["loss/smoothed_mean"])
    assert float(losses.smoothed) - constant == pytest.approx(expected, abs=LOSS)
    expected = float(golden.arrays["loss/eval_mode_mean"])
    assert float(losses.negative_log_likelihood) == pytest.approx(expected, abs=LOSS)


def _gradients(golden):
    variables = golden.model.named_variables()
    with tf.GradientTape() as tape:
        smoothed = _mean_loss(golden).smoothed
    return dict(zip(variables, tape.gradient(smoothed, list(variables.values()))))


def test_gradients_of_all_variables_agree(golden):
    gradients = _gradients(golden)
    expected = golden.group("grad")
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected[name], atol=GRADIENT, err_msg=name)
    norm = float(tf.linalg.global_norm(list(gradients.values())))
    assert norm == pytest.approx(float(golden.arrays["grad_global_norm"]), rel=1e-5)


@pytest.mark.parametrize("run", ["schedule", "fixed"])
def test_three_updates_agree(golden, run):
    hparams = golden.model.hparams
    adam = optimizer.Adam(
        golden.model.named_variables(),
        beta1=hparams.adam_beta1,
        beta2=hparams.adam_beta2,
        epsilon=hparams.adam_epsilon,
    )
    expected_losses = golden.arrays[f"optimizer/{run}/loss_before_step"]
    rates = golden.arrays[f"optimizer/{run}/lr"]
    constant = float(golden.arrays["loss/normalizing_constant"])
    for step, rate in enumerate(rates, start=1):
        before = float(_mean_loss(golden).smoothed) - constant
        assert before == pytest.approx(float(expected_losses[step - 1]), abs=LOSS)
        adam.apply(
            _gradients(golden), learning_rate=tf.constant(rate), step=tf.constant(float(step))
        )
    expected = golden.group(f"optimizer/{run}/step3")
    for name, variable in golden.model.named_variables().items():
        np.testing.assert_allclose(variable, expected[name], atol=1e-5, err_msg=name)
    golden_numbers.assign(golden.model, golden.group("weights"))


@pytest.mark.parametrize(
    ("name", "d_model", "warmup_steps", "scale", "lag"),
    [
        ("transformer_base_v1", 512, 4000, 1.0, 0),
        # Version 3 multiplies by 2 and evaluates with the step before: one update behind.
        ("transformer_base_v3", 512, 8000, 2.0, 1),
    ],
)
def test_learning_rates_agree(name, d_model, warmup_steps, scale, lag):
    arrays = np.load(golden_numbers.DIRECTORY / "t2t_lr.npz")
    (key,) = [k for k in arrays if k.startswith("lr/") and k.split("/")[1].split(" ")[0] == name]
    sizes = {"d_model": d_model, "warmup_steps": warmup_steps, "scale": scale}
    for global_step, expected in zip(arrays["global_step"], arrays[key]):
        update = int(global_step) + 1 - lag
        rate = schedule.learning_rate(update, **sizes) if update else 0.0
        assert rate == pytest.approx(float(expected), rel=1e-6)
