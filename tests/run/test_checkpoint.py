"""Checkpoints by name, averaging, the best one, damage."""

import json

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.run import averaging, best, checkpoint


def _variables(value):
    return {
        "encoder_0/self_attention/qkv": tf.Variable(tf.fill([2, 3], float(value))),
        "embedding/matrix": tf.Variable(tf.fill([4], float(value) + 1)),
    }


def _checkpoints(directory, value=0.0, keep=20, dataset=None):
    variables = _variables(value)
    data = iter(dataset or tf.data.Dataset.range(100))
    slots = {"embedding/matrix/m": tf.Variable(value)}
    made = checkpoint.Checkpoints(directory, variables=variables, slots=slots, data=data, keep=keep)
    return made, variables, data


def test_weights_are_stored_by_name(tmp_path):
    made, _, _ = _checkpoints(tmp_path, 5)
    prefix = made.save(10)
    values = checkpoint.read_weights(prefix)
    assert sorted(values) == ["embedding/matrix", "encoder_0/self_attention/qkv"]
    other = _variables(0)
    checkpoint.restore_weights(prefix, other)
    np.testing.assert_array_equal(other["embedding/matrix"], np.full(4, 6.0))


def test_restoring_continues_weights_and_data(tmp_path):
    made, variables, data = _checkpoints(tmp_path, 5)
    next(data)
    next(data)
    made.save(7)
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


def test_checkpoints_of_another_pipeline_are_refused_with_a_way_out(tmp_path):
    _checkpoints(tmp_path, 1)[0].save(1)
    other, _, _ = _checkpoints(tmp_path, dataset=tf.data.Dataset.range(100).batch(2))
    with pytest.raises(errors.UserError, match=r"of 1 checkpoints .*--warm_start_from=.*ckpt-1"):
        other.restore_latest()


def test_the_oldest_go(tmp_path):
    made, _, _ = _checkpoints(tmp_path, keep=2)
    for step in (1, 2, 3):
        made.save(step)
    assert [step for step, _ in checkpoint.list_checkpoints(tmp_path)] == [2, 3]


def test_resolve_finds_prefix_folder_and_newest(tmp_path):
    made, _, _ = _checkpoints(tmp_path)
    made.save(9)
    made.save(10)
    assert checkpoint.resolve(tmp_path).endswith("ckpt-10")
    assert checkpoint.resolve("elsewhere", str(tmp_path)).endswith("ckpt-10")
    assert checkpoint.resolve(tmp_path, str(tmp_path / "ckpt-9")).endswith("ckpt-9")
    with pytest.raises(errors.UserError, match="no checkpoint at nowhere"):
        checkpoint.resolve(tmp_path, "nowhere")


def test_a_fingerprint_tells_contents_apart(tmp_path):
    fingerprints = []
    for value in (1.0, 1.0, 2.0):
        checkpoint.write_weights(str(tmp_path / "ckpt-1"), {"a/b": np.full([3], value)})
        fingerprints.append(checkpoint.fingerprint(str(tmp_path / "ckpt-1")))
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


def test_missing_and_misshapen_weights_are_named(tmp_path):
    prefix = _checkpoints(tmp_path)[0].save(1)
    with pytest.raises(errors.UserError, match="lacks decoder_0/x"):
        checkpoint.restore_weights(prefix, {"decoder_0/x": tf.Variable(0.0)})
    with pytest.raises(errors.UserError, match="embedding/matrix has shape"):
        checkpoint.restore_weights(prefix, {"embedding/matrix": tf.Variable([0.0])})


def test_the_average_is_the_mean_without_optimizer_slots(tmp_path):
    for step, value in ((1, 1.0), (2, 2.0), (3, 6.0)):
        _checkpoints(tmp_path, value)[0].save(step)
    prefix = averaging.average(averaging.last_checkpoints(tmp_path, 3), tmp_path)
    assert prefix == str(tmp_path / "averaged" / "ckpt-3")
    values = checkpoint.read_weights(prefix)
    np.testing.assert_allclose(values["encoder_0/self_attention/qkv"], np.full((2, 3), 3.0))
    names = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    assert not any("optimizer" in name for name in names)
    with pytest.raises(errors.UserError, match="has 3 checkpoints, 5 were asked for"):
        averaging.last_checkpoints(tmp_path, 5)


def test_only_the_best_is_kept(tmp_path):
    kept = best.Best(tmp_path)
    assert kept.offer(1, 10.0, _variables(1))
    assert kept.offer(2, 12.0, _variables(2))
    assert not kept.offer(3, 11.0, _variables(3))
    again = best.Best(tmp_path)
    assert (again.step, again.score) == (2, 12.0)
    assert json.loads((tmp_path / "best" / "best.json").read_text())["step"] == 2
    assert [step for step, _ in checkpoint.list_checkpoints(tmp_path / "best")] == [2]
    weights = checkpoint.read_weights(checkpoint.resolve(tmp_path, str(tmp_path / "best")))
    assert float(weights["embedding/matrix"][0]) == 3


def test_a_full_disk_is_one_clear_error(tmp_path, monkeypatch):
    made, _, _ = _checkpoints(tmp_path)
    made.save(1)

    def fail(**_):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(made._manager, "save", fail)
    with pytest.raises(errors.UserError, match=r"step 2 .*No space left.*earlier .* intact"):
        made.save(2)
    assert [step for step, _ in checkpoint.list_checkpoints(tmp_path)] == [1]
