"""t2t-lite-trainer: what it prints; tests/train has the training, and how it answers mistakes."""

import json

import tiny_training


def test_it_says_what_was_done_and_where_it_is(tiny_data, tmp_path, capsys):
    assert tiny_training.train(tiny_data, tmp_path, "--train_steps=3") == 0
    captured = capsys.readouterr()
    done, best = captured.out.splitlines()
    assert done.startswith(f"{tmp_path}: 3 steps in ")
    assert "tokens/s" in done
    assert best == f"best dev score at step 3: {tmp_path}/best"
    assert "parallel_text: " in captured.err.splitlines()[0]
    assert json.loads((tmp_path / "hparams.json").read_text())["train_steps"] == 3
    assert tiny_training.train(tiny_data, tmp_path, "--train_steps=3") == 0
    done, _ = capsys.readouterr().out.splitlines()
    assert done.startswith(f"{tmp_path}: 0 steps in ")
    assert "tokens/s" not in done  # nothing was trained, so nothing has a speed
