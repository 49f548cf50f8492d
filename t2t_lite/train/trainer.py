"""The training loop (Section 5), from a data_dir to an output_dir full of checkpoints."""

import contextlib
import dataclasses
import math
import pathlib
import time
from collections.abc import Iterator, Mapping
from typing import IO

import keras
import numpy as np
import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.data import manifest, pipeline
from t2t_lite.data import problem as problems
from t2t_lite.model import transformer
from t2t_lite.run import best, checkpoint, output_dir
from t2t_lite.tasks import catalog
from t2t_lite.text import text_files, vocabulary
from t2t_lite.train import (
    cost,
    devices,
    evaluator,
    interruption,
    optimizer,
    reporter,
    schedule,
    throughput,
)
from t2t_lite.train import options as trainer_options
from t2t_lite.train import step as steps

_PROFILED_STEPS = range(11, 21)  # of one call: after the first shapes are compiled


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a call of the trainer did."""

    steps: int
    seconds: float
    throughput: throughput.Throughput
    peak: float  # FLOP/s of the devices' matrix multiplication
    skipped: int
    stopped_by: str | None  # a signal's name, "patience" or None
    best_step: int


def prepare(
    problem: problems.Problem,
    *,
    data_dir: str | pathlib.Path,
    directory: str | pathlib.Path,
    hparams: config.HParams,
    hparams_set: str,
    options: trainer_options.TrainerOptions,
) -> "Training":
    """Make or open the output_dir `directory` and make the model; `Training.run` does the rest.

    Raises UserError for data of another problem, an output_dir with other settings, and hparams or
    a strategy that do not go with the problem or the machine; a new output_dir is not made then.
    """
    data = manifest.load(data_dir, problem)
    task = catalog.kind(problem.task)(vocabulary.load(data.vocabulary_path))
    if hparams.guided_alignment and task.alignment is None:
        raise errors.UserError(
            f"guided_alignment is for parsing problems, {problem.name} is none: take another "
            "--hparams_set or add --hparams=guided_alignment=0"
        )
    devices.check(options.strategy)
    run = output_dir.Run(
        problem=problem.name,
        task=problem.task,
        data_dir=str(pathlib.Path(data_dir).resolve()),
        vocabulary=data.vocabulary_path.name,
        vocab_size=data.vocabulary["size"],
        hparams_set=hparams_set,
        precision=devices.precision(options.precision),
        random_seed=options.random_seed,
    )
    output = output_dir.open_or_create(
        directory, hparams=hparams, run=run, vocabulary_path=data.vocabulary_path
    )
    return Training(problem, data_dir=data_dir, output=output, options=options)


class Training:
    """One call's model, data and checkpoints.

    Args:
      problem: what to learn.
      data_dir: its data.
      output: the output_dir, whose hparams and run.json count.
      options: how to run.

    `batches` are what `train_step` gets, one by one.
    """

    def __init__(
        self,
        problem: problems.Problem,
        *,
        data_dir: str | pathlib.Path,
        output: output_dir.OutputDir,
        options: trainer_options.TrainerOptions,
    ):
        self._problem = problem
        self._data_dir = data_dir
        self._directory = output.path
        self._hparams = hparams = output.hparams
        self._options = options
        self._strategy = devices.strategy(options.strategy)
        self._is_chief = devices.is_chief(self._strategy)
        if options.early_stopping_patience and self._strategy.cluster_resolver is not None:
            raise errors.UserError("--early_stopping_patience works with one worker only")
        self._task = catalog.task_of_run(output.run.task, vocabulary.load(output.vocabulary_path))
        keras.utils.set_random_seed(options.random_seed)
        with self._strategy.scope():
            self._model = transformer.Transformer(
                hparams, output.run.vocab_size, dtype=devices.dtype_policy(output.run.precision)
            )
            self._variables = self._model.named_variables()
            adam = optimizer.Adam(
                self._variables,
                beta1=hparams.adam_beta1,
                beta2=hparams.adam_beta2,
                epsilon=hparams.adam_epsilon,
            )
        self.train_step = steps.TrainStep(
            self._model,
            adam,
            hparams=hparams,
            strategy=self._strategy,
            xla=devices.use_xla(options.xla),
            random_seed=options.random_seed,
            align=self._task.alignment if hparams.guided_alignment else None,
        )
        self.batches = iter(self._train_batches())
        self._checkpoints = checkpoint.Checkpoints(
            output.path,
            variables=self._variables,
            slots=adam.slots(),
            data=self.batches,
            keep=options.keep_checkpoint_max,
        )
        self._best = best.Best(output.path)
        self._evaluator = evaluator.Evaluator(
            problem,
            data_dir,
            self._model,
            hparams=hparams,
            task=self._task,
            sentences=options.eval_sentences,
        )
        self._throughput = throughput.Throughput()
        self._skipped = 0

    def run(self, stream: IO[str]) -> Summary:
        """Train from the newest checkpoint, if there is one, until `hparams.train_steps`.

        Evaluates and saves in between. Progress is shown on `stream`.
        """
        first, damaged = self._checkpoints.restore_latest()
        last = self._hparams.train_steps
        report = reporter.Reporter(
            self._directory if self._is_chief else None,
            stream=stream if self._is_chief else None,
            first_step=first,
            last_step=last,
        )
        for prefix in damaged:
            report.line(f"{prefix} is damaged; the checkpoint before it is used")
        if first == 0 and self._options.warm_start_from:
            self._warm_start(self._options.warm_start_from, report)
        self._introduce(first, report)
        step, stopped_by = first, None
        started = saved = time.monotonic()
        with interruption.listening() as interrupted:
            for step in range(first + 1, last + 1):
                self.update(step, report)
                self._profile(step - first)
                stopped_by = interrupted.signal
                if self._is_time_to_save(step, saved) or step == last or stopped_by:
                    self._save(step)
                    saved = time.monotonic()
                if stopped_by:
                    break
                if self._is_chief and (step % self._options.eval_frequency == 0 or step == last):
                    self._evaluate(step, report)
                    if self._is_patience_over(step):
                        stopped_by = "patience"
                        self._save(step)
                        break
        report.close()
        return self._summary(step - first, time.monotonic() - started, stopped_by)

    def update(self, step: int, report: reporter.Reporter) -> None:
        """Make update number `step` (from 1) with the next batch and report it."""
        rate = schedule.learning_rate(
            step,
            d_model=self._hparams.d_model,
            warmup_steps=self._hparams.warmup_steps,
            scale=self._hparams.learning_rate_scale,
        )
        start = time.monotonic()
        with pipeline.naming_damage(self._problem, self._data_dir):
            batch = next(self.batches)
        is_new = self.train_step.is_new(batch)
        with _naming_failures(step, batch):
            result = self.train_step(batch, step=step, learning_rate=rate)
            loss, norm = float(result.loss), float(result.gradient_norm)
        seconds = time.monotonic() - start
        if is_new:
            report.line(f"step {step}: compiled for batches of {_shape(batch)} in {seconds:.1f} s")
        if not math.isfinite(norm):
            self._skip(step, batch, loss=loss, norm=norm, report=report)
        timed = None if is_new else seconds  # compiling is no training
        tokens = self._throughput.add(batch, flops=self._flops(batch), seconds=timed)
        report.step(step, loss=loss, learning_rate=rate, tokens=tokens, seconds=timed)

    def _train_batches(self) -> tf.data.Dataset:
        sizes: dict[str, int] = {
            "batch_tokens": self._hparams.batch_tokens,
            "max_length": self._hparams.max_length,
            "seed": self._options.random_seed,
        }
        if self._hparams.packing:
            return pipeline.packed_batches(self._problem, self._data_dir, **sizes)
        buckets = self._hparams.max_buckets
        return pipeline.train_batches(self._problem, self._data_dir, **sizes, max_buckets=buckets)

    def _too_long(self) -> int:
        """Count the training pairs that the pipeline leaves out.

        From the manifest's histogram, whose long lengths are rounded up: a few pairs just over a
        limit that is no such length are not in the count.
        """
        data = manifest.load(self._data_dir, self._problem)
        table = data.lengths("train", is_reversed=self._problem.is_reversed)
        limit = manifest.round_length(np.array(self._hparams.max_length))
        return int(table[table[:, :2].max(axis=1) > limit, 2].sum())

    def _skip(self, step, batch, *, loss: float, norm: float, report: reporter.Reporter) -> None:
        """Count a step whose update was left out; stop where that is one too many."""
        self._skipped += 1
        path = self._directory / f"not-finite-{step}.txt"
        lines = [
            "\t".join(
                self._task.vocabulary.decode(batch[side][row].numpy()) for side in throughput.SIDES
            )
            for row in range(batch["inputs"].shape[0])
        ]
        text_files.write_lines(path, lines)
        problem = f"step {step}: loss {loss}, gradient norm {norm}; its batch is in {path}"
        if self._skipped > self._options.max_skipped_steps:
            raise errors.UserError(
                f"{problem}. The weights and the checkpoints before it are intact: lower "
                "learning_rate_scale, use --precision=float32, or raise --max_skipped_steps"
            )
        report.line(f"{problem}; the update was left out")

    def _evaluate(self, step: int, report: reporter.Reporter) -> None:
        """Measure the dev split and keep the best weights."""
        figures = self._evaluator.evaluate()
        score = -figures.tokens.loss if figures.score is None else figures.score
        is_best = self._best.offer(step, score, self._variables)
        text = f"{figures}  (best so far)" if is_best else str(figures)
        report.evaluation(step, self._problem.name, figures.scalars(), text)

    def _save(self, step: int) -> None:
        if self._is_chief:
            self._checkpoints.save(step)

    def _is_patience_over(self, step: int) -> bool:
        patience = self._options.early_stopping_patience * self._options.eval_frequency
        return bool(patience) and step - self._best.step >= patience

    def _is_time_to_save(self, step: int, saved: float) -> bool:
        if self._options.save_checkpoints_steps:
            return step % self._options.save_checkpoints_steps == 0
        return time.monotonic() - saved >= self._options.save_checkpoints_secs

    def _warm_start(self, source: str, report: reporter.Reporter) -> None:
        """Take the weights whose names and shapes match; say what is left over on either side."""
        prefix = checkpoint.resolve(source)
        missing, unused = checkpoint.restore_fitting_weights(prefix, self._variables)
        count = len(self._variables) - len(missing)
        report.line(f"warm start: {count} of {len(self._variables)} weights from {prefix}")
        if missing:
            report.line(f"warm start: keep their random start: {', '.join(missing)}")
        if unused:
            report.line(f"warm start: are not used: {', '.join(unused)}")

    def _profile(self, local_step: int) -> None:
        """Write a TensorFlow profile of ten steps where that is asked for."""
        if self._options.profile and local_step == _PROFILED_STEPS.start - 1:
            tf.profiler.experimental.start(str(self._directory))
        if self._options.profile and local_step == _PROFILED_STEPS.stop - 1:
            tf.profiler.experimental.stop()

    def _flops(self, batch: Mapping[str, tf.Tensor]) -> int:
        rows, source = batch["inputs"].shape
        return cost.step_flops(
            self._hparams,
            self._model.embedding.num_rows,
            batch=rows,
            source=source,
            target=batch["targets"].shape[1],
        )

    def _introduce(self, first: int, report: reporter.Reporter) -> None:
        """Say what is trained, and what is left out."""
        start = f"from step {first}" if first else "from the start"
        report.line(
            f"{self._problem.name}: {self._model.count_params():,} parameters, {start} to "
            f"{self._hparams.train_steps}, {self._hparams.batch_tokens:,} tokens a step, "
            f"{self._model.compute_dtype}, {self._strategy.num_replicas_in_sync} replica(s)"
        )
        if too_long := self._too_long():
            limit = f"max_length={self._hparams.max_length} tokens"
            report.line(f"{too_long:,} training pairs have a side of more than {limit}: left out")

    def _summary(self, num_steps: int, seconds: float, stopped_by: str | None) -> Summary:
        peak = cost.matmul_peak(self._model.compute_dtype)
        return Summary(
            steps=num_steps,
            seconds=seconds,
            throughput=self._throughput,
            peak=peak * self._strategy.num_replicas_in_sync,
            skipped=self._skipped,
            stopped_by=stopped_by,
            best_step=self._best.step,
        )


@contextlib.contextmanager
def _naming_failures(step: int, batch: Mapping[str, tf.Tensor]) -> Iterator[None]:
    """Turn what TensorFlow raises for a lost worker and full memory into what to do about it."""
    try:
        yield
    except tf.errors.UnavailableError as error:
        raise errors.UserError(
            f"a worker was lost at step {step}; start the same command on every worker again, "
            "training continues from the last checkpoint"
        ) from error
    except tf.errors.ResourceExhaustedError as error:
        raise errors.UserError(
            f"out of memory at step {step} with a batch of {_shape(batch)}: lower "
            "max_tokens_per_device (same result, more parts) or max_length in --hparams"
        ) from error


def _shape(batch: Mapping[str, tf.Tensor]) -> str:
    """Return "64 x 32 source and 64 x 30 target tokens"."""
    (rows, source), target = batch["inputs"].shape, batch["targets"].shape[1]
    return f"{rows} x {source} source and {rows} x {target} target tokens"
