"""Progress of a training: a bar or plain lines, and TensorBoard.

The scalars have tensor2tensor's names: "loss", "learning_rate", "global_step/sec", and
"metrics-<problem>/targets/..." for the dev split.

The loss shown is a running mean: a batch holds sentences of one length, so its own loss says more
about that length than about the model. Speeds and the time left are running means too, of training
alone, without compilation, evaluation and saving.
"""

import math
import os
import pathlib
from collections.abc import Mapping
from typing import IO

import tensorflow as tf

from t2t_lite import progress

_DECAY = 0.99  # of the running means, a step
_SUMMARY_STEPS = 100  # between two points of TensorBoard's curves
_SHOWN_STEPS = 100  # after a shape was compiled, in which lines show the number of shapes


class RunningMean:
    """A mean over about the last hundred steps; NaN before the first."""

    def __init__(self) -> None:
        self._sum = self._weight = 0.0

    def add(self, amount: float, weight: float = 1.0) -> None:
        """Add an amount, such as tokens, with a weight, such as seconds."""
        self._sum = _DECAY * self._sum + amount
        self._weight = _DECAY * self._weight + weight

    @property
    def value(self) -> float:
        """The mean: the amount for a weight of 1."""
        return self._sum / self._weight if self._weight else math.nan


class Reporter:
    """Reports one run; TensorBoard's events go to the output_dir, those of dev to its `eval/`.

    Args:
      directory: the output_dir; None: no events.
      stream: for the progress; None: it is not shown.
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
            # As bytes, which need not be UTF-8.
            self._train_events = tf.summary.create_file_writer(os.fsencode(directory))
            self._eval_events = tf.summary.create_file_writer(os.fsencode(directory / "eval"))
        self._progress = progress.Progress("step", stream=stream, first=first_step)
        self._loss, self._steps_per_second = RunningMean(), RunningMean()
        self._tokens_per_second = RunningMean()
        self._shapes, self._last_compiled = 0, 0

    def compiled(self, step: int, shape: str, seconds: float, *, num_shapes: int) -> None:
        """Report that an update was compiled first, for a new shape of batch.

        The first shape has a line of its own. For the others, the lines of the next hundred updates
        show the number of shapes.
        """
        self._shapes, self._last_compiled = self._shapes + 1, step
        if self._shapes == 1:
            others = f"; {num_shapes - 1} more as they come" if num_shapes > 1 else ""
            self.line(f"step {step}: compiled for batches of {shape} in {seconds:.1f} s{others}")

    def step(
        self, step: int, *, loss: float, learning_rate: float, tokens: int, seconds: float | None
    ) -> None:
        """Report an update.

        Args:
          loss: of its batch; left out of the mean if it is not finite.
          tokens: its real source and target tokens.
          seconds: its duration; None if it was compiled first.
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
        """Report scores of the dev split, and a line about them."""
        with self._eval_events.as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(f"metrics-{problem}/targets/{name}", value)
        self.line(f"step {step}  dev: {text}")

    @property
    def reader_has_left(self) -> bool:
        """Whether the reader of the progress has closed it."""
        return self._progress.reader_has_left

    def line(self, text: str) -> None:
        """Show one line."""
        self._progress.line(text)

    def close(self) -> None:
        """Write out the events and leave the progress as it stands."""
        self._progress.close()
        self._train_events.close()
        self._eval_events.close()
