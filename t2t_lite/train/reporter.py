"""What people see while a model trains: a bar or plain lines, and TensorBoard.

The scalars carry the names that tensor2tensor's users know where these exist: "loss",
"learning_rate", "global_step/sec", and "metrics-<problem>/targets/..." for the dev split.

The loss shown is a running mean: batches hold sentences of one length, and long ones are harder,
so that the loss of a single batch says more about its length than about the model. So are the
speeds, and the time left, which count training alone: no compilation, evaluation or saving.
"""

import math
import pathlib
from collections.abc import Mapping
from typing import IO

import tensorflow as tf

from t2t_lite import progress

_DECAY = 0.99  # of the running means, a step
_SUMMARY_STEPS = 100  # between two points of TensorBoard's curves
_SHOWN_STEPS = 100  # after a shape was compiled, in which lines tell how many there are


class RunningMean:
    """A mean in which the last hundred steps, about, count; NaN before the first."""

    def __init__(self) -> None:
        self._sum = self._weight = 0.0

    def add(self, amount: float, weight: float = 1.0) -> None:
        """Add an amount, such as tokens, for so much weight, such as seconds."""
        self._sum = _DECAY * self._sum + amount
        self._weight = _DECAY * self._weight + weight

    @property
    def value(self) -> float:
        """The mean: the amount for a weight of 1."""
        return self._sum / self._weight if self._weight else math.nan


class Reporter:
    """Reports one run; TensorBoard's event files go to the output_dir, dev figures to `eval/`.

    Args:
      directory: the output_dir; None: no events.
      stream: where progress is shown; None: nowhere.
      first_step, last_step: the updates of this run are first_step + 1 ... last_step.
    """

    def __init__(
        self,
        directory: pathlib.Path | None,
        *,
        stream: IO[str] | None,
        first_step: int,
        last_step: int,
    ):
        self._last_step = last_step
        self._train_events = self._eval_events = tf.summary.create_noop_writer()
        if directory is not None:
            self._train_events = tf.summary.create_file_writer(str(directory))
            self._eval_events = tf.summary.create_file_writer(str(directory / "eval"))
        self._progress = progress.Progress("step", stream=stream, first=first_step)
        self._loss, self._steps_per_second = RunningMean(), RunningMean()
        self._tokens_per_second = RunningMean()
        self._shapes, self._last_compiled = 0, 0

    def compiled(self, step: int, shape: str, seconds: float) -> None:
        """Report that an update was compiled first, for a shape of batch that is new.

        The first has a line. Of the others, which are as many as there are shapes, the lines of
        the next hundred updates tell the number.
        """
        self._shapes, self._last_compiled = self._shapes + 1, step
        if self._shapes == 1:
            self.line(
                f"step {step}: compiled for batches of {shape} in {seconds:.1f} s; each further "
                "shape is compiled when it first comes"
            )

    def step(
        self, step: int, *, loss: float, learning_rate: float, tokens: int, seconds: float | None
    ) -> None:
        """Report an update.

        Args:
          loss: of its batch; one that is not finite stays out of the mean.
          tokens: its real source and target tokens.
          seconds: what it took; None where it was compiled first, which is no speed.
        """
        if math.isfinite(loss):
            self._loss.add(loss)
        if seconds is not None:
            self._steps_per_second.add(1, seconds)
            self._tokens_per_second.add(tokens, seconds)
        figures = f"loss {self._loss.value:.3f}  rate {learning_rate:.2e}"
        if not math.isnan(self._tokens_per_second.value):
            figures += f"  {self._tokens_per_second.value:,.0f} tokens/s"
        if self._shapes > 1 and step - self._last_compiled < _SHOWN_STEPS:
            figures += f"  {self._shapes} shapes compiled"
        self._progress.update(
            step,
            self._last_step,
            figures=figures,
            seconds_each=1 / self._steps_per_second.value,
            is_last=step == self._last_step,
        )
        if step % _SUMMARY_STEPS == 0:
            with self._train_events.as_default(step=step):
                tf.summary.scalar("loss", self._loss.value)
                tf.summary.scalar("learning_rate", learning_rate)
                tf.summary.scalar("global_step/sec", self._steps_per_second.value)
                tf.summary.scalar("tokens/sec", self._tokens_per_second.value)

    def evaluation(self, step: int, problem: str, values: Mapping[str, float], text: str) -> None:
        """Report figures of the dev split, and a line about them."""
        with self._eval_events.as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(f"metrics-{problem}/targets/{name}", value)
        self.line(f"step {step}  dev: {text}")

    @property
    def reader_has_left(self) -> bool:
        """Whether nobody reads what is shown any more."""
        return self._progress.reader_has_left

    def line(self, text: str) -> None:
        """Show one line."""
        self._progress.line(text)

    def close(self) -> None:
        """Write out the events and leave the progress as it stands."""
        self._progress.close()
        self._train_events.close()
        self._eval_events.close()
