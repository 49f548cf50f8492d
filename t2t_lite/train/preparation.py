"""Before the training loop: do problem, data, hyperparameters, options and machine fit together?

All that can be refused is refused here, with one line, before anything is written.
"""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from t2t_lite import config, errors, machine
from t2t_lite.data import data_dir
from t2t_lite.run import checkpoint, output_dir
from t2t_lite.tasks import catalog
from t2t_lite.tasks import task as tasks
from t2t_lite.text import vocabulary as vocabularies
from t2t_lite.train import devices, memory
from t2t_lite.train import options as trainer_options


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setup:
    """A training that was checked and has not begun.

    Attributes:
      task: of the problem, with the vocabulary of the data.
      directory: the output_dir.
      run: what the output_dir records.
      tokens_per_device: `max_tokens_per_device`, on GPUs as their memory allows.
      remarks: lines to show before training.
    """

    data: data_dir.Data
    task: tasks.Task
    directory: pathlib.Path
    hparams: config.HParams
    run: output_dir.Run
    options: trainer_options.TrainerOptions
    strategy: tf.distribute.Strategy
    tokens_per_device: int
    remarks: Sequence[str] = ()

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the output_dir."""
        return devices.is_chief(self.strategy)

    def shared_settings(self) -> dict[str, Any]:
        """Return the settings that all workers must have in common."""
        settings = dataclasses.asdict(self.hparams) | dataclasses.asdict(self.run)
        del settings["data_dir"], settings["warm_start_from"], settings["versions"]
        return settings


def prepare(
    data: data_dir.Data,
    *,
    directory: str | pathlib.Path,
    hparams: config.HParams,
    hparams_set: str,
    options: trainer_options.TrainerOptions,
    say: Callable[[str], None] = lambda _: None,
) -> Setup:
    """Check a training in the output_dir `directory`; nothing is written.

    Several workers wait for each other here; `say` gets a line about those that are missing.

    Raises UserError for data of another problem, an output_dir with other settings, and hparams or
    options that do not fit the problem or the machine.
    """
    if options.deterministic:
        tf.config.experimental.enable_op_determinism()
    tf.config.experimental.enable_tensor_float_32_execution(options.tf32)
    problem = data.problem
    task = catalog.task_class(problem.task)(data.vocabulary)
    has_one = _is_shared(task.vocabulary)
    config.check(
        hparams,
        is_parser=task.grammar is not None,
        source_vocab_size=0 if has_one else task.vocabulary.size,
    )
    if problem.is_reversed and task.vocabulary.targets is not task.vocabulary:
        raise errors.UserError(
            f"{data.folder} has a vocabulary for each side, which {problem.name} would swap: "
            f"generate {problem.base_name} from files with the two sides swapped"
        )
    strategy = devices.strategy(options.strategy, say=say)
    if options.early_stopping_patience and strategy.cluster_resolver is not None:
        raise errors.UserError("--early_stopping_patience works with one worker only")
    run = output_dir.Run(
        problem=problem.name,
        task=problem.task,
        data_dir=str(data.folder.resolve()),
        data_sha256=data.content_hash("train"),
        vocabulary=data.vocabulary_path.name,
        vocab_size=data.vocabulary_file["size"],
        hparams_set=hparams_set,
        precision=_precision(options.precision, directory),
        random_seed=options.random_seed,
        warm_start=_fingerprint(options.warm_start_from),
        warm_start_from=options.warm_start_from and os.path.realpath(options.warm_start_from),
    )
    output_dir.check(directory, hparams=hparams, run=run, vocabulary_path=data.vocabulary_path)
    done = [step for step, _ in checkpoint.list_checkpoints(directory)]
    if done and done[-1] > hparams.train_steps:
        raise errors.UserError(
            f"{directory} is at step {done[-1]:,} already, beyond --train_steps="
            f"{hparams.train_steps}: give at least as many, or another --output_dir"
        )
    memory.check(
        data,
        hparams=hparams,
        vocab_size=run.vocab_size,
        workers=devices.num_workers(strategy),
    )
    tokens_per_device, remarks = hparams.max_tokens_per_device, [*devices.remarks()]
    if (gpus := machine.gpus()) and tf.config.list_physical_devices("GPU"):
        tokens_per_device = memory.tokens_per_device(
            hparams,
            run.vocab_size,
            replicas=strategy.num_replicas_in_sync,
            memory=min(size for _, size in gpus),
        )
        if tokens_per_device != hparams.max_tokens_per_device:
            remarks.append(
                f"each GPU computes at most {tokens_per_device:,} tokens at a time, as its memory "
                "allows; set max_tokens_per_device for another number"
            )
    if run.precision == "bfloat16" and devices.precision("auto") != "bfloat16":
        remarks.append(
            "this hardware has no bfloat16: --precision=auto in another --output_dir is faster here"
        )
    return Setup(
        data=data,
        task=task,
        directory=pathlib.Path(directory),
        hparams=hparams,
        run=run,
        options=options,
        strategy=strategy,
        tokens_per_device=tokens_per_device,
        remarks=remarks,
    )


def _is_shared(source: vocabularies.Vocabulary) -> bool:
    """Return whether both sides have the same subwords, even if they cut texts in other ways."""
    target = source.targets
    return target is source or list(source.pieces) == list(target.pieces)


def _fingerprint(warm_start_from: str | None) -> str | None:
    """Return a text that identifies the weights of a warm start; None if there are none."""
    with contextlib.suppress(errors.UserError):
        return warm_start_from and checkpoint.fingerprint(checkpoint.resolve(warm_start_from))


def _precision(choice: str, directory: str | pathlib.Path) -> str:
    """Return the precision that was asked for; "auto" keeps that of a run that is resumed."""
    path = pathlib.Path(directory)
    if choice == "auto" and (path / output_dir.RUN_FILE).exists():
        existing = output_dir.read(path)
        if existing.has_weights:
            return existing.run.precision
    return devices.precision(choice)
