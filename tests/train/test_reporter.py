"""What the trainer's lines say."""

import io

from t2t_lite.train import reporter


def _report(losses):
    stream = io.StringIO()
    report = reporter.Reporter(None, stream=stream, first_step=0, last_step=len(losses))
    for step, loss in enumerate(losses, start=1):
        report.step(step, loss=loss, learning_rate=1e-3, tokens=100)
    report.close()
    return stream.getvalue()


def test_the_loss_is_a_running_mean_that_starts_unbiased():
    assert "step 1/1  loss 3.000  rate 1.00e-03" in _report([3.0])
    assert "loss 2.50" in _report([2.0, 3.0] * 500)


def test_a_loss_that_is_not_finite_stays_out_of_the_mean():
    assert "loss 3.000" in _report([3.0, float("nan"), float("inf")])
    assert "loss nan" in _report([float("nan")])
