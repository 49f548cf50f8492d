"""The training loop (Section 5), from a data_dir to an output_dir full of checkpoints (floor 4)."""

import dataclasses
import io
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

import keras
import numpy as np
import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.data import manifest, pipeline, text_files, vocabulary
from t2t_lite.data import problem as problems
from t2t_lite.infer import tree_grammar
from t2t_lite.model import transformer
from t2t_lite.train import (
    best,
    checkpoint,
    cost,
    devices,
    evaluator,
    interruption,
    optimizer,
    output_dir,
    reporter,
    schedule,
)
from t2t_lite.train import step as steps

_SIDES = ("inputs", "targets")
_PROFILED_STEPS = range(11, 21)  # of one call: after the first shapes are compiled


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """How one call of the trainer runs; nothing here changes what is learnt but the seed."""

    eval_frequency: int = 1000
    eval_sentences: int = 500  # of the dev split, decoded at each evaluation; 0: none
    early_stopping_patience: int = 0  # evaluations without a better dev score; 0: never stop
    save_checkpoints_secs: float = 600  # the paper's 10 minutes
    save_checkpoints_steps: int = 0  # instead of seconds, where it is not 0
    keep_checkpoint_max: int = 20
    warm_start_from: str | None = None  # an output_dir or checkpoint whose weights a new run takes
    max_skipped_steps: int = 0  # steps without a finite gradient that are left out
    profile: bool = False
    strategy: str = "auto"
    xla: str = "auto"
    precision: str = "auto"
    random_seed: int = 1


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a call of the trainer did; `flops` counts matrix products, padding included."""

    steps: int
    seconds: float
    tokens: int  # real ones, source and target
    fill: float  # share of them in the batches, padding included
    flops: float
    tokens_per_second: float  # of training alone: no compilation, evaluation or saving
    flops_per_second: float
    peak: float  # FLOP/s of the devices' matrix multiplication
    skipped: int
    stopped_by: str | None  # a signal's name, "patience" or None
    figures: evaluator.Figures | None
    best_step: int


def prepare(
    problem: problems.Problem,
    *,
    data_dir: str | pathlib.Path,
    directory: str | pathlib.Path,
    hparams: config.HParams,
    hparams_set: str,
    options: Options,
) -> "Training":
    """Make or open the output_dir `directory` and make the model; `Training.run` does the rest.

    Raises UserError for data of another problem, an output_dir with other settings, and hparams or
    a strategy that do not go with the problem or the machine; a new output_dir is not made then.
    """
    if hparams.guided_alignment and not problem.symbolic_targets:
        raise errors.UserError(
            f"guided_alignment is for parsing problems, {problem.name} is none: take another "
            "--hparams_set or add --hparams=guided_alignment=0"
        )
    data = manifest.load(data_dir, problem)
    devices.check(options.strategy)
    run = output_dir.Run(
        problem=problem.name,
        data_dir=str(pathlib.Path(data_dir).resolve()),
        vocabulary=data.vocabulary_path.name,
        vocab_size=data.vocabulary["size"],
        hparams_set=hparams_set,
        precision=devices.precision(options.precision),
        random_seed=options.random_seed,
    )
    found = output_dir.open_or_create(
        directory, hparams=hparams, run=run, vocabulary_path=data.vocabulary_path
    )
    return Training(problem, data_dir=data_dir, found=found, options=options)


class Training:
    """One call's model, data and checkpoints.

    Args:
      problem: what to learn.
      data_dir: its data.
      found: the output_dir, whose hparams and run.json count.
      options: how to run.

    `batches` are what `train_step` gets, one by one.
    """

    def __init__(
        self,
        problem: problems.Problem,
        *,
        data_dir: str | pathlib.Path,
        found: output_dir.OutputDir,
        options: Options,
    ):
        self._problem = problem
        self._data_dir = data_dir
        self._directory = found.path
        self._hparams = hparams = found.hparams
        self._options = options
        self._strategy = devices.strategy(options.strategy)
        self._is_chief = devices.is_chief(self._strategy)
        if options.early_stopping_patience and self._strategy.cluster_resolver is not None:
            raise errors.UserError("--early_stopping_patience works with one worker only")
        self._vocabulary = vocabulary.load(found.vocabulary_path)
        keras.utils.set_random_seed(options.random_seed)
        with self._strategy.scope():
            self._model = transformer.Transformer(
                hparams, found.run.vocab_size, dtype=devices.dtype_policy(found.run.precision)
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
            align=self._align(),
        )
        self.batches = iter(self._train_batches())
        self._checkpoints = checkpoint.Checkpoints(
            found.path,
            variables=self._variables,
            slots=adam.slots(),
            data=self.batches,
            keep=options.keep_checkpoint_max,
        )
        self._best = best.Best(found.path)
        self._evaluator = evaluator.Evaluator(
            problem,
            data_dir,
            self._model,
            hparams=hparams,
            vocab=self._vocabulary,
            sentences=options.eval_sentences,
        )
        self._tokens = self._padded_tokens = self._flops = self._skipped = 0
        self._steady = [0.0, 0.0, 0.0]  # tokens, FLOPs and seconds of steps without compilation

    def run(self, stream: IO[str]) -> Summary:
        """Train from the newest checkpoint, if there is one, until `hparams.train_steps`.

        Evaluates and saves in between; what is to be seen goes to `stream`.
        """
        first, damaged = self._checkpoints.restore_latest()
        last = self._hparams.train_steps
        report = reporter.Reporter(
            self._directory if self._is_chief else None,
            stream=stream if self._is_chief else io.StringIO(),
            first_step=first,
            last_step=last,
        )
        for prefix in damaged:
            report.line(f"{prefix} is damaged; the checkpoint before it is used")
        if first == 0 and self._options.warm_start_from:
            self._warm_start(self._options.warm_start_from, report)
        report.line(self._headline(first))
        if too_long := self._too_long():
            limit = f"max_length={self._hparams.max_length} tokens"
            report.line(f"{too_long:,} training pairs have a side of more than {limit}: left out")
        stopped_by, figures, step = None, None, first
        started = saved = time.monotonic()
        with interruption.listening() as interrupted:
            for step in range(first + 1, last + 1):
                self.update(step, report)
                self._profile(step - first)
                stopped_by = interrupted.signal
                if self._is_time_to_save(step, saved) or step == last or stopped_by:
                    self._pausing(report, self._save, step)
                    saved = time.monotonic()
                if stopped_by:
                    break
                if self._is_chief and (step % self._options.eval_frequency == 0 or step == last):
                    figures = self._pausing(report, self._evaluate, step, report)
                    if self._is_patience_over(step):
                        stopped_by = "patience"
                        self._save(step)
                        break
        report.close()
        return Summary(
            steps=step - first,
            seconds=time.monotonic() - started,
            tokens=self._tokens,
            fill=self._tokens / max(self._padded_tokens, 1),
            flops=self._flops,
            tokens_per_second=self._steady[0] / max(self._steady[2], 1e-9),
            flops_per_second=self._steady[1] / max(self._steady[2], 1e-9),
            peak=self._peak(),
            skipped=self._skipped,
            stopped_by=stopped_by,
            figures=figures,
            best_step=self._best.step,
        )

    def _align(self) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None:
        """Return what says where in the source each target token comes from, where it is needed."""
        if not self._hparams.guided_alignment:
            return None
        grammar = tree_grammar.of_vocabulary(self._vocabulary)
        assert grammar, "prepare() refuses problems without trees"
        return grammar.alignment

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

    def update(self, step: int, report: reporter.Reporter) -> None:
        """Make update number `step` (from 1) with the next batch and report it."""
        rate = schedule.learning_rate(
            step,
            d_model=self._hparams.d_model,
            warmup_steps=self._hparams.warmup_steps,
            scale=self._hparams.learning_rate_scale,
        )
        before = time.monotonic()
        with pipeline.naming_damage(self._problem, self._data_dir):
            batch = next(self.batches)
        is_new = self.train_step.is_new(batch)
        try:
            result = self.train_step(batch, step=step, learning_rate=rate)
            loss, norm = float(result.loss), float(result.gradient_norm)
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
        seconds = time.monotonic() - before
        tokens = sum(int(tf.math.count_nonzero(batch[key])) for key in _SIDES)
        flops = self._cost(batch)
        self._tokens += tokens
        self._padded_tokens += sum(int(tf.size(batch[key])) for key in _SIDES)
        self._flops += flops
        if is_new:
            report.pause(seconds)
            report.line(f"step {step}: compiled for batches of {_shape(batch)} in {seconds:.1f} s")
        else:
            self._steady = [a + b for a, b in zip(self._steady, (tokens, flops, seconds))]
        if not tf.math.is_finite(norm):
            self._skip(step, batch, loss=loss, norm=norm, report=report)
        report.step(step, loss=loss, learning_rate=rate, tokens=0 if is_new else tokens)

    def _skip(self, step, batch, *, loss: float, norm: float, report: reporter.Reporter) -> None:
        """Count a step whose update was left out; stop where that is one too many."""
        self._skipped += 1
        path = self._directory / f"not-finite-{step}.txt"
        lines = [
            "\t".join(self._vocabulary.decode(batch[key][row].numpy()) for key in _SIDES)
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

    def _evaluate(self, step: int, report: reporter.Reporter) -> evaluator.Figures:
        """Measure the dev split and keep the best weights."""
        figures = self._evaluator.evaluate()
        score = -figures.tokens.loss if figures.score is None else figures.score
        is_best = self._best.offer(step, score, self._variables)
        text = f"{figures}  (best so far)" if is_best else str(figures)
        report.evaluation(step, self._problem.name, figures.scalars(), text)
        return figures

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
        values = checkpoint.read_weights(prefix)
        fitting = {
            name: variable
            for name, variable in self._variables.items()
            if name in values and values[name].shape == tuple(variable.shape)
        }
        for name, variable in fitting.items():
            variable.assign(values[name])
        report.line(f"warm start: {len(fitting)} of {len(self._variables)} weights from {prefix}")
        for title, names in (
            ("keep their random start", self._variables.keys() - fitting.keys()),
            ("are not used", values.keys() - fitting.keys()),
        ):
            if names:
                report.line(f"warm start: {title}: {', '.join(sorted(names))}")

    def _profile(self, local_step: int) -> None:
        """Write a TensorFlow profile of ten steps where that is asked for."""
        if self._options.profile and local_step == _PROFILED_STEPS.start - 1:
            tf.profiler.experimental.start(str(self._directory))
        if self._options.profile and local_step == _PROFILED_STEPS.stop - 1:
            tf.profiler.experimental.stop()

    def _pausing(self, report: reporter.Reporter, function: Callable[..., Any], *args) -> Any:
        """Call a function whose time is none of training's."""
        before = time.monotonic()
        result = function(*args)
        report.pause(time.monotonic() - before)
        return result

    def _cost(self, batch: Mapping[str, tf.Tensor]) -> int:
        rows, source = batch["inputs"].shape
        return cost.step_flops(
            self._hparams,
            self._model.embedding.num_rows,
            batch=rows,
            source=source,
            target=batch["targets"].shape[1],
        )

    def _peak(self) -> float:
        return cost.matmul_peak(self._model.compute_dtype) * self._strategy.num_replicas_in_sync

    def _headline(self, first: int) -> str:
        start = f"from step {first}" if first else "from the start"
        return (
            f"{self._problem.name}: {self._model.count_params():,} parameters, {start} to "
            f"{self._hparams.train_steps}, {self._hparams.batch_tokens:,} tokens a step, "
            f"{self._model.compute_dtype}, {self._strategy.num_replicas_in_sync} replica(s)"
        )


def _shape(batch: Mapping[str, tf.Tensor]) -> str:
    """Return "64 x 32 source and 64 x 30 target tokens"."""
    (rows, source), target = batch["inputs"].shape, batch["targets"].shape[1]
    return f"{rows} x {source} source and {rows} x {target} target tokens"
