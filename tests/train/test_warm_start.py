"""A warm start takes the weights that fit, and says which do not."""

import shutil

import tiny_training


def test_a_warm_start_is_from_weights_of_this_vocabulary_that_fit(
    tiny_data, trained, tmp_path, capsys
):
    start = ["--train_steps=1", f"--warm_start_from={trained}"]
    other = tiny_training.generate_data(tmp_path, backwards=True)
    assert tiny_training.train(other, tmp_path / "run", *start) == 1
    assert "was trained with another vocabulary" in capsys.readouterr().err
    wider = "--hparams=d_model=24,d_ff=40"
    assert tiny_training.train(tiny_data, tmp_path / "run", *start, wider) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "none of its weights has the name and shape" in line
    assert not (tmp_path / "run").exists()
    changed = "--hparams=num_heads=4,d_k=4,d_v=4,d_ff=64"  # the attention's shapes are the same
    assert tiny_training.train(tiny_data, tmp_path / "run", *start, changed) == 0
    error = capsys.readouterr().err
    assert "the model differs: d_ff 32 -> 64, num_heads 2 -> 4, d_k 8 -> 4" in error
    assert "warm start: 20 of 26 weights" in error
    assert "newly initialised: decoder_0/feed_forward/bias_1" in error


def test_a_run_goes_on_from_its_own_weights_and_not_for_another_warm_start(
    tiny_data, trained, tmp_path, capsys
):
    run, start = tmp_path / "run", [f"--warm_start_from={trained}", "--eval_frequency=100"]
    assert tiny_training.train(tiny_data, run, *start, "--train_steps=1") == 0
    assert tiny_training.train(tiny_data, run, *start, "--train_steps=2") == 0
    assert "--warm_start_from was for the start" in capsys.readouterr().err
    start = ["--train_steps=3", f"--warm_start_from={trained}/best"]
    assert tiny_training.train(tiny_data, run, *start) == 1
    assert "run with other settings or data (warm_start " in capsys.readouterr().err
    moved = shutil.copytree(trained, tmp_path / "moved")
    start = ["--train_steps=3", f"--warm_start_from={moved}"]
    assert tiny_training.train(tiny_data, run, *start) == 0


def test_the_run_that_a_warm_start_was_from_may_train_on(tiny_data, tmp_path):
    source, run = tmp_path / "source", tmp_path / "run"
    start = f"--warm_start_from={source}"
    for steps in (1, 2):
        assert tiny_training.train(tiny_data, source, f"--train_steps={steps}") == 0
        assert tiny_training.train(tiny_data, run, start, f"--train_steps={steps}") == 0
