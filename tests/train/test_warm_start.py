"""A warm start takes the weights that fit, and says which do not."""

import shutil

import tiny_training

from t2t_lite.bin import trainer


def test_a_warm_start_is_from_weights_of_this_vocabulary_that_fit(
    tiny_data, trained, tmp_path, capsys
):
    start = ["--train_steps=1", f"--warm_start_from={trained}"]
    other = tiny_training.generate_data(tmp_path, backwards=True)
    assert trainer.main(tiny_training.arguments(other, tmp_path / "run", *start)) == 1
    assert "was trained with another vocabulary" in capsys.readouterr().err
    wider = f"--hparams={tiny_training.HPARAMS},d_model=24,d_ff=40"
    assert trainer.main([*tiny_training.arguments(tiny_data, tmp_path / "run", *start), wider]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "none of its weights has the name and shape" in line
    assert not (tmp_path / "run").exists()
    heads = f"--hparams={tiny_training.HPARAMS},num_heads=4,d_k=4,d_v=4"  # the same shapes
    assert trainer.main([*tiny_training.arguments(tiny_data, tmp_path / "run", *start), heads]) == 0
    assert "the model differs: num_heads 2 -> 4, d_k 8 -> 4" in capsys.readouterr().err


def test_a_run_goes_on_from_its_own_weights_and_not_for_another_warm_start(
    tiny_data, trained, tmp_path, capsys
):
    start = [f"--warm_start_from={trained}", "--eval_frequency=100"]
    arguments = tiny_training.arguments(tiny_data, tmp_path / "run", *start)
    assert trainer.main([*arguments, "--train_steps=1"]) == 0
    assert trainer.main([*arguments, "--train_steps=2"]) == 0
    assert "--warm_start_from was for the start" in capsys.readouterr().err
    other = [*arguments, "--train_steps=3", f"--warm_start_from={trained}/best"]
    assert trainer.main(other) == 1
    assert "run with other settings or data (warm_start " in capsys.readouterr().err
    moved = tmp_path / "moved"
    shutil.copytree(trained, moved)
    assert trainer.main([*arguments, "--train_steps=3", f"--warm_start_from={moved}"]) == 0


def test_warm_start_lists_what_fits_and_what_does_not(tiny_data, trained, tmp_path, capsys):
    flags = [
        "--train_steps=1",
        f"--warm_start_from={trained}",
        f"--hparams={tiny_training.HPARAMS},d_ff=64",
    ]
    assert trainer.main([*tiny_training.arguments(tiny_data, tmp_path), *flags]) == 0
    error = capsys.readouterr().err
    assert "warm start: 20 of 26 weights" in error
    assert "newly initialised: decoder_0/feed_forward/bias_1" in error
