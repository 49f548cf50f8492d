"""The training loop (Section 5), from a data_dir to an output_dir full of checkpoints (floor 4)."""

import dataclasses
import pathlib
import time
from typing import IO, Any

import keras
import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.data import manifest, pipeline
from t2t_lite.data import problem as problems
from t2t_lite.model import transformer
from t2t_lite.train import (
    checkpoint,
    devices,
    metrics,
    optimizer,
    output_dir,
    reporter,
    schedule,
)
from t2t_lite.train import step as steps


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """How one call of the trainer runs; nothing here changes what is learnt but the seed.

    `save_checkpoints_steps` (0: none) takes the place of `save_checkpoints_secs` where given.
    """

    eval_frequency: int = 1000
    save_checkpoints_secs: float = 600  # the paper's 10 minutes
    save_checkpoints_steps: int = 0
    keep_checkpoint_max: int = 20
    strategy: str = "auto"
    xla: str = "auto"
    precision: str = "auto"
    random_seed: int = 1


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a finished run tells: steps made by this call, seconds, real tokens, dev figures."""

    steps: int
    seconds: float
    tokens: int
    evaluation: metrics.Evaluation | None


def train(
    problem: problems.Problem,
    *,
    data_dir: str | pathlib.Path,
    directory: str | pathlib.Path,
    hparams: config.HParams,
    hparams_set: str,
    options: Options,
    stream: IO[str],
) -> Summary:
    """Train until `hparams.train_steps`, from the newest checkpoint in `directory` if it has one.

    Raises UserError for data of another problem or an output_dir with other settings.
    """
    data = manifest.load(data_dir, problem)
    precision = devices.precision(options.precision)
    run = output_dir.Run(
        problem=problem.name,
        data_dir=str(pathlib.Path(data_dir).resolve()),
        vocabulary=data.vocabulary_path.name,
        vocab_size=data.vocabulary["size"],
        hparams_set=hparams_set,
        precision=precision,
        random_seed=options.random_seed,
    )
    found = output_dir.open_or_create(
        directory, hparams=hparams, run=run, vocabulary_path=data.vocabulary_path
    )
    session = _Session(problem, data_dir=data_dir, found=found, options=options)
    return session.run(stream)


class _Session:
    """One call's model, data and checkpoints."""

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
        strategy = devices.strategy(options.strategy)
        keras.utils.set_random_seed(options.random_seed)
        with strategy.scope():
            self._model = transformer.Transformer(
                hparams, found.run.vocab_size, dtype=devices.dtype_policy(found.run.precision)
            )
            adam = optimizer.Adam(
                self._model.named_variables(),
                beta1=hparams.adam_beta1,
                beta2=hparams.adam_beta2,
                epsilon=hparams.adam_epsilon,
            )
        self._train_step = steps.TrainStep(
            self._model,
            adam,
            hparams=hparams,
            strategy=strategy,
            xla=devices.use_xla(options.xla),
            random_seed=options.random_seed,
        )
        self._eval_step = steps.EvalStep(self._model)
        self._batches = iter(
            pipeline.train_batches(
                problem,
                data_dir,
                batch_tokens=hparams.batch_tokens,
                max_length=hparams.max_length,
                max_buckets=hparams.max_buckets,
                seed=options.random_seed,
            )
        )
        self._checkpoints = checkpoint.Checkpoints(
            found.path,
            variables=self._model.named_variables(),
            slots=adam.slots(),
            data=self._batches,
            keep=options.keep_checkpoint_max,
        )

    def run(self, stream: IO[str]) -> Summary:
        """Train, evaluate and save; see `train`."""
        first, damaged = self._checkpoints.restore_latest()
        last = self._hparams.train_steps
        report = reporter.Reporter(self._directory, stream=stream, first_step=first, last_step=last)
        for prefix in damaged:
            report.line(f"damaged and passed over: {prefix}")
        report.line(self._headline(first))
        started = saved = time.monotonic()
        tokens = 0
        evaluation = None
        for step in range(first + 1, last + 1):
            tokens += self._update(step, report)
            if self._is_time_to_save(step, saved) or step == last:
                self._pausing(report, self._checkpoints.save, step)
                saved = time.monotonic()
            if step % self._options.eval_frequency == 0 or step == last:
                evaluation = self._pausing(report, self._evaluate, step, report)
        report.close()
        return Summary(last - first, time.monotonic() - started, tokens, evaluation)

    def _update(self, step: int, report: reporter.Reporter) -> int:
        """Make one update and report it; return its real tokens."""
        rate = schedule.learning_rate(
            step,
            d_model=self._hparams.d_model,
            warmup_steps=self._hparams.warmup_steps,
            scale=self._hparams.learning_rate_scale,
        )
        with pipeline.naming_damage(self._problem, self._data_dir):
            batch = next(self._batches)
        before, traces = time.monotonic(), self._train_step.traces
        result = self._train_step(batch, step=step, learning_rate=rate)
        loss = float(result.loss)
        if self._train_step.traces > traces:  # tracing and compiling are no training speed
            report.pause(time.monotonic() - before)
        if not tf.math.is_finite(loss):
            raise errors.UserError(
                f"the loss of step {step} is {loss} (gradient norm {float(result.gradient_norm)}); "
                "the checkpoints before it are kept: lower learning_rate_scale or use "
                "--precision=float32"
            )
        tokens = int(tf.math.count_nonzero(batch["inputs"]))
        tokens += int(tf.math.count_nonzero(batch["targets"]))
        report.step(step, loss=loss, learning_rate=rate, tokens=tokens)
        return tokens

    def _is_time_to_save(self, step: int, saved: float) -> bool:
        if self._options.save_checkpoints_steps:
            return step % self._options.save_checkpoints_steps == 0
        return time.monotonic() - saved >= self._options.save_checkpoints_secs

    def _evaluate(self, step: int, report: reporter.Reporter) -> metrics.Evaluation:
        """Measure loss, perplexity and accuracy on the dev split."""
        counts = [0.0, 0.0, 0.0]
        for batch in pipeline.eval_batches(
            self._problem,
            self._data_dir,
            "dev",
            batch_tokens=self._hparams.batch_tokens,
            max_length=self._hparams.max_length,
            max_buckets=self._hparams.max_buckets,
        ):
            counts = [a + float(b) for a, b in zip(counts, self._eval_step(batch))]
        result = metrics.evaluation(*counts)
        values = {
            "loss": result.loss,
            "neg_log_perplexity": -result.loss,
            "perplexity": result.perplexity,
            "accuracy": result.accuracy,
        }
        text = f"loss {result.loss:.4f}  perplexity {result.perplexity:.3f}  "
        report.evaluation(step, self._problem.name, values, f"{text}accuracy {result.accuracy:.4f}")
        return result

    def _pausing(self, report: reporter.Reporter, function, *args) -> Any:
        before = time.monotonic()
        result = function(*args)
        report.pause(time.monotonic() - before)
        return result

    def _headline(self, first: int) -> str:
        start = f"from step {first}" if first else "from the start"
        return (
            f"{self._problem.name}: {self._model.count_params():,} parameters, {start} to "
            f"{self._hparams.train_steps}, {self._hparams.batch_tokens:,} tokens a step, "
            f"{self._model.compute_dtype}; each new shape of batch is compiled when it first comes"
        )
