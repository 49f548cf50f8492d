"""The training loop (Section 5), from a data_dir to an output_dir full of checkpoints.

`preparation.prepare` makes what is trained here.
"""

import contextlib
import dataclasses
import math
import pathlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import keras
import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.data import manifest, pipeline
from t2t_lite.data import problem as problems
from t2t_lite.model import transformer
from t2t_lite.run import best, checkpoint, output_dir
from t2t_lite.run import identity as identities
from t2t_lite.tasks import task as tasks
from t2t_lite.text import text_files
from t2t_lite.train import (
    devices,
    evaluator,
    interruption,
    optimizer,
    reporter,
    schedule,
    throughput,
    training_data,
    warm_start,
    workers,
)
from t2t_lite.train import options as trainer_options
from t2t_lite.train import step as steps

_PROFILED_STEPS = range(11, 21)  # of one call: after the first shapes are compiled


@dataclasses.dataclass(frozen=True)
class _Update:
    """One that was made and not yet looked at; `seconds` is None where it was compiled first."""

    step: int
    batch: Mapping[str, tf.Tensor]
    learning_rate: float
    result: steps.StepResult
    seconds: float | None


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a call of the trainer did."""

    steps: int
    seconds: float
    throughput: throughput.Throughput
    skipped: int
    stopped_by: str | None  # a signal's name, "patience" or None
    best_step: int


class Training:
    """One call's model, data and checkpoints.

    Args:
      problem: what to learn.
      task: of the problem, with the vocabulary of the data.
      data_dir: its data.
      directory: the output_dir.
      hparams: the model and its training.
      run: what the output_dir records.
      options: how to run.
      strategy: on which devices.

    `batches` are what `train_step` gets, one by one.
    """

    def __init__(
        self,
        problem: problems.Problem,
        task: tasks.Task,
        *,
        data_dir: str | pathlib.Path,
        directory: str | pathlib.Path,
        hparams: config.HParams,
        run: output_dir.Run,
        options: trainer_options.TrainerOptions,
        strategy: tf.distribute.Strategy,
    ):
        self._problem = problem
        self._data_dir = data_dir
        self._directory = pathlib.Path(directory)
        self._hparams = hparams
        self._run = run
        self._options = options
        self._strategy = strategy
        self._is_chief = devices.is_chief(strategy)
        self._task = task
        self._vocabulary_path = manifest.load(data_dir, problem).vocabulary_path
        self._identity = identities.of(hparams, self._vocabulary_path)
        self._workers = workers.Workers(strategy)
        self._workers.agree("settings", **self._settings())
        keras.utils.set_random_seed(options.random_seed)
        # Every worker gets the chief's weights.
        with workers.explain_lost_worker("before the first step"), self._strategy.scope():
            self._model = transformer.Transformer(
                hparams,
                run.vocab_size,
                words=task.grammar,
                dtype=devices.dtype_policy(run.precision),
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
        )
        self._data = training_data.TrainingData(
            problem,
            data_dir,
            hparams=hparams,
            seed=options.random_seed,
            content=run.data_sha256,
            num_workers=self._workers.count,
            rows_of=lambda shape: self.train_step.rows_of_worker(*shape),
        )
        self.batches = self._data.batches
        self._checkpoints = checkpoint.Checkpoints(
            self._directory,
            variables=self._variables,
            slots=adam.slots(),
            data=self._data.position,
            data_name=self._data.position_name,
            identity=self._identity,
            keep=options.keep_checkpoint_max,
        )
        self._evaluator = evaluator.Evaluator(
            problem,
            data_dir,
            self._model,
            hparams=hparams,
            task=self._task,
            sentences=options.eval_sentences,
        )
        self._best = best.Best(
            self._directory, measure=self._evaluator.measure, identity=self._identity
        )
        self._remarks = self._check_evaluation()
        if options.warm_start_from and checkpoint.list_checkpoints(self._directory):
            self._remarks.append("--warm_start_from was for the start: the run has checkpoints now")
        elif options.warm_start_from:
            self._remarks += warm_start.load(
                options.warm_start_from, self._variables, self._identity
            )
        if run.precision == "bfloat16" and devices.precision("auto") != "bfloat16":
            self._remarks.append(
                "this hardware has no bfloat16: in an --output_dir of its own --precision=auto is "
                "faster here"
            )
        self._throughput = throughput.Throughput()
        self._skipped = 0
        self._made: list[_Update] = []
        self._made_together = devices.steps_between_fetches()
        self._stops = False  # one of several workers was told to stop
        self._unscheduled: int | None = None  # the checkpoint that an interruption left

    def run(self, stream: IO[str]) -> Summary:
        """Train from the newest checkpoint, if there is one, until `hparams.train_steps`.

        Evaluates and saves in between. Progress is shown on `stream`. Raises UserError where
        another process trains in this output_dir.
        """
        with contextlib.ExitStack() as stack:
            first, damaged = self._begin(stack)
            report = reporter.Reporter(
                self._directory if self._is_chief else None,
                stream=stream if self._is_chief else None,
                first_step=first,
                last_step=self._hparams.train_steps,
            )
            for prefix in damaged:
                report.line(f"{prefix} is damaged; the checkpoint before it is used")
            self._introduce(first, report)
            started = time.monotonic()
            step, stopped_by = self._train(first, report)
            # Where one worker has gone, a cluster ends the others: the chief may still save.
            self._workers.part()
            report.close()
            return self._summary(step - first, time.monotonic() - started, stopped_by)

    def _begin(self, stack: contextlib.ExitStack) -> tuple[int, Sequence[str]]:
        """Open the output_dir until `stack` closes; return the step and what was passed over.

        All workers go on from the same weights, and none where the chief cannot.
        """
        ended = None
        with self._workers.all_or_none():
            if self._is_chief:
                stack.enter_context(output_dir.only_one(self._directory))
                ended = self._recorded_steps()
                output_dir.open_or_create(
                    self._directory,
                    hparams=self._hparams,
                    run=self._run,
                    vocabulary_path=self._vocabulary_path,
                )
                self._checkpoints.remove_leftovers()
        with self._workers.all_or_none():
            first, damaged = self._checkpoints.restore_latest()
            if first % (self._options.save_checkpoints_steps or 1) and first != ended:
                self._unscheduled = first
            if not self._checkpoints.has_position:
                self._remarks.append(
                    f"the data's order is made again up to step {first}: the checkpoint is of "
                    "another number of workers"
                )
                self._data.pass_over(first)
        if self._workers.count > 1:
            weights = workers.fingerprint(self._variables)
            self._workers.agree("weights", step=first, weights=weights)
        return first, damaged

    def _recorded_steps(self) -> int | None:
        """Return the steps of the training that the output_dir holds."""
        path = self._directory / output_dir.HPARAMS_FILE
        return config.from_json(path).train_steps if path.exists() else None

    def _train(self, first: int, report: reporter.Reporter) -> tuple[int, str | None]:
        """Make the updates after step `first`; return the last step and what stopped it."""
        last = self._hparams.train_steps
        step, saved = first, time.monotonic()
        was_evaluated = self._best.step and first % self._options.eval_frequency == 0
        if was_evaluated and self._is_patience_over(first):
            return first, "patience"
        with interruption.listening() as interrupted:
            for step in range(first + 1, last + 1):
                self.update(step, report, stop=bool(interrupted.signal))
                self._profile(step - first)
                if report.reader_has_left:
                    interrupted.signal = interrupted.signal or "SIGPIPE"
                stopped_by = self._stopped_by(step, interrupted)
                is_evaluated = step % self._options.eval_frequency == 0 or step == last
                if is_evaluated and self._is_chief:
                    # Before the step's checkpoint: where this is killed, it is done again.
                    self._evaluate(step, report)
                    if self._is_patience_over(step):
                        stopped_by = stopped_by or "patience"
                if self._is_time_to_save(step, saved) or step == last or stopped_by:
                    self._save(step, report)
                    saved = time.monotonic()
                if stopped_by:
                    return step, stopped_by
        return step, None

    def _stopped_by(self, step: int, interrupted: interruption.Interruption) -> str | None:
        """Return the signal after which training ends with this step.

        All workers end with the same one: that with which all know of all steps before it. A worker
        that was told nothing itself says SIGTERM.
        """
        if self._workers.count == 1:
            return interrupted.signal
        if self._stops and step % self._made_together == 0:
            return interrupted.signal or "SIGTERM"
        return None

    def update(self, step: int, report: reporter.Reporter, *, stop: bool = False) -> None:
        """Make update number `step` (from 1) with the next batch; report it, or later with others.

        Args:
          stop: whether this worker was told to stop, so that all hear of it.
        """
        rate = schedule.learning_rate(
            step,
            d_model=self._hparams.d_model,
            warmup_steps=self._hparams.warmup_steps,
            scale=self._hparams.learning_rate_scale,
        )
        start = time.monotonic()
        with pipeline.explain_damage(self._problem, self._data_dir):
            batch = next(self.batches)
        is_new = self.train_step.is_new(batch)
        with _explain_failures(step, batch):
            result = self.train_step(batch, step=step, learning_rate=rate, stop=stop)
        seconds = time.monotonic() - start
        if is_new:
            report.compiled(step, _shape(batch), seconds)
        timed = None if is_new else seconds  # compiling is no training
        self._made.append(_Update(step, batch, rate, result, timed))
        if step % self._made_together == 0:
            self._look_at_results(report)

    def _look_at_results(self, report: reporter.Reporter) -> None:
        """Wait for the updates that were made since this was last called, and report them."""
        made, self._made = self._made, []
        if not made:
            return
        start = time.monotonic()
        with _explain_failures(made[-1].step, made[-1].batch):
            numbers = [[float(x) for x in update.result] for update in made]
        waited = (time.monotonic() - start) / len(made)
        for update, (loss, _, norm, stops) in zip(made, numbers):
            self._stops |= stops > 0
            if not math.isfinite(norm):
                self._skip(update.step, update.batch, loss=loss, norm=norm, report=report)
            seconds = None if update.seconds is None else update.seconds + waited
            tokens = self._throughput.add(update.batch, seconds=seconds)
            report.step(
                update.step,
                loss=loss,
                learning_rate=update.learning_rate,
                tokens=tokens,
                seconds=seconds,
            )

    def _skip(self, step, batch, *, loss: float, norm: float, report: reporter.Reporter) -> None:
        """Count a step whose update was left out; stop where that is one too many."""
        self._skipped += 1
        path = self._directory / f"not-finite-{step}.txt"
        if self._is_chief:
            batch = self._data.whole(batch)
            vocabularies = self._task.vocabulary, self._task.vocabulary.targets
            lines = [
                "\t".join(
                    vocab.decode(batch[side][row].numpy())
                    for side, vocab in zip(throughput.SIDES, vocabularies)
                )
                for row in range(batch["inputs"].shape[0])
            ]
            text_files.write_lines(path, lines)
        problem = f"step {step}: loss {loss}, gradient norm {norm}; its batch is in {path}"
        if self._skipped > self._options.max_skipped_steps:
            raise errors.UserError(
                f"{problem}. The weights and the checkpoints before it are intact: raise "
                "--max_skipped_steps, or with a lower learning_rate_scale or --precision=float32 "
                f"begin another --output_dir with --warm_start_from={self._directory}"
            )
        report.line(f"{problem}; the update was left out")

    def _evaluate(self, step: int, report: reporter.Reporter) -> None:
        """Measure the dev split and keep the best weights."""
        self._look_at_results(report)
        if self._evaluator.is_empty:
            return
        figures = self._evaluator.evaluate()
        is_best = self._best.offer(step, figures.best_by, self._variables)
        text = f"{figures}  (best so far)" if is_best else str(figures)
        report.evaluation(step, self._problem.name, figures.scalars(), text)

    def _save(self, step: int, report: reporter.Reporter) -> None:
        """Write a checkpoint, unless an update up to it is one that ends the training.

        It takes the place of one that an interruption left between two scheduled ones, so that the
        last checkpoints, which are averaged, are those of an uninterrupted run.
        """
        self._look_at_results(report)
        if self._is_chief:
            self._data.check_unchanged(step)
            self._checkpoints.save(step, in_place_of=self._unscheduled)
            self._unscheduled = None

    def _is_patience_over(self, step: int) -> bool:
        patience = self._options.early_stopping_patience * self._options.eval_frequency
        return bool(patience) and step - self._best.step >= patience

    def _is_time_to_save(self, step: int, saved: float) -> bool:
        if self._options.save_checkpoints_steps:
            return step % self._options.save_checkpoints_steps == 0
        return time.monotonic() - saved >= self._options.save_checkpoints_secs

    def _check_evaluation(self) -> list[str]:
        """Say why nothing is evaluated, or not compared with the best; UserError if it must be."""
        if self._evaluator.is_empty:
            remark = "the dev split is empty: nothing is evaluated, and no checkpoint is the best"
        elif self._best.difference:
            remark = (
                f"{self._directory}/best was chosen by another measure ({self._best.difference}) "
                "and stays as it is; move it away to have the best by this one"
            )
        else:
            return []
        if self._options.early_stopping_patience:
            raise errors.UserError(f"--early_stopping_patience compares dev scores: {remark}")
        return [remark]

    def _settings(self) -> dict[str, Any]:
        """Return what all workers must have in common."""
        settings = dataclasses.asdict(self._hparams) | dataclasses.asdict(self._run)
        del settings["data_dir"], settings["versions"]
        return settings

    def _profile(self, local_step: int) -> None:
        """Write a TensorFlow profile of ten steps where that is asked for."""
        if not self._options.profile or not self._is_chief:
            return
        if local_step == _PROFILED_STEPS.start - 1:
            tf.profiler.experimental.start(str(self._directory))
        if local_step == _PROFILED_STEPS.stop - 1:
            tf.profiler.experimental.stop()

    def _introduce(self, first: int, report: reporter.Reporter) -> None:
        """Say what is trained, and what is left out."""
        start = f"from step {first}" if first else "from the start"
        report.line(
            f"{self._problem.name}: {self._model.count_params():,} parameters, {start} to "
            f"{self._hparams.train_steps}, {self._hparams.batch_tokens:,} tokens a step, "
            f"{self._model.compute_dtype}, {self._strategy.num_replicas_in_sync} replica(s)"
        )
        if self._is_chief:
            report.line(f"curves: tensorboard --logdir={self._directory}")
        for remark in [*self._data.remarks(), *self._remarks]:
            report.line(remark)

    def _summary(self, num_steps: int, seconds: float, stopped_by: str | None) -> Summary:
        return Summary(
            steps=num_steps,
            seconds=seconds,
            throughput=self._throughput,
            skipped=self._skipped,
            stopped_by=stopped_by,
            best_step=self._best.step,
        )


@contextlib.contextmanager
def _explain_failures(step: int, batch: Mapping[str, tf.Tensor]) -> Iterator[None]:
    """Turn what TensorFlow raises for a lost worker and full memory into what to do about it."""
    try:
        with workers.explain_lost_worker(f"at step {step}"):
            yield
    except tf.errors.ResourceExhaustedError as error:
        raise errors.UserError(
            f"out of memory at step {step} with a batch of {_shape(batch)}: lower "
            "max_tokens_per_device in --hparams (more parts a step: only dropout is drawn "
            "otherwise), or begin another --output_dir with a lower max_length"
        ) from error


def _shape(batch: Mapping[str, tf.Tensor]) -> str:
    """Return "64 x 32 source and 64 x 30 target tokens"."""
    (rows, source), target = batch["inputs"].shape, batch["targets"].shape[1]
    return f"{rows} x {source} source and {rows} x {target} target tokens"
