"""Exports: stock operations only, documented signatures, whole versions."""

import os
import shutil
import stat

import exports
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors, locks
from t2t_lite.serving import export, exported


def test_the_graph_is_one_for_stock_servers(export_dir):
    exports.is_for_stock_servers(export_dir / "1")


def test_options_are_recorded(export_dir):
    recorded = exported.record(export_dir / "1")
    assert (recorded["problem"], recorded["checkpoint"][-6:]) == ("toy_ende", "ckpt-1")
    assert recorded["options"].items() >= {"beam_size": 4, "max_source_length": 100}.items()


def test_warm_up_requests_run(export_dir, signatures):
    prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    path = export_dir / "1" / "assets.extra" / "tf_serving_warmup_requests"
    met = []
    for record in tf.data.TFRecordDataset(str(path)):
        request = prediction_log_pb2.PredictionLog.FromString(record.numpy()).predict_log.request
        inputs = {k: tf.constant(tf.make_ndarray(v)) for k, v in request.inputs.items()}
        found = signatures[request.model_spec.signature_name](**inputs)
        if "ids" in inputs:
            assert not found["truncated"].numpy().any()  # the ids are read
        met.append((request.model_spec.signature_name, len(next(iter(inputs.values())))))
    assert {name for name, _ in met} == set(signatures)
    assert {size for _, size in met} == {1}  # more would stop servers with a smaller limit


def test_a_server_pads_nothing_and_reads_how_large_batches_are(export_dir):
    parameters = (export_dir / "1" / "batching_params.pbtxt").read_text()
    assert f"max_batch_size {{ value: {export.MAX_ROWS} }}" in parameters
    assert "pad_variable_length_inputs" not in parameters


def test_next_version_appears_whole_and_needs_nothing_else(run_dir, tmp_path, monkeypatch):
    renamed = []

    def rename(source, target):
        assert (source / "assets.extra" / "t2t_lite.json").stat().st_size > 0
        assert not target.exists()
        renamed.append(target)
        os.replace(source, target)

    shutil.copytree(run_dir, tmp_path / "run")
    versions = tmp_path / "exports"
    (versions / "7").mkdir(parents=True)
    (versions / "notes").mkdir()
    monkeypatch.setattr(os, "rename", rename)
    path = export.export(tmp_path / "run", versions)
    monkeypatch.undo()
    assert renamed == [path] == [versions / "8"]
    assert export.versions(versions) == [7, 8]
    assert sorted(p.name for p in versions.iterdir()) == ["7", "8", "notes"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~umask
    shutil.rmtree(tmp_path / "run")
    loaded = tf.saved_model.load(str(path.rename(tmp_path / "moved"))).signatures
    found = loaded["serving_default"](inputs=tf.constant(tiny_run.SENTENCES))
    assert any(found["outputs"].numpy())


def test_what_killed_exports_left_is_removed_and_what_others_write_is_not(tmp_path):
    for name in (".incomplete-dead", ".incomplete-alive"):
        (tmp_path / name / "variables").mkdir(parents=True)
    (tmp_path / ".incomplete-dead.lock").touch()
    (tmp_path / ".incomplete-gone.lock").touch()
    with locks.only_one(tmp_path / ".incomplete-alive.lock"):
        export._remove_leftovers(tmp_path)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {".incomplete-alive", ".incomplete-alive.lock"}


def test_versions_that_are_taken_meanwhile_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "versions", lambda path: [])
    (tmp_path / "1").touch()
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "saved_model.pb").touch()
    (tmp_path / ".incomplete-1").mkdir()
    assert export._publish(tmp_path / ".incomplete-1", tmp_path) == tmp_path / "3"


def test_mistakes_write_nothing(run_dir, tmp_path):
    with pytest.raises(errors.UserError, match="no checkpoint"):
        export.export(run_dir, tmp_path / "export", checkpoint_path=str(tmp_path))
    assert not (tmp_path / "export").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.UserError, match="is a file"):
        export.export(run_dir, tmp_path / "file")
