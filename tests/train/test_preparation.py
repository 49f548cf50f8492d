"""What does not go together is refused with one line, before anything is written."""

import re
import shutil

import pytest
import tiny_training

from t2t_lite import registry
from t2t_lite.data import data_dir


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("--hparams=d_ff=64", "d_ff 32 -> 64"),
        ("--random_seed=9", "random_seed 1 -> 9"),
        ("--precision=bfloat16", "precision float32 -> bfloat16"),
        ("--train_steps=11", "is at step 12 already, beyond --train_steps=11"),
    ],
)
def test_other_settings_are_refused(tiny_data, trained, capsys, change, expected):
    files = trained / "hparams.json", trained / "run.json"
    before = [path.read_bytes() for path in files]
    assert tiny_training.train(tiny_data, trained, "--train_steps=12", change) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line
    assert before == [path.read_bytes() for path in files]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("--problem=parallel_tex", "did you mean parallel_text"),
        ("--hparams_set=transformer_bas", "did you mean transformer_base"),
        ("--hparams=droput=0.1", "did you mean dropout"),
        ("--hparams=dropout=much", "dropout is a number"),
        ("--hparams=d_model=33", "d_model is even"),
        ("--hparams=max_length=5", "no training pair of parallel_text has at most"),
        ("--hparams=learning_rate_scale=nan", "learning_rate_scale is a number"),
        ("--hparams=d_model=100000000", "parameters needs at least "),
        ("--hparams=batch_tokens=2000000000", ": lower max_tokens_per_device"),
        ("--random_seed=-1", "--random_seed=-1: expected a whole number, at least 0"),
        ("--save_checkpoints_secs=nan", "expected a number"),
        ("--warm_start_from=nowhere", "no checkpoint at nowhere"),
        ("--hparams=next_word=2", "next_word is for parsing problems"),
        ("--data_dir=nowhere", "nowhere"),
        ("--problem=toy_enfr", "toy_enfr"),
        ("--strategy=multi_worker", "TF_CONFIG"),
        ("--train_step=3", "train_step"),
        ("--train_steps=many", "train_steps"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(tiny_data, tmp_path, capsys, change, expected):
    assert tiny_training.train(tiny_data, tmp_path / "new", change) in (1, 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line
    assert not (tmp_path / "new").exists()


def test_other_data_are_refused_however_alike_they_look(tiny_data, trained, tmp_path, capsys):
    other = tiny_training.generate_data(tmp_path, backwards=True)
    assert {path.name for path in other.iterdir()} == {path.name for path in tiny_data.iterdir()}
    assert tiny_training.train(other, trained, "--train_steps=13") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"holds a run with other settings or data \(vocabulary \w{8} -> \w{8}\)", line)
    # Moved data are the same.
    moved = shutil.copytree(tiny_data, tmp_path / "moved")
    assert tiny_training.train(moved, trained, "--train_steps=12") == 0
    # The same vocabulary over other shards, as after datagen --overwrite with more text.
    made = data_dir.read(moved, registry.problem("parallel_text"))
    made.splits["train"]["shards"][0]["sha256"] = "other"
    made.save()
    capsys.readouterr()
    assert tiny_training.train(moved, trained, "--train_steps=13") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"\(training data \w{8} -> \w{8}\).*--warm_start_from", line)
