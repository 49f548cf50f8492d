"""Parallel heads are trained on a model that stays as it is, by one command."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
import tiny_run
import tiny_training

import t2t_lite
from t2t_lite.bin import decoder, trainer
from t2t_lite.model import transformer
from t2t_lite.run import checkpoint
from t2t_lite.serving import export
from t2t_lite.train import heads

HPARAMS = dataclasses.replace(tiny_run.HPARAMS, parallel_heads=3)


def _train(data, output, *flags):
    return trainer.main(tiny_training.arguments(data, output, *flags))


@pytest.fixture(scope="module")
def runs(tiny_data, tmp_path_factory):
    """Return a run and one of heads on it, and what was said of the second."""
    folder = tmp_path_factory.mktemp("heads")
    base, with_heads = folder / "base", folder / "heads"
    assert _train(tiny_data, base, "--train_steps=30") == 0
    flags = [f"--hparams_set={base}", f"--warm_start_from={base}", "--train_steps=40"]
    assert _train(tiny_data, with_heads, *flags, "--hparams=parallel_heads=3") == 0
    return base, with_heads


@pytest.mark.integration
def test_the_base_stays_as_it_is_bit_for_bit(runs):
    before, after = (checkpoint.read_weights(checkpoint.resolve(run)) for run in runs)
    assert {name.split("/")[0] for name in after.keys() - before.keys()} == {"parallel_heads"}
    for name, value in before.items():
        np.testing.assert_array_equal(value, after[name], err_msg=name)
    for name in after.keys() - before.keys():
        assert np.std(after[name]) > 0, name
    # Only what is trained has moments.
    names = [name for name, _ in tf.train.list_variables(checkpoint.resolve(runs[1]))]
    moments = [name for name in names if name.startswith("optimizer/")]
    assert len(moments) == 24
    assert all("parallel_heads" in name for name in moments)


@pytest.mark.integration
def test_commands_and_export_give_greedy_decodings_outputs(runs, tiny_data, tmp_path):
    _, with_heads = runs
    source = tmp_path / "source.txt"
    source.write_text("\n".join(tiny_run.SENTENCES) + "\n", "utf-8")
    outputs = []
    for options in ("beam_size=1", "beam_size=1,parallel_heads=3", "beam_size=1,parallel_heads=2"):
        target = tmp_path / f"{options}.txt"
        arguments = [f"--decode_from_file={source}", f"--decode_to_file={target}"]
        arguments += [f"--output_dir={with_heads}", f"--decode_hparams={options}"]
        assert decoder.main(["t2t-lite-decoder", *arguments]) == 0
        outputs.append(target.read_text("utf-8"))
    assert len(set(outputs)) == 1
    path = export.export(with_heads, tmp_path / "export", beam_size=1, parallel_heads=3)
    exported = t2t_lite.load(path).translate(tiny_run.SENTENCES)
    assert [output.text for output in exported] == outputs[0].splitlines()
    model = t2t_lite.Translator.from_output_dir(with_heads, beam_size=1)
    scores = [translation.score for translation in model.translate(tiny_run.SENTENCES)]
    np.testing.assert_allclose([output.score for output in exported], scores, atol=1e-4)


@pytest.mark.integration
def test_the_best_heads_make_most_tokens_a_step(runs):
    best = json.loads((runs[1] / "best" / "best.json").read_text("utf-8"))
    assert best["measure"]["score"] == "tokens_per_step"
    model = t2t_lite.Translator.from_output_dir(
        runs[1], str(runs[1] / "best"), beam_size=1, parallel_heads=3
    )
    assert 1 <= best["score"] <= 3
    assert 1 <= model.tokens_per_step(tiny_run.SENTENCES) <= 3


@pytest.mark.integration
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--hparams=parallel_heads=3"], "--warm_start_from"),
        (["--hparams=parallel_heads=3,num_heads=4,d_k=4,d_v=4", "warm"], "num_heads 4 -> 2"),
        (["--hparams=parallel_heads=3,packing=true", "warm"], "add packing=false"),
    ],
)
def test_a_mistake_is_one_line(runs, tiny_data, tmp_path, capsys, flags, expected):
    flags = [f"--warm_start_from={runs[0]}" if flag == "warm" else flag for flag in flags]
    assert _train(tiny_data, tmp_path / "new", f"--hparams_set={runs[0]}", *flags) in (1, 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line
    assert not (tmp_path / "new").exists()


def test_losses_are_of_the_tokens_that_follow():
    """By a loop over heads and positions, with probabilities made one by one."""
    model = tiny_run.model(hparams=HPARAMS)
    inputs = tf.constant([[7, 9, 30, 1], [5, 6, 1, 0]])
    targets = np.array([[8, 20, 9, 1], [11, 1, 0, 0]], np.int32)
    weights = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32) / 6
    batch = {"inputs": inputs, "targets": tf.constant(targets), "weights": tf.constant(weights)}
    found = heads.losses(model, batch, label_smoothing=0.0)
    states = model.decode(batch["targets"], model.encode(inputs))
    trained = model.trained_variables()
    weight = {k.removeprefix("parallel_heads/"): v.numpy() for k, v in trained.items()}
    total, width = 0.0, HPARAMS.d_ff
    encoded = model.encode(inputs)
    # The heads' start predicts what the sentences begin with, as if it followed upon padding.
    start = np.broadcast_to(weight["start"], [2, 1, HPARAMS.d_model])
    states = tf.concat([start, states], axis=1)
    targets = np.pad(targets, [(0, 0), (1, 0)])
    e = states + model.embedding(tf.constant(targets))
    attended = model.parallel_heads.cross_attention(e, encoded.states, attention_mask=encoded.mask)
    x_BTD = model.parallel_heads.norm(e + attended).numpy()
    for row, length in ((0, 5), (1, 3)):
        for position in range(length):
            state, x = states[row, position].numpy(), x_BTD[row, position]
            for head in range(2):
                if position + head + 1 >= length:
                    continue
                own = slice(head * width, (head + 1) * width)
                hidden = np.maximum(x @ weight["kernel_1"][:, own] + weight["bias_1"][own], 0)
                y = state + hidden @ weight["kernel_2"][own] + weight["bias_2"][head]
                y = (y - y.mean()) / np.sqrt(y.var() + 1e-6)
                y = y * weight["scale"][head] + weight["bias"][head]
                logits = model.softmax_matrix().numpy() @ y
                logits -= np.log(np.exp(logits - logits.max()).sum()) + logits.max()
                total -= logits[targets[row, position + head + 1]] / 6 / 2
    # Sums of 16 to 24 float32 products.
    assert float(found.smoothed) == pytest.approx(total, rel=1e-4)
    assert float(found.negative_log_likelihood) == pytest.approx(total, rel=1e-4)


def test_only_the_heads_have_a_gradient():
    model = tiny_run.model(hparams=HPARAMS)
    ids = tf.constant([[5, 6, 1]])
    batch = {"inputs": ids, "targets": ids, "weights": tf.ones([1, 3])}
    with tf.GradientTape() as tape:
        smoothed = heads.losses(model, batch, label_smoothing=0.1).smoothed
    every = model.named_variables()
    gradients = dict(zip(every, tape.gradient(smoothed, list(every.values()))))
    for name in model.trained_variables():
        assert np.abs(gradients[name]).max() > 0
    layers = [name for name in every if name.startswith(("encoder", "decoder"))]
    assert layers
    assert all(gradients[name] is None for name in layers)


def test_targets_are_the_models_own_outputs():
    model = tiny_run.model(hparams=HPARAMS)
    inputs = tf.constant([[7, 9, 30, 1], [5, 6, 1, 0], [0, 0, 0, 0]])
    distil = heads.Distillation(model, tiny_run.task())
    batch = distil({"inputs": inputs, "targets": tf.zeros([3, 5], tf.int32)})
    targets = batch["targets"].numpy()
    assert targets.shape == (3, 5)
    assert not targets[2].any()
    for row in range(2):  # each token is the likeliest after those before it
        for position in range(np.count_nonzero(targets[row])):
            logits = model(inputs[row : row + 1], tf.constant(targets[row : row + 1]))
            logits = logits[0, position].numpy()
            logits[[0, 2]] = -np.inf
            assert np.argmax(logits[: tiny_run.subwords().size]) == targets[row, position]


def test_a_model_without_heads_is_the_papers():
    names = transformer.Transformer(tiny_run.HPARAMS, 296).named_variables()
    assert not [name for name in names if name.startswith("parallel_heads")]
    model = tiny_run.model()
    assert model.trained_variables().keys() == model.named_variables().keys()
