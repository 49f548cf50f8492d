"""Folders whose names TensorFlow takes for patterns, or cannot take at all."""

import os
import shutil

import numpy as np
import pytest
import tiny_training

import t2t_lite
from t2t_lite import errors
from t2t_lite.bin import avg_checkpoints, decoder, exporter
from t2t_lite.run import checkpoint, plain_paths


@pytest.mark.parametrize("name", [b"run[1]", b"a?*", b"back\\slash", b"caf\xe9"])
def test_a_folder_with_another_name_has_a_plain_one(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    path.mkdir()
    assert not plain_paths.is_plain(path)
    with plain_paths.folder(path) as plain:
        assert plain_paths.is_plain(plain)
        assert plain.samefile(path)
    assert not plain.exists()
    with plain_paths.folder(tmp_path) as plain:
        assert plain == tmp_path


def test_every_command_works_in_a_folder_of_any_name(tiny_data, tmp_path, capsys):
    folder = tmp_path / os.fsdecode(b"caf\xe9 [1]?*\\")
    data = shutil.copytree(tiny_data, folder / "data")
    run, flags = folder / "run", ("--save_checkpoints_steps=2", "--hparams=extra_length=2")
    for steps in (2, 4):
        assert tiny_training.train(data, run, *flags, f"--train_steps={steps}") == 0
    assert "from step 2 to 4" in capsys.readouterr().err
    assert all(list(folder.glob("events.*")) for folder in (run, run / "eval"))
    warm = ("--train_steps=1", f"--warm_start_from={run}")
    assert tiny_training.train(data, folder / "other", *warm) == 0
    assert avg_checkpoints.main(["x", f"--output_dir={run}", "--num_last_checkpoints=2"]) == 0
    averaged = checkpoint.read_weights(checkpoint.resolve(run / "averaged"))
    (_, first), (_, last) = checkpoint.list_checkpoints(run)
    for name, value in checkpoint.read_weights(first).items():
        mean = (value + checkpoint.read_weights(last)[name]) / 2
        np.testing.assert_allclose(averaged[name], mean, rtol=1e-6)
    source, output = f"--decode_from_file={data}/parallel_text-dev.inputs.txt", folder / "out"
    assert decoder.main(["x", f"--output_dir={run}", source, f"--decode_to_file={output}"]) == 0
    assert exporter.main(["x", f"--output_dir={run}", f"--export_dir={folder}/export"]) == 0
    assert "TensorFlow Serving cannot load" in capsys.readouterr().err
    lines = (data / "parallel_text-dev.inputs.txt").read_text("utf-8").splitlines()
    translations = t2t_lite.load(folder / "export").translate(lines)
    assert [each.text for each in translations] == output.read_text("utf-8").split("\n")[:-1]


def test_files_whose_own_name_is_a_pattern_are_named(tmp_path):
    with pytest.raises(errors.UserError, match="rename them"):
        checkpoint.read_weights(str(tmp_path / "keep[1]-ckpt-5"))
