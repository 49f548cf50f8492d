"""t2t-lite-exporter: versions, what a full disk leaves."""

import subprocess
import sys

import exports
import golden_numbers
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.bin import exporter
from t2t_lite.imports import imported, tensor2tensor


def _export(*flags):
    return exporter.main(["t2t-lite-exporter", *flags])


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return tiny_run.write(tmp_path_factory.mktemp("exported"), seeds=(1, 2))


def test_writes_a_version_with_the_flags_in_it(run_dir, tmp_path, capsys):
    status = _export(
        f"--output_dir={run_dir}",
        f"--export_dir={tmp_path}",
        f"--checkpoint_path={run_dir}/ckpt-1",
        "--decode_hparams=beam_size=2,extra_length=3",
        "--max_source_length=6",
        "--precision=bfloat16",
    )
    assert status == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{tmp_path}/1: ")
    assert (
        "requests of up to 1,024 rows, signatures from_ids, nbest, score, serving_default, tokenize"
        in said
    )
    signatures = tf.saved_model.load(str(tmp_path / "1")).signatures
    texts = tf.constant(["a", "a dog runs in the park"])
    assert signatures["nbest"](inputs=texts)["outputs"].shape == (2, 2)
    tokens = signatures["tokenize"](inputs=texts)
    assert [len(row.split()) for row in tokens["ids"].numpy()][1:] == [6]
    assert tokens["truncated"].numpy().tolist() == [False, True]
    outputs = signatures["from_ids"](ids=tokens["ids"])["ids"].numpy()
    assert all(len(row.split()) <= 6 + 3 for row in outputs)


def test_an_imported_model_of_tensor2tensor_takes_text(tmp_path):
    golden_numbers.write_checkpoint(tmp_path, "t2t_prenorm")
    imported.write(tensor2tensor.read(tmp_path), tmp_path / "run")
    texts = ["\u03b1\u03b2 \u03b3", "\u03b4, \u03b5_", "\u2603", ""]
    _, found = exports.says_the_same(tmp_path / "run", tmp_path / "export", texts, extra_length=5)
    assert any(translation.text for translation in found)


def test_a_full_disk_is_one_line_and_leaves_nothing(run_dir, tmp_path):
    """A limit on the size of files stands for the disk; TensorFlow itself writes the weights."""
    code = (
        "import resource, sys; from t2t_lite.bin import exporter;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); sys.exit(exporter.main())"
    )
    flags = [f"--output_dir={run_dir}", f"--export_dir={tmp_path}"]
    done = subprocess.run([sys.executable, "-c", code, *flags], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("-c: the export cannot be written: ")
    assert "File too large" in last
    assert list(tmp_path.iterdir()) == []
