"""What does not go together is refused with one line, before anything is written."""

import re
import shutil

import pytest
import tiny_training

from t2t_lite import registry
from t2t_lite.bin import trainer
from t2t_lite.data import data_dir


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (["--hparams=d_ff=64"], "d_ff 32 -> 64"),
        (["--random_seed=9"], "random_seed 1 -> 9"),
        (["--precision=bfloat16"], "precision float32 -> bfloat16"),
    ],
)
def test_other_settings_are_refused(tiny_data, trained, capsys, change, expected):
    if change[0].startswith("--hparams"):
        change = [f"--hparams={tiny_training.HPARAMS},d_ff=64"]
    before = (trained / "hparams.json").read_bytes(), (trained / "run.json").read_bytes()
    assert (
        trainer.main([*tiny_training.arguments(tiny_data, trained, "--train_steps=12"), *change])
        == 1
    )
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert before == ((trained / "hparams.json").read_bytes(), (trained / "run.json").read_bytes())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("--problem=parallel_tex", "did you mean parallel_text"),
        ("--hparams_set=transformer_bas", "did you mean transformer_base"),
        ("--hparams=droput=0.1", "did you mean dropout"),
        ("--hparams=dropout=much", "dropout is a number"),
        (f"--hparams={tiny_training.HPARAMS},d_model=33", "d_model is even"),
        (
            f"--hparams={tiny_training.HPARAMS},max_length=5",
            "no training pair of parallel_text has at most",
        ),
        (
            f"--hparams={tiny_training.HPARAMS},learning_rate_scale=nan",
            "learning_rate_scale is a number",
        ),
        (f"--hparams={tiny_training.HPARAMS},d_model=100000000", "parameters needs at least "),
        (
            f"--hparams={tiny_training.HPARAMS},batch_tokens=2000000000",
            ": lower max_tokens_per_device",
        ),
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
    output = tmp_path / "new"
    status = trainer.main([*tiny_training.arguments(tiny_data, output), change])
    error = capsys.readouterr().err
    assert status in (1, 2)
    assert expected in error
    assert error.count("\n") == 1, error
    assert not output.exists()


def test_other_data_are_refused_however_alike_they_look(tiny_data, trained, tmp_path, capsys):
    other = tiny_training.generate_data(tmp_path, backwards=True)
    assert {path.name for path in other.iterdir()} == {path.name for path in tiny_data.iterdir()}
    assert trainer.main(tiny_training.arguments(other, trained, "--train_steps=13")) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"holds a run with other settings or data \(vocabulary \w{8} -> \w{8}\)", line)
    # The same vocabulary over other shards, as after datagen --overwrite with more text.
    same = tmp_path / "same"
    shutil.copytree(tiny_data, same)
    made = data_dir.read(same, registry.problem("parallel_text"))
    made.splits["train"]["shards"][0]["sha256"] = "other"
    made.save()
    assert trainer.main(tiny_training.arguments(same, trained, "--train_steps=13")) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"\(training data \w{8} -> \w{8}\).*--warm_start_from", line)
    # Moved data are the same.
    moved = tmp_path / "moved"
    shutil.copytree(tiny_data, moved)
    assert trainer.main(tiny_training.arguments(moved, trained, "--train_steps=12")) == 0
