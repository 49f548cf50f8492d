"""What the trainer's lines say."""

import io

from t2t_lite import progress
from t2t_lite.train import reporter


def _report(losses, *, seconds: float | None = 0.1):
    stream = io.StringIO()
    report = reporter.Reporter(None, stream=stream, first_step=0, last_step=len(losses))
    for step, loss in enumerate(losses, start=1):
        report.step(step, loss=loss, learning_rate=1e-3, tokens=100, seconds=seconds)
    report.close()
    return stream.getvalue()


def test_the_loss_is_a_running_mean_that_starts_unbiased_and_forgets():
    assert "step 1/1  loss 3.000  rate 1.00e-03  1,000 tokens/s" in _report([3.0])
    assert "loss 2.50" in _report([2.0, 3.0] * 500)
    assert "loss 3.000" in _report([2.0] * 500 + [3.0] * 1500)


def test_a_loss_that_is_not_finite_stays_out_of_the_mean():
    assert "loss 3.000" in _report([3.0, float("nan"), float("inf")])
    assert "loss nan" in _report([float("nan")])


def test_steps_that_were_compiled_are_no_speed():
    assert "tokens/s" not in _report([3.0, 3.0], seconds=None)


def test_the_time_left_counts_no_compiling(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    report = reporter.Reporter(None, stream=stream, first_step=0, last_step=602)
    for seconds in (None, 0.1):
        now[0] += 40
        report.step(int(now[0]) // 40, loss=3.0, learning_rate=1e-3, tokens=100, seconds=seconds)
    compiled, trained = stream.getvalue().splitlines()
    assert "left" not in compiled
    assert trained.endswith("1:00 left")


def test_compiling_has_one_line_and_then_a_number():
    stream = io.StringIO()
    report = reporter.Reporter(None, stream=stream, first_step=0, last_step=3)
    for step in (1, 2, 3):
        report.compiled(step, f"{step} x 8 tokens", 2.0, num_shapes=3)
        report.step(step, loss=3.0, learning_rate=1e-3, tokens=100, seconds=None)
    first, last = stream.getvalue().splitlines()
    assert first == "step 1: compiled for batches of 1 x 8 tokens in 2.0 s; 2 more as they come"
    assert last.startswith("step 3/3  loss 3.000")
    assert "3 shapes compiled" in last
