"""The results of updates, read some steps late so that a GPU need not wait for the host."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator, Mapping

import tensorflow as tf

from t2t_lite import errors
from t2t_lite.text import text_files
from t2t_lite.train import devices, preparation, reporter, throughput, workers
from t2t_lite.train import step as steps


@dataclasses.dataclass(frozen=True)
class Update:
    """An update whose result may still be computed; `seconds` is None if it was compiled first."""

    step: int
    batch: Mapping[str, tf.Tensor]
    learning_rate: float
    result: steps.StepResult
    seconds: float | None


class Results:
    """Reads and reports the results of one call's updates.

    Attributes:
      steps_between_reads: how many updates are read together; if more than one, when as many later
        ones were given to the device, which then need not wait for the host.
      skipped: updates that were left out because their gradient was not finite.
      throughput: the tokens of all updates.
    """

    def __init__(
        self,
        setup: preparation.Setup,
        report: reporter.Reporter,
    ):
        self.report = report
        self.steps_between_reads = devices.steps_between_fetches()
        self.skipped = 0
        self.throughput = throughput.Throughput()
        self._setup = setup
        self._unread: list[Update] = []
        self._first_stop = math.inf  # the step of the first update that asks to stop

    def add(self, update: Update) -> None:
        """Add an update; every `steps_between_reads` steps, read those before as many."""
        self._unread.append(update)
        if update.step % self.steps_between_reads == 0:
            self.read(self._read_at(update.step))

    def stop_at(self, step: int) -> bool:
        """Return whether to stop with a step because a worker was told to, the same for all."""
        return step % self.steps_between_reads == 0 and self._first_stop <= self._read_at(step)

    def _read_at(self, step: int) -> int:
        """Return the last step whose result all workers have read when they have added `step`."""
        return step - self.steps_between_reads if self.steps_between_reads > 1 else step

    def read(self, last: float = math.inf) -> None:
        """Wait for all unread results, or those up to step `last`, and report them.

        Raises UserError if one more update than `max_skipped_steps` was left out.
        """
        updates = [update for update in self._unread if update.step <= last]
        self._unread = self._unread[len(updates) :]
        if not updates:
            return
        start = time.monotonic()
        with explain_failures(updates[-1].step, shape_of(updates[-1].batch)):
            stops = [update.result.stops for update in updates]
        waited = (time.monotonic() - start) / len(updates)
        for update, stop in zip(updates, stops):
            loss, norm = update.result.loss, update.result.gradient_norm
            if stop:
                self._first_stop = min(self._first_stop, update.step)
            if not math.isfinite(norm):
                self._skip(update, loss=loss, norm=norm)
            seconds = None if update.seconds is None else update.seconds + waited
            self.report.step(
                update.step,
                loss=loss,
                learning_rate=update.learning_rate,
                tokens=self.throughput.add(update.batch, seconds=seconds),
                seconds=seconds,
            )

    def _skip(self, update: Update, *, loss: float, norm: float) -> None:
        """Write the batch of an update that was left out; raise UserError if it is one too many."""
        self.skipped += 1
        path = self._setup.directory / f"not-finite-{update.step}.txt"
        if self._setup.is_chief:
            vocabulary = self._setup.task.vocabulary
            sides = zip(throughput.SIDES, (vocabulary, vocabulary.targets))
            texts = [
                [vocab.decode(ids) for ids in update.batch[side].numpy()] for side, vocab in sides
            ]
            text_files.write_lines(path, map("\t".join, zip(*texts)))
        message = f"step {update.step}: loss {loss}, gradient norm {norm}; its batch is in {path}"
        if self.skipped > self._setup.options.max_skipped_steps:
            raise errors.UserError(
                f"{message}. The weights and the checkpoints before it are intact: raise "
                "--max_skipped_steps, or start another --output_dir with "
                f"--warm_start_from={self._setup.directory} and a lower learning_rate_scale or "
                "--precision=float32"
            )
        self.report.line(f"{message}; the update was left out")


@contextlib.contextmanager
def explain_failures(step: int, shape: str) -> Iterator[None]:
    """Turn TensorFlow's errors for a lost worker and full memory into what to do about them."""
    try:
        with workers.explain_lost_worker(f"at step {step}"):
            yield
    except tf.errors.ResourceExhaustedError as error:
        raise errors.UserError(
            f"out of memory at step {step} with a batch of {shape}: lower "
            "max_tokens_per_device in --hparams (more parts a step: only dropout masks differ), or "
            "start another --output_dir with a lower max_length"
        ) from error


def shape_of(batch: Mapping[str, tf.Tensor]) -> str:
    """Return a batch's shape in words."""
    (rows, source), target = batch["inputs"].shape, batch["targets"].shape[1]
    return describe_shape(rows, source, target)


def describe_shape(rows: int, source: int, target: int) -> str:
    """Return "64 x 32 source and 64 x 30 target tokens"."""
    return f"{rows} x {source} source and {rows} x {target} target tokens"
