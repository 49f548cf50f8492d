"""What people see while a model trains: a bar or plain lines, and TensorBoard.

The scalars carry the names that tensor2tensor's users know where these exist: "loss",
"learning_rate", "global_step/sec", and "metrics-<problem>/targets/..." for the dev split.

The loss shown is a running mean: batches hold sentences of one length, and long ones are harder,
so that the loss of a single batch says more about its length than about the model.
"""

import math
import pathlib
import time
from collections.abc import Mapping
from typing import IO

import tensorflow as tf
import tqdm

_LINE_SECONDS = 30  # between two plain lines
_LOSS_DECAY = 0.99  # of the loss's running mean, a step


class Reporter:
    """Reports one run; TensorBoard's event files go to the output_dir, dev figures to `eval/`.

    Args:
      directory: the output_dir; None: no events.
      stream: where progress is shown: a bar on a terminal, otherwise a line now and then.
      first_step, last_step: the updates of this run are first_step + 1 ... last_step.
    """

    def __init__(
        self,
        directory: pathlib.Path | None,
        *,
        stream: IO[str],
        first_step: int,
        last_step: int,
        summary_steps: int = 100,
    ):
        self._stream = stream
        self._summary_steps = summary_steps
        self._last_step = last_step
        self._train_events = self._eval_events = tf.summary.create_noop_writer()
        if directory is not None:
            self._train_events = tf.summary.create_file_writer(str(directory))
            self._eval_events = tf.summary.create_file_writer(str(directory / "eval"))
        self._bar = None
        if stream.isatty():
            self._bar = tqdm.tqdm(
                initial=first_step, total=last_step, unit="step", file=stream, dynamic_ncols=True
            )
        self._line_time = self._window_time = time.monotonic()
        self._line_step = self._window_step = first_step
        self._line_tokens = self._window_tokens = 0
        self._loss_sum = self._loss_weight = 0.0

    def step(self, step: int, *, loss: float, learning_rate: float, tokens: int) -> None:
        """Report an update; `tokens` are its real source and target tokens, for the speed."""
        loss = self._mean_loss(loss)
        self._line_tokens += tokens
        self._window_tokens += tokens
        now = time.monotonic()
        if step % self._summary_steps == 0:
            seconds = max(now - self._window_time, 1e-9)
            with self._train_events.as_default(step=step):
                tf.summary.scalar("loss", loss)
                tf.summary.scalar("learning_rate", learning_rate)
                steps = step - self._window_step
                tf.summary.scalar("global_step/sec", steps / seconds)
                tf.summary.scalar("tokens/sec", self._window_tokens / seconds)
            self._window_time, self._window_step, self._window_tokens = now, step, 0
        if self._bar is not None:
            self._bar.set_postfix_str(self._figures(loss, learning_rate, now), refresh=False)
            self._bar.update(1)
        elif now - self._line_time >= _LINE_SECONDS or step == self._last_step:
            rate = (now - self._line_time) / max(step - self._line_step, 1)
            left = _duration((self._last_step - step) * rate)
            figures = self._figures(loss, learning_rate, now)
            self.line(f"step {step}/{self._last_step}  {figures}  {left} left")
            self._line_time, self._line_step, self._line_tokens = now, step, 0

    def evaluation(self, step: int, problem: str, values: Mapping[str, float], text: str) -> None:
        """Report figures of the dev split, and a line about them."""
        with self._eval_events.as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(f"metrics-{problem}/targets/{name}", value)
        self.line(f"step {step}  dev: {text}")

    def line(self, text: str) -> None:
        """Show one line without tearing the bar."""
        if self._bar is not None:
            self._bar.write(text, file=self._stream)
        else:
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def pause(self, seconds: float) -> None:
        """Take time that was no training (evaluation, saving, compiling) out of the speeds."""
        self._line_time += seconds
        self._window_time += seconds

    def close(self) -> None:
        """Write out the events and leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()
        self._train_events.close()
        self._eval_events.close()

    def _mean_loss(self, loss: float) -> float:
        """Return the running mean with this step's loss; one that is not finite stays out of it."""
        if math.isfinite(loss):
            self._loss_sum = _LOSS_DECAY * self._loss_sum + loss
            self._loss_weight = _LOSS_DECAY * self._loss_weight + 1
        return self._loss_sum / self._loss_weight if self._loss_weight else loss

    def _figures(self, loss: float, learning_rate: float, now: float) -> str:
        speed = self._line_tokens / max(now - self._line_time, 1e-9)
        return f"loss {loss:.3f}  rate {learning_rate:.2e}  {speed:,.0f} tokens/s"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
