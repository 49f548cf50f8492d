"""t2t-lite-avg-checkpoints: which checkpoints it takes."""

import dataclasses

import numpy as np
import pytest
import tiny_run

from t2t_lite import config
from t2t_lite.bin import avg_checkpoints
from t2t_lite.run import checkpoint

NAME = "t2t-lite-avg-checkpoints"


@pytest.fixture
def run_dir(tmp_path):
    """Return a run with seven checkpoints whose hparams average five."""
    return tiny_run.write(tmp_path, seeds=range(1, 8))


def _average(run_dir, *flags):
    return avg_checkpoints.main([NAME, f"--output_dir={run_dir}", *flags])


def _matrix(prefix):
    return checkpoint.read_weights(str(prefix))["embedding/matrix"]


@pytest.mark.parametrize(
    ("flags", "steps"),
    [
        ([], [3, 4, 5, 6, 7]),
        (["--num_last_checkpoints=2"], [6, 7]),
        (["--checkpoints=1,4"], [1, 4]),
        (["--checkpoints=RUN/ckpt-2,5"], [2, 5]),
    ],
)
def test_the_mean_is_of_the_hparams_number_unless_others_are_named(run_dir, capsys, flags, steps):
    assert _average(run_dir, *(flag.replace("RUN", str(run_dir)) for flag in flags)) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line == (
        f"{run_dir}/averaged/ckpt-{steps[-1]}: the mean of {len(steps)} checkpoints, "
        f"{run_dir}/ckpt-{steps[0]} to {run_dir}/ckpt-{steps[-1]}"
    )
    mean = np.mean([_matrix(run_dir / f"ckpt-{step}") for step in steps], axis=0)
    averaged = _matrix(checkpoint.resolve(run_dir / "averaged"))
    np.testing.assert_allclose(averaged, mean, atol=1e-6)


def test_fewer_than_the_hparams_number_are_averaged_and_it_says_so(run_dir, capsys):
    hparams = dataclasses.replace(tiny_run.HPARAMS, averaged_checkpoints=20)
    (run_dir / "hparams.json").write_text(config.to_json(hparams))
    assert _average(run_dir) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "the mean of 7 checkpoints" in first
    assert second == "averaged_checkpoints is 20; the run has no more checkpoints"


def test_checkpoints_of_another_model_are_refused(run_dir, tmp_path, capsys):
    """Of the same names and shapes: other heads."""
    hparams = dataclasses.replace(tiny_run.HPARAMS, num_heads=4, d_k=4, d_v=4)
    other = tiny_run.write(tmp_path / "other", hparams=hparams)
    assert _average(run_dir, f"--checkpoints=1,{other}/ckpt-1") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{other}/ckpt-1 holds the weights of another model (num_heads 2 -> 4" in line
    assert not (run_dir / "averaged").exists()


def test_a_run_without_checkpoints_is_named(tmp_path, capsys):
    run_dir = tiny_run.write(tmp_path, seeds=())
    assert _average(run_dir) == 1
    assert f"no checkpoint at {run_dir}" in capsys.readouterr().err
