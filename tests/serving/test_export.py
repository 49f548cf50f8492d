"""Exports: stock operations only, documented signatures, whole versions."""

import os
import pathlib
import shutil
import stat

import pytest
import tensorflow as tf
import tiny_run
from tensorflow.core.protobuf import saved_model_pb2

from t2t_lite import errors, locks
from t2t_lite.serving import export, exported

# Of core TensorFlow and TensorFlow Text: what a stock TensorFlow Serving has.
ALLOWED_OPS = set(pathlib.Path(__file__).with_name("allowed_ops.txt").read_text().split())


def _graph(path):
    proto = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    return proto.meta_graphs[0].graph_def


def _nodes(graph):
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def test_ops_are_those_that_stock_servers_have(export_dir):
    graph = _graph(export_dir / "1")
    assert {node.op for node in _nodes(graph)} - ALLOWED_OPS == set()


def test_nothing_is_compiled_by_xla_and_nothing_placed(export_dir):
    graph = _graph(export_dir / "1")
    for function in graph.library.function:
        assert not function.attr["_XlaMustCompile"].b
    # Strings live on the CPU; nothing else is bound to a place.
    assert {node.device for node in _nodes(graph)} <= {"", "/device:CPU:0", "/device:CPU:*"}


def test_no_constant_names_a_path(export_dir):
    for node in _nodes(_graph(export_dir / "1")):
        if node.op == "Const" and node.attr["dtype"].type == tf.string.as_datatype_enum:
            values = node.attr["value"].tensor.string_val
            assert not any(value.startswith(b"/") for value in values)


def test_signatures_have_the_documented_types(signatures):
    text, ids, four = (None,), (None, None), (None, 4)
    cuts = {"truncated": text, "finished": text}
    expected = {
        "serving_default": {"outputs": text, "scores": text, **cuts},
        "nbest": {"outputs": four, "scores": four, "truncated": text, "finished": four},
        "score": {
            "log_probabilities": text,
            "lengths": text,
            "truncated": text,
            "target_truncated": text,
        },
        "tokenize": {"ids": ids, "truncated": text},
        "from_ids": {"ids": ids, "scores": text, **cuts},
    }
    found = {
        name: {key: tuple(spec.shape) for key, spec in function.structured_outputs.items()}
        for name, function in signatures.items()
    }
    assert found == expected


def test_options_are_recorded(export_dir):
    recorded = exported.record(export_dir / "1")
    assert recorded["options"]["beam_size"] == 4
    assert recorded["options"]["max_source_length"] == 100
    assert recorded["problem"] == "toy_ende"
    assert recorded["checkpoint"].endswith("ckpt-1")
    assert "nbest" in recorded["signatures"]


def test_warm_up_requests_run(export_dir, signatures):
    prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    path = export_dir / "1" / "assets.extra" / "tf_serving_warmup_requests"
    met = []
    for record in tf.data.TFRecordDataset(str(path)):
        request = prediction_log_pb2.PredictionLog.FromString(record.numpy()).predict_log.request
        inputs = {k: tf.constant(tf.make_ndarray(v)) for k, v in request.inputs.items()}
        found = signatures[request.model_spec.signature_name](**inputs)
        if "ids" in inputs:
            assert not found["truncated"].numpy().any()  # the ids end in EOS
        met.append((request.model_spec.signature_name, len(next(iter(inputs.values())))))
    assert {name for name, _ in met} == set(signatures)
    assert {size for name, size in met if name == "serving_default"} == {1, 8, 32}


def test_next_version_appears_whole_and_needs_nothing_else(run_dir, tmp_path, monkeypatch):
    renamed = []

    def rename(source, target):
        assert (source / "assets.extra" / "t2t_lite.json").stat().st_size > 0
        assert not target.exists()
        renamed.append(target)
        os.replace(source, target)

    shutil.copytree(run_dir, tmp_path / "run")
    exports = tmp_path / "exports"
    (exports / "7").mkdir(parents=True)
    (exports / "notes").mkdir()
    monkeypatch.setattr(os, "rename", rename)
    path = export.export(tmp_path / "run", exports)
    monkeypatch.undo()
    assert renamed == [path] == [exports / "8"]
    assert export.versions(exports) == [7, 8]
    assert sorted(p.name for p in exports.iterdir()) == ["7", "8", "notes"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~umask
    shutil.rmtree(tmp_path / "run")
    loaded = tf.saved_model.load(str(path.rename(tmp_path / "moved"))).signatures
    found = loaded["serving_default"](inputs=tf.constant(tiny_run.SENTENCES))
    assert any(found["outputs"].numpy())


def test_failed_export_leaves_nothing(run_dir, tmp_path, monkeypatch):
    def fail(served, path, **kwargs):
        os.makedirs(f"{path}/variables")
        raise OSError("No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(OSError, match="No space"):
        export.export(run_dir, tmp_path / "export")
    assert list((tmp_path / "export").iterdir()) == []


def test_what_killed_exports_left_is_removed_and_what_others_write_is_not(tmp_path):
    for name in (".incomplete-dead", ".incomplete-alive"):
        (tmp_path / name / "variables").mkdir(parents=True)
    (tmp_path / ".incomplete-dead.lock").touch()
    (tmp_path / ".incomplete-gone.lock").touch()
    with locks.only_one(tmp_path / ".incomplete-alive.lock"):
        export._remove_leftovers(tmp_path)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {".incomplete-alive", ".incomplete-alive.lock"}


def test_a_version_taken_meanwhile_is_passed_over(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "saved_model.pb").touch()
    (tmp_path / ".incomplete-1").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "versions", lambda path: [1])
        assert export._publish(tmp_path / ".incomplete-1", tmp_path) == tmp_path / "3"


def test_a_file_that_has_a_versions_name_is_passed_over(tmp_path, monkeypatch):
    tried = []

    def rename(source, target):
        tried.append(target)
        assert len(tried) < 9, "it tries for ever"
        os.replace(source, target)

    (tmp_path / "1").touch()
    (tmp_path / ".incomplete-1").mkdir()
    monkeypatch.setattr(os, "rename", rename)
    assert export._publish(tmp_path / ".incomplete-1", tmp_path) == tmp_path / "2"


def test_mistakes_write_nothing(run_dir, tmp_path):
    with pytest.raises(errors.UserError, match="no checkpoint"):
        export.export(run_dir, tmp_path / "export", checkpoint_path=str(tmp_path))
    assert not (tmp_path / "export").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.UserError, match="is a file"):
        export.export(run_dir, tmp_path / "file")
