"""The training loop (Section 5), from a data_dir to an output_dir full of checkpoints.

`preparation.prepare` checks a training; `Training` builds its parts; `Training.run` resumes, loops,
evaluates and saves.
"""

import contextlib
import dataclasses
import os
import time
from collections.abc import Sequence
from typing import IO

import keras
import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.data import pipeline
from t2t_lite.model import next_word, transformer
from t2t_lite.run import best, checkpoint, output_dir
from t2t_lite.run import identity as identities
from t2t_lite.train import (
    devices,
    evaluator,
    interruption,
    optimizer,
    preparation,
    reporter,
    schedule,
    throughput,
    training_data,
    warm_start,
    workers,
)
from t2t_lite.train import results as updates
from t2t_lite.train import step as steps

_PROFILED_STEPS = range(11, 21)  # of one call: after the first shapes are compiled


@dataclasses.dataclass(frozen=True)
class Summary:
    """The outcome of one call of the trainer."""

    steps: int
    seconds: float
    throughput: throughput.Throughput
    skipped: int
    stopped_by: str | None  # a signal's name, "patience" or None
    best_step: int


class Training:
    """One call's model, data and checkpoints."""

    def __init__(self, setup: preparation.Setup):
        self._setup = setup
        self._workers = workers.Workers(setup.strategy)
        self._workers.agree("settings", **setup.shared_settings())
        self.model, adam = self._create_model()
        self.train_step = steps.TrainStep(
            self.model,
            adam,
            hparams=dataclasses.replace(
                setup.hparams, max_tokens_per_device=setup.tokens_per_device
            ),
            strategy=setup.strategy,
            xla=devices.use_xla(setup.options.xla),
            random_seed=setup.options.random_seed,
        )
        self.data = training_data.TrainingData(setup)
        identity = identities.of(setup.hparams, setup.data.vocabulary_path)
        self._checkpoints = checkpoint.Checkpoints(
            setup.directory,
            variables=self.model.named_variables(),
            slots=adam.slots(),
            data=self.data.batches,
            identity=identity,
            keep=setup.options.keep_checkpoint_max,
        )
        self._evaluator = evaluator.Evaluator(setup, self.model)
        self._best = best.Best(setup.directory, measure=self._evaluator.measure, identity=identity)
        self._remarks = [*self._check_evaluation(), *self._warm_start(identity)]
        self._is_profiling = False
        self._unscheduled: int | None = None  # the checkpoint that an interruption left

    def _create_model(self) -> tuple[transformer.Transformer, optimizer.Adam]:
        """Return the model and its optimizer; every worker gets the chief's weights."""
        hparams, run = self._setup.hparams, self._setup.run
        keras.utils.set_random_seed(self._setup.options.random_seed)
        scope = self._setup.strategy.scope()
        with workers.explain_lost_worker("before the first step"), scope:
            model = next_word.create(
                hparams,
                run.vocab_size,
                words=self._setup.task.grammar,
                dtype=devices.dtype_policy(run.precision),
            )
            adam = optimizer.Adam(
                model.named_variables(),
                beta1=hparams.adam_beta1,
                beta2=hparams.adam_beta2,
                epsilon=hparams.adam_epsilon,
            )
        return model, adam

    def _warm_start(self, identity: identities.Identity) -> list[str]:
        """Load the weights of --warm_start_from into a new run; return remarks about it."""
        source = self._setup.options.warm_start_from
        if not source:
            return []
        if checkpoint.list_checkpoints(self._setup.directory):
            return ["--warm_start_from was for the start: the run has checkpoints now"]
        return warm_start.load(source, self.model.named_variables(), identity)

    def run(self, stream: IO[str]) -> Summary:
        """Train from the newest checkpoint, if there is one, until `hparams.train_steps`.

        Evaluates and saves in between. Progress is shown on `stream`. Raises UserError if another
        process trains in this output_dir.
        """
        is_chief = self._setup.is_chief
        with contextlib.ExitStack() as stack:
            first, damaged = self._resume(stack)
            report = reporter.Reporter(
                self._setup.directory if is_chief else None,
                stream=stream if is_chief else None,
                first_step=first,
                last_step=self._setup.hparams.train_steps,
            )
            self._introduce(first, damaged, report)
            self._compile(first, report)
            results = updates.Results(self._setup, report)
            started = time.monotonic()
            stack.callback(self._end_profile)
            step, stopped_by = self._loop(first, results)
            # If one worker left early, a cluster would end the others; the chief may still save.
            self._workers.wait_for_all()
            report.close()
            return Summary(
                steps=step - first,
                seconds=time.monotonic() - started,
                throughput=results.throughput,
                skipped=results.skipped,
                stopped_by=stopped_by,
                best_step=self._best.step,
            )

    def _resume(self, stack: contextlib.ExitStack) -> tuple[int, Sequence[str]]:
        """Open the output_dir until `stack` closes, and restore its newest checkpoint.

        All workers resume from the same weights, or none does. Returns the step and the damaged
        checkpoints that were passed over.
        """
        directory, last_step_before = self._setup.directory, None
        with self._workers.all_or_none():
            if self._setup.is_chief:
                stack.enter_context(output_dir.only_one(directory))
                if (path := directory / output_dir.HPARAMS_FILE).exists():
                    last_step_before = config.from_json(path).train_steps
                output_dir.open_or_create(
                    directory,
                    hparams=self._setup.hparams,
                    run=self._setup.run,
                    vocabulary_path=self._setup.data.vocabulary_path,
                )
                self._checkpoints.remove_leftovers()
        with self._workers.all_or_none():
            first, damaged = self._checkpoints.restore_latest()
            interval = self._setup.options.save_checkpoints_steps or 1
            if first % interval and first != last_step_before:
                self._unscheduled = first
            if not self._checkpoints.has_position:
                self._remarks.append(
                    f"the data's order is made again up to step {first}: an earlier version of "
                    "t2t-lite wrote the checkpoint"
                )
                self.data.pass_over(first)
        if self._workers.count > 1:
            weights = workers.fingerprint(self.model.named_variables())
            self._workers.agree("weights", step=first, weights=weights)
        return first, damaged

    def _introduce(self, first: int, damaged: Sequence[str], report: reporter.Reporter) -> None:
        """Report what is trained, and what is left out."""
        hparams, model = self._setup.hparams, self.model
        for prefix in damaged:
            report.line(f"{prefix} is damaged; the checkpoint before it is used")
        start = f"from step {first}" if first else "from the start"
        replicas = errors.counted(self._setup.strategy.num_replicas_in_sync, "replica")
        report.line(
            f"{self._setup.data.problem.name}: {model.count_params():,} parameters, {start} to "
            f"{hparams.train_steps}, {hparams.batch_tokens:,} tokens a step, "
            f"{model.compute_dtype}, {replicas}"
        )
        if self._setup.is_chief:
            report.line(f"curves: tensorboard --logdir={self._setup.directory}")
        for remark in [*self.data.remarks(), *self._remarks, *self._setup.remarks]:
            report.line(remark)

    def _compile(self, first: int, report: reporter.Reporter) -> None:
        """With XLA, compile all shapes of batches before the first step, the largest first."""
        if not devices.use_xla(self._setup.options.xla) or first == self._setup.hparams.train_steps:
            return
        for number, sizes in enumerate(reversed(self.data.shapes), 1):
            start, shape = time.monotonic(), updates.describe_shape(*sizes)
            with updates.explain_failures(first, shape):
                self.train_step.compile(*sizes)
            report.line(
                f"compiled for batches of {shape} in {time.monotonic() - start:.1f} s, {number} of "
                f"{errors.counted(len(self.data.shapes), 'shape')}"
            )

    def _loop(self, first: int, results: updates.Results) -> tuple[int, str | None]:
        """Make the updates after step `first`; return the last step and what stopped training."""
        last, eval_frequency = self._setup.hparams.train_steps, self._setup.options.eval_frequency
        step, saved = first, time.monotonic()
        was_evaluated = self._best.step and first % eval_frequency == 0
        if was_evaluated and self._is_patience_over(first):
            return first, "patience"
        with interruption.listening() as interrupted:
            self._profile(0, last - first)
            for step in range(first + 1, last + 1):
                self.update(step, results, stop=bool(interrupted.signal))
                self._profile(step - first, last - first)
                if results.report.reader_has_left:
                    interrupted.signal = interrupted.signal or "SIGPIPE"
                stopped_by = self._stopped_by(step, interrupted, results)
                is_evaluated = step % eval_frequency == 0 or step == last
                if is_evaluated and self._setup.is_chief:
                    # Before the step's checkpoint: if this is killed, it is done again.
                    self._evaluate(step, results)
                    if self._is_patience_over(step):
                        stopped_by = stopped_by or "patience"
                if self._is_time_to_save(step, saved) or step == last or stopped_by:
                    self._save(step, results)
                    saved = time.monotonic()
                if stopped_by:
                    return step, stopped_by
        return step, None

    def update(self, step: int, results: updates.Results, *, stop: bool = False) -> None:
        """Make update number `step` (from 1) with the next batch; `results` reads its result.

        Args:
          stop: whether this worker was told to stop; the update tells all workers.
        """
        hparams, traces = self._setup.hparams, self.train_step.traces
        rate = schedule.learning_rate(
            step,
            d_model=hparams.d_model,
            warmup_steps=hparams.warmup_steps,
            scale=hparams.learning_rate_scale,
        )
        start = time.monotonic()
        with pipeline.explain_damage(self._setup.data):
            batch = next(self.data.batches)
        shape = updates.shape_of(batch)
        with updates.explain_failures(step, shape):
            result = self.train_step(batch, step=step, learning_rate=rate, stop=stop)
        seconds = time.monotonic() - start
        is_new = self.train_step.traces > traces
        if is_new:
            num_shapes = len(self.data.shapes)
            results.report.compiled(step, shape, seconds, num_shapes=num_shapes)
        # Time that includes compiling says nothing about the speed of training.
        timed = None if is_new else seconds
        results.add(updates.Update(step, batch, rate, result, timed))

    def _profile(self, done: int, planned: int) -> None:
        """Write a TensorFlow profile of ten steps, or of all in a shorter call, if asked for."""
        if not self._setup.options.profile or not self._setup.is_chief:
            return
        end = min(_PROFILED_STEPS.stop - 1, planned)
        if done == end:
            self._end_profile()
        elif done == max(end - len(_PROFILED_STEPS), 0):
            tf.profiler.experimental.start(os.fsencode(self._setup.directory))
            self._is_profiling = True

    def _end_profile(self) -> None:
        if self._is_profiling:
            self._is_profiling = False
            tf.profiler.experimental.stop()

    def _stopped_by(
        self, step: int, interrupted: interruption.Interruption, results: updates.Results
    ) -> str | None:
        """Return the signal after which training ends with this step.

        All workers end with the same step: one at which all have read all results so far. A worker
        that got no signal itself returns SIGTERM.
        """
        if self._workers.count == 1:
            return interrupted.signal
        return (interrupted.signal or "SIGTERM") if results.stop_at(step) else None

    def _is_patience_over(self, step: int) -> bool:
        options = self._setup.options
        patience = options.early_stopping_patience * options.eval_frequency
        return bool(patience) and step - self._best.step >= patience

    def _is_time_to_save(self, step: int, saved: float) -> bool:
        options = self._setup.options
        if options.save_checkpoints_steps:
            return step % options.save_checkpoints_steps == 0
        return time.monotonic() - saved >= options.save_checkpoints_secs

    def _evaluate(self, step: int, results: updates.Results) -> None:
        """Evaluate the dev split and keep the best weights."""
        results.read()
        if self._evaluator.is_empty:
            return
        figures = self._evaluator.evaluate()
        is_best = self._best.offer(step, figures.best_by, self.model.named_variables())
        text = f"{figures}  (best so far)" if is_best else str(figures)
        results.report.evaluation(step, self._setup.data.problem.name, figures.scalars(), text)

    def _save(self, step: int, results: updates.Results) -> None:
        """Write a checkpoint, unless the result of an update up to it ends the training.

        It replaces a checkpoint that an interruption left between two scheduled ones, so that the
        last checkpoints, which are averaged, are those of an uninterrupted run.
        """
        results.read()
        if self._setup.is_chief:
            self.data.check_unchanged(step)
            self._checkpoints.save(step, in_place_of=self._unscheduled)
            self._unscheduled = None

    def _check_evaluation(self) -> list[str]:
        """Return remarks about what is evaluated and compared; UserError if that is needed."""
        if self._evaluator.is_empty:
            remark = "the dev split is empty: nothing is evaluated, and no checkpoint is the best"
        elif self._best.difference:
            remark = (
                f"{self._setup.directory}/best was chosen by another measure "
                f"({self._best.difference}) and stays as it is; move it away to have the best by "
                "this one"
            )
        else:
            return self._evaluator.remarks
        if self._setup.options.early_stopping_patience:
            raise errors.UserError(f"--early_stopping_patience compares dev scores: {remark}")
        return [remark]
