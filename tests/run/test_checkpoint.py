"""Checkpoints by name, averaging, the best one, damage."""

import dataclasses
import json
import os
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import config, errors
from t2t_lite.decode import translator
from t2t_lite.run import averaging, best, checkpoint, identity, output_dir

IDENTITY = identity.Identity(vocabulary="ab", model=config.model(config.HParams()))
BLEU = {"score": "BLEU", "sentences": 20}


def _variables(value):
    return {
        "encoder_0/self_attention/qkv": tf.Variable(tf.fill([2, 3], float(value))),
        "embedding/matrix": tf.Variable(tf.fill([4], float(value) + 1)),
    }


def _checkpoints(directory, value=0.0, keep=20, dataset=None):
    variables = _variables(value)
    data = iter(dataset or tf.data.Dataset.range(100))
    slots = {"embedding/matrix/m": tf.Variable(value)}
    made = checkpoint.Checkpoints(
        directory, variables=variables, slots=slots, data=data, identity=IDENTITY, keep=keep
    )
    return made, variables, data


def _steps(directory):
    return [step for step, _ in checkpoint.list_checkpoints(directory)]


def test_restoring_continues_weights_by_their_names_and_data(tmp_path):
    made, variables, data = _checkpoints(tmp_path, 5)
    next(data)
    next(data)
    assert checkpoint.read_weights(made.save(7)).keys() == variables.keys()
    again, variables, data = _checkpoints(tmp_path, 0)
    assert again.restore_latest() == (7, [])
    assert int(next(data)) == 2
    assert float(variables["embedding/matrix"][0]) == 6


@pytest.mark.parametrize(
    "damage", [lambda b: b[:10], lambda b: b"", lambda b: bytes([b[0] ^ 1]) + b[1:]]
)
def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path, damage):
    for step in (1, 2):
        _checkpoints(tmp_path, step)[0].save(step)
    data_file = tmp_path / "ckpt-2.data-00000-of-00001"
    content = data_file.read_bytes()
    # Cut short, or a bit flipped in the first weight.
    data_file.write_bytes(damage(content))
    again, variables, _ = _checkpoints(tmp_path, 0)
    step, damaged = again.restore_latest()
    assert (step, [p.rsplit("/")[-1] for p in damaged]) == (1, ["ckpt-2"])
    assert float(variables["embedding/matrix"][0]) == 2


@pytest.mark.parametrize("content", [b"", b"\xff\0", b'model_checkpoint_path: "ckpt-9"'])
def test_tensorflows_file_about_checkpoints_is_not_read(tmp_path, content):
    _checkpoints(tmp_path)[0].save(3)
    (tmp_path / "checkpoint").write_bytes(content)
    assert _checkpoints(tmp_path)[0].restore_latest() == (3, [])
    assert checkpoint.resolve(tmp_path) == str(tmp_path / "ckpt-3")


def test_a_checkpoint_is_on_the_disk_before_an_older_one_goes(tmp_path, monkeypatch):
    made = _checkpoints(tmp_path, keep=1)[0]
    made.save(1)
    synced = []

    def sync(descriptor):
        synced.append(pathlib.Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        assert (tmp_path / "ckpt-1.index").exists()

    monkeypatch.setattr(os, "fsync", sync)
    made.save(2)
    assert sorted(synced) == ["ckpt-2.data-00000-of-00001", "ckpt-2.index"]
    assert _steps(tmp_path) == [2]


def test_checkpoints_of_another_pipeline_are_refused_with_a_way_out(tmp_path):
    _checkpoints(tmp_path, 1)[0].save(1)
    other, _, _ = _checkpoints(tmp_path, dataset=tf.data.Dataset.range(100).batch(2))
    with pytest.raises(errors.UserError, match=r"of 1 checkpoint .*--warm_start_from=.*ckpt-1"):
        other.restore_latest()


def test_the_oldest_go(tmp_path):
    for step in (1, 2):  # of two processes
        made, _, _ = _checkpoints(tmp_path, keep=2)
        made.save(step)
    assert _steps(tmp_path) == [1, 2]
    for name in ("ckpt-9.index", "ckpt-9.data-00000-of-00001"):  # a damaged newer one counts not
        (tmp_path / name).touch()
    made.save(3)
    assert _steps(tmp_path) == [2, 3, 9]
    assert not list(tmp_path.glob("ckpt-1.*"))


def test_a_copy_under_another_name_is_none_of_the_run(tmp_path):
    made, _, _ = _checkpoints(tmp_path, keep=1)
    made.save(1)
    for path in list(tmp_path.glob("ckpt-1.*")):
        for name in ("keep-", "old."):
            shutil.copy(path, path.with_name(f"{name}{path.name}"))
    made.save(2)
    assert _steps(tmp_path) == [2]
    assert {path.name for path in tmp_path.glob("*.index")} == {
        *("ckpt-2.index", "keep-ckpt-1.index", "old.ckpt-1.index")
    }


def test_resolve_finds_prefix_folder_and_newest(tmp_path):
    made, _, _ = _checkpoints(tmp_path)
    made.save(9)
    made.save(10)
    assert checkpoint.resolve(tmp_path).endswith("ckpt-10")
    assert checkpoint.resolve("elsewhere", str(tmp_path)).endswith("ckpt-10")
    assert checkpoint.resolve(tmp_path, str(tmp_path / "ckpt-9")).endswith("ckpt-9")
    with pytest.raises(errors.UserError, match="no checkpoint at nowhere"):
        checkpoint.resolve(tmp_path, "nowhere")


def test_missing_and_misshapen_weights_are_named(tmp_path):
    prefix = _checkpoints(tmp_path)[0].save(1)
    for variables, message in (
        ({"decoder_0/x": tf.Variable(0.0)}, "lacks decoder_0/x"),
        (_variables(0) | {"embedding/matrix": tf.Variable([0.0])}, "embedding/matrix has shape"),
        (
            {"embedding/matrix": tf.Variable(tf.zeros([4]))},
            "has beside the model's own encoder_0/self_att",
        ),
    ):
        with pytest.raises(errors.UserError, match=message):
            checkpoint.restore_weights(prefix, variables, IDENTITY)


def test_the_average_is_the_mean_without_optimizer_slots(tmp_path):
    for step, value in ((1, 1.0), (2, 2.0), (3, 6.0)):
        _checkpoints(tmp_path, value)[0].save(step)
    prefix = averaging.average(averaging.last_checkpoints(tmp_path, 3), tmp_path, IDENTITY)
    assert prefix == str(tmp_path / "averaged" / "ckpt-3")
    values = checkpoint.read_weights(prefix)
    np.testing.assert_allclose(values["encoder_0/self_attention/qkv"], np.full((2, 3), 3.0))
    names = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    assert not any("optimizer" in name for name in names)


def test_only_the_best_is_kept(tmp_path):
    kept = best.Best(tmp_path, measure=BLEU, identity=IDENTITY)
    assert not kept.offer(1, [float("nan")], _variables(1))
    assert kept.offer(1, [10.0], _variables(1))
    assert kept.offer(2, [12.0], _variables(2))
    assert not kept.offer(3, [11.0], _variables(3))
    again = best.Best(tmp_path, measure=BLEU, identity=IDENTITY)
    assert (again.step, again.scores) == (2, (12.0,))
    assert _steps(tmp_path / "best") == [2]
    weights = checkpoint.read_weights(checkpoint.resolve(tmp_path, str(tmp_path / "best")))
    assert float(weights["embedding/matrix"][0]) == 3


def test_the_next_score_decides_between_equal_ones(tmp_path):
    kept = best.Best(tmp_path, measure=BLEU, identity=IDENTITY)
    assert kept.offer(1, [0.0, 40.0, -2.0], _variables(1))
    assert not kept.offer(2, [0.0, 39.0, -1.0], _variables(2))
    again = best.Best(tmp_path, measure=BLEU, identity=IDENTITY)
    assert again.offer(3, [0.0, 40.0, -1.0], _variables(3))
    assert not again.offer(4, [0.0, 40.0, float("nan")], _variables(4))
    assert again.offer(5, [1.0, 30.0, -2.0], _variables(5))


def test_a_full_disk_is_one_clear_error_and_keeps_what_is_there(tmp_path, monkeypatch):
    def fail(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    made, variables, _ = _checkpoints(tmp_path)
    made.save(1)
    kept = best.Best(tmp_path, measure=BLEU, identity=IDENTITY)
    assert kept.offer(1, [1.0], variables)
    monkeypatch.setattr(tf.train.Checkpoint, "write", fail)
    with pytest.raises(errors.UserError, match=r"step 2 .*No space left.*earlier .* intact"):
        made.save(2)
    with pytest.raises(errors.UserError, match=r"cannot write .* of step 2 to .*best: No space"):
        kept.offer(2, [2.0], variables)
    assert _steps(tmp_path) == _steps(tmp_path / "best") == [1]
    assert json.loads((tmp_path / "best" / "best.json").read_text())["step"] == 1


def _identity(*, vocabulary="ab", **changes):
    return identity.Identity(vocabulary=vocabulary, model=config.model(config.HParams(**changes)))


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (_identity(vocabulary="cd"), "vocabulary ab -> cd"),
        (_identity(num_heads=4, d_k=128, d_v=128), "num_heads 8 -> 4, d_k 64 -> 128"),
        (_identity(pre_norm=True), "pre_norm False -> True"),
        (_identity(position_encoding="sinusoid_t2t"), "position_encoding sinusoid -> sinusoid_t2t"),
        (_identity(imported=config.ImportedModel(first_position=1)), "first_position 0 -> 1"),
    ],
)
def test_weights_of_another_model_are_refused_wherever_their_copy_lies(tmp_path, other, difference):
    weights = {name: variable.numpy() for name, variable in _variables(1).items()}
    checkpoint.write_weights(str(tmp_path / "there/ckpt-1"), weights, other)
    (tmp_path / "there").rename(tmp_path / "copy")
    prefix = str(tmp_path / "copy/ckpt-1")
    assert checkpoint.identity_of(prefix) == other
    for take in (
        lambda: checkpoint.restore_weights(prefix, _variables(0), IDENTITY),
        lambda: averaging.average([prefix], tmp_path, IDENTITY),
    ):
        with pytest.raises(errors.UserError, match=f"of another model .*{difference}"):
            take()
    made, _, _ = _checkpoints(tmp_path / "copy")
    made.save(2)
    again = _checkpoints(tmp_path / "copy")[0]
    again._identity = other
    with pytest.raises(errors.UserError, match="ckpt-2 holds the weights of another model"):
        again.restore_latest()


def test_a_checkpoint_without_identity_is_refused(tmp_path):
    prefix = tf.train.Checkpoint(model=tf.Variable(0.0)).write(str(tmp_path / "ckpt-1"))
    with pytest.raises(errors.UserError, match="is not a checkpoint of t2t-lite"):
        checkpoint.identity_of(prefix)


def test_what_killed_processes_left_goes(tmp_path):
    made, _, _ = _checkpoints(tmp_path)
    made.save(3)
    (tmp_path / "ckpt-4_temp").mkdir()
    (tmp_path / "ckpt-4.data-00000-of-00001").touch()  # its index was to come
    made.remove_leftovers()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"ckpt-3.index", "ckpt-3.data-00000-of-00001"}
    (tmp_path / "best" / "ckpt-1_temp").mkdir(parents=True)
    kept = best.Best(tmp_path, measure=BLEU, identity=IDENTITY)
    assert kept.offer(5, [1.0], _variables(1))
    names = {path.name for path in (tmp_path / "best").iterdir()}
    assert names == {"best.json", "ckpt-5.data-00000-of-00001", "ckpt-5.index"}


@pytest.mark.parametrize(
    ("measure", "difference"),
    [
        ({"score": "loss"}, "score BLEU -> loss, sentences 20 -> none"),
        ({"score": "BLEU", "sentences": 500}, "sentences 20 -> 500"),
    ],
)
def test_scores_of_other_measures_are_not_compared(tmp_path, measure, difference):
    assert best.Best(tmp_path, measure=BLEU, identity=IDENTITY).offer(1, [10.0], _variables(1))
    other = best.Best(tmp_path, measure=measure, identity=IDENTITY)
    assert other.difference == difference
    assert not other.offer(2, [99.0], _variables(2))
    again = best.Best(tmp_path, measure=BLEU, identity=IDENTITY)
    assert (again.step, again.difference) == (1, "")


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", '{"step": 1, "score": null}', '{"step": 1, "score": NaN}'),
        '{"step": 1, "score": 2, "measure": "BLEU"}',
    ],
)
def test_a_damaged_best_is_one_clear_error(tmp_path, content):
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "best.json").write_text(content)
    with pytest.raises(errors.UserError, match=r"best\.json is damaged: .*; remove .*best and"):
        best.Best(tmp_path, measure=BLEU, identity=IDENTITY)


def test_an_ensemble_is_of_one_vocabulary_and_one_function(tmp_path):
    run = tiny_run.write(tmp_path, seeds=(1, 2))
    weights = checkpoint.read_weights(f"{run}/ckpt-2")
    own = output_dir.read(run).identity
    for name, other in [
        ("vocabulary", dataclasses.replace(own, vocabulary="cd")),
        ("pre_norm", dataclasses.replace(own, model={**own.model, "pre_norm": 1})),
    ]:
        prefix = f"{tmp_path}/{name}/ckpt-2"
        checkpoint.write_weights(prefix, weights, other)
        for path in (prefix, f"{run}/ckpt-1,{prefix}"):
            with pytest.raises(errors.UserError, match=rf"of another model \({name} "):
                translator.Translator.from_output_dir(run, path)
    assert translator.Translator.from_output_dir(run, f"{run}/ckpt-1,{run}/ckpt-2")


def test_a_comma_in_a_name_is_no_separator(tmp_path):
    one, folder = tmp_path / "ckpt-1", tmp_path / "dropout=0.1,d_ff=64"
    folder.mkdir()
    assert checkpoint.separate(f"{one}, {folder.parent}") == [str(one), str(tmp_path)]
    assert checkpoint.separate(str(folder)) == [str(folder)]
    (folder / "ckpt-2.index").touch()
    assert checkpoint.separate(f"{folder}/ckpt-2") == [f"{folder}/ckpt-2"]
