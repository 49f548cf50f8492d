"""t2t-lite-trainer: what it prints, and how it answers mistakes; tests/train has the training."""

import json

import pytest

from t2t_lite.bin import trainer

pytestmark = pytest.mark.integration

TINY = (
    "d_model=16,d_ff=32,num_heads=2,d_k=8,d_v=8,num_encoder_layers=1,num_decoder_layers=1,"
    "batch_tokens=512,max_buckets=1,warmup_steps=10"
)


def _train(data, output, *more):
    flags = ["--problem=parallel_text", f"--data_dir={data}", f"--output_dir={output}"]
    flags += ["--hparams_set=transformer_toy", f"--hparams={TINY}", "--eval_sentences=0"]
    return trainer.main(["t2t-lite-trainer", *flags, *more])


def test_it_says_what_was_done_and_where_it_is(tiny_data, tmp_path, capsys):
    assert _train(tiny_data, tmp_path, "--train_steps=3") == 0
    captured = capsys.readouterr()
    done, best = captured.out.splitlines()
    assert done.startswith(f"{tmp_path}: 3 steps in ")
    assert "tokens/s" in done
    assert best == f"best dev score at step 3: {tmp_path}/best"
    assert "parallel_text: " in captured.err.splitlines()[0]
    assert json.loads((tmp_path / "hparams.json").read_text())["train_steps"] == 3
    assert _train(tiny_data, tmp_path, "--train_steps=3") == 0
    assert f"{tmp_path}: 0 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("--problem=parallel_tex", "did you mean parallel_text"),
        ("--hparams_set=transformer_bas", "did you mean transformer_base"),
        ("--hparams=droput=0.1", "did you mean dropout"),
        ("--hparams=dropout=much", "dropout is a number"),
        ("--hparams=guided_alignment=1", "guided_alignment is for parsing problems"),
        ("--data_dir=nowhere", "nowhere"),
        ("--problem=toy_enfr", "toy_enfr"),
        ("--strategy=multi_worker", "TF_CONFIG"),
        ("--train_step=3", "train_step"),
        ("--train_steps=many", "train_steps"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(tiny_data, tmp_path, capsys, change, expected):
    output = tmp_path / "new"
    status = _train(tiny_data, output, change)
    error = capsys.readouterr().err
    assert status in (1, 2)
    assert expected in error
    assert error.count("\n") == 1, error
    assert not (output / "run.json").exists() or change.startswith("--strategy")
