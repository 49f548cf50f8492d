"""t2t-lite-exporter: versions, what it refuses, what a full disk leaves."""

import subprocess
import sys

import golden_numbers
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.bin import exporter
from t2t_lite.decode import translator
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
    assert capsys.readouterr().out.startswith(f"{tmp_path}/1: ")
    signatures = tf.saved_model.load(str(tmp_path / "1")).signatures
    texts = tf.constant(["a", "a dog runs in the park"])
    assert signatures["nbest"](inputs=texts)["outputs"].shape == (2, 2)
    tokens = signatures["tokenize"](inputs=texts)
    assert tokens["ids"].shape == (2, 6)
    assert tokens["truncated"].numpy().tolist() == [False, True]
    assert signatures["from_ids"](ids=tokens["ids"])["ids"].shape[1] <= 6 + 3


def test_an_imported_model_of_tensor2tensor_takes_text(tmp_path, capsys):
    golden_numbers.write_checkpoint(tmp_path, "t2t_prenorm")
    imported.write(tensor2tensor.read(tmp_path), tmp_path / "run")
    flags = (f"--output_dir={tmp_path}/run", "--decode_hparams=extra_length=5")
    assert _export(*flags, f"--export_dir={tmp_path}/export") == 0
    assert "signatures from_ids, nbest, score, serving_default, tokenize" in capsys.readouterr().out
    signatures = tf.saved_model.load(str(tmp_path / "export" / "1")).signatures
    texts = ["\u03b1\u03b2 \u03b3", "\u03b4, \u03b5_", "\u2603", ""]
    model = translator.Translator.from_output_dir(tmp_path / "run", extra_length=5)
    found = signatures["serving_default"](inputs=tf.constant(texts))
    expected = model.translate(texts)
    outputs = [text.decode() for text in found["outputs"].numpy()]
    assert outputs == [translation.text for translation in expected]
    assert any(outputs)
    ids = signatures["tokenize"](inputs=tf.constant(texts[:1]))["ids"].numpy().tolist()
    assert ids == [list(expected[0].source_ids)]


def test_ctrl_c_ends_it_with_130_and_leaves_nothing(run_dir, tmp_path, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(tf.saved_model, "save", interrupt)
    assert _export(f"--output_dir={run_dir}", f"--export_dir={tmp_path}") == 130
    assert capsys.readouterr().err.splitlines() == ["t2t-lite-exporter: interrupted"]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line_and_leaves_nothing(run_dir, tmp_path):
    """A limit on the size of files stands for the disk; TensorFlow itself writes the weights."""
    code = (
        "import resource, sys; from t2t_lite.bin import exporter;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); sys.exit(exporter.main())"
    )
    flags = [f"--output_dir={run_dir}", f"--export_dir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-c", code, *flags], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("-c: the export cannot be written: ")
    assert "File too large" in last
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "status", "says"),
    [
        ([], 2, "--output_dir and --export_dir must be given"),
        (["--output_dir=nowhere", "--export_dir=e"], 1, "nowhere is not an output_dir"),
        (["--output_dir=RUN", "--export_dir=e", "--checkpoint_path=x"], 1, "no checkpoint at x"),
        (["--output_dir=RUN", "--export_dir=e", "--decode_hparams=beam_sise=4"], 1, "beam_size"),
        (["--output_dir=RUN", "--export_dir=e", "--precision=int4"], 2, "int4"),
        (
            ["--output_dir=RUN", "--export_dir=e", "--decode_hparams=precision=mixed"],
            1,
            "as --precision",
        ),
        (["--output_dir=RUN", "--export_dir=e", "--max_source_length=1"], 2, "max_source_length"),
        (
            ["--output_dir=RUN", "--export_dir=e", "--decode_hparams=sampling=true,seed=3"],
            1,
            "an export searches, and returns the best output (serving_default) or all beam_size of "
            "them (nbest), without their tokens: leave out sampling, seed",
        ),
        (["--output_dir=RUN", "--export_dir=e", "--decode_hparams=return_beams=2"], 1, "leave out"),
    ],
)
def test_mistakes_are_one_line(run_dir, tmp_path, monkeypatch, capsys, flags, status, says):
    monkeypatch.chdir(tmp_path)
    assert _export(*[flag.replace("RUN", str(run_dir)) for flag in flags]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert list(tmp_path.iterdir()) == []
