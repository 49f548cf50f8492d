"""Before the training loop: whether problem, data, hparams, options and machine go together.

All that can be refused is refused here, with one line, before anything is written.
"""

import contextlib
import pathlib

import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.data import manifest, pipeline
from t2t_lite.data import problem as problems
from t2t_lite.run import checkpoint, output_dir
from t2t_lite.tasks import catalog
from t2t_lite.tasks import task as tasks
from t2t_lite.text import any_vocabulary
from t2t_lite.text import vocabulary as vocabularies
from t2t_lite.train import devices, memory, trainer
from t2t_lite.train import options as trainer_options


def prepare(
    problem: problems.Problem,
    *,
    data_dir: str | pathlib.Path,
    directory: str | pathlib.Path,
    hparams: config.HParams,
    hparams_set: str,
    options: trainer_options.TrainerOptions,
) -> trainer.Training:
    """Make the model for an output_dir `directory`; `Training.run` makes or opens that.

    Raises UserError for data of another problem, an output_dir with other settings, and hparams or
    options that do not go with the problem or the machine; nothing is written then.
    """
    if options.deterministic:
        tf.config.experimental.enable_op_determinism()
    tf.config.experimental.enable_tensor_float_32_execution(options.tf32)
    data = manifest.load(data_dir, problem)
    task = catalog.task_class(problem.task)(any_vocabulary.load(data.vocabulary_path))
    _check_vocabularies(task, hparams)
    if problem.is_reversed and task.vocabulary.targets is not task.vocabulary:
        raise errors.UserError(
            f"{data_dir} has a vocabulary for each side, which {problem.name} would exchange: "
            f"generate {problem.base_name} from files with the sides in each other's place"
        )
    if hparams.next_word and task.grammar is None:
        raise errors.UserError(
            f"next_word is for parsing problems, and {problem.name} is not one: take another "
            "--hparams_set or add --hparams=next_word=0"
        )
    strategy = devices.strategy(options.strategy)
    if options.early_stopping_patience and strategy.cluster_resolver is not None:
        raise errors.UserError("--early_stopping_patience works with one worker only")
    run = output_dir.Run(
        problem=problem.name,
        task=problem.task,
        data_dir=str(pathlib.Path(data_dir).resolve()),
        data_sha256=pipeline.content_hash(problem, data_dir, "train"),
        vocabulary=data.vocabulary_path.name,
        vocab_size=data.vocabulary["size"],
        hparams_set=hparams_set,
        precision=_precision(options.precision, directory),
        random_seed=options.random_seed,
        warm_start=_fingerprint(options.warm_start_from),
    )
    output_dir.check(directory, hparams=hparams, run=run, vocabulary_path=data.vocabulary_path)
    _check_steps(directory, hparams.train_steps)
    memory.check(
        problem,
        data_dir,
        hparams=hparams,
        vocab_size=run.vocab_size,
        workers=devices.num_workers(strategy),
    )
    return trainer.Training(
        problem,
        task,
        data_dir=data_dir,
        directory=directory,
        hparams=hparams,
        run=run,
        options=options,
        strategy=strategy,
    )


def _check_vocabularies(task: tasks.Task, hparams: config.HParams) -> None:
    """Raise UserError where sides have vocabularies of their own, and hparams do not say so."""
    source, target = task.vocabulary, task.vocabulary.targets
    # Two that cut texts in other ways may have the same pieces.
    is_one = target is source or _pieces(source) == _pieces(target)
    if is_one and hparams.source_vocab_size:
        raise errors.UserError(
            "the data have one vocabulary for both sides: add --hparams=source_vocab_size=0"
        )
    if not is_one and hparams.source_vocab_size != source.size:
        raise errors.UserError(
            "the data have a vocabulary for each side: add "
            f"--hparams=embeddings=separate,source_vocab_size={source.size}"
        )


def _check_steps(directory: str | pathlib.Path, train_steps: int) -> None:
    """Raise UserError where more steps than these are done."""
    done = [step for step, _ in checkpoint.list_checkpoints(directory)]
    if done and done[-1] > train_steps:
        raise errors.UserError(
            f"{directory} is at step {done[-1]:,} already, beyond --train_steps={train_steps}: "
            "give at least as many, or another --output_dir"
        )


def _fingerprint(warm_start_from: str | None) -> str | None:
    """Return what tells the weights of a warm start from any others; None where there are none."""
    with contextlib.suppress(errors.UserError):
        return warm_start_from and checkpoint.fingerprint(checkpoint.resolve(warm_start_from))


def _pieces(vocab: vocabularies.Vocabulary) -> list[str]:
    return [vocab.piece(token) for token in range(vocab.size)]


def _precision(choice: str, directory: str | pathlib.Path) -> str:
    """Return the precision that is asked for; "auto" continues a run as it was begun."""
    path = pathlib.Path(directory)
    if choice == "auto" and (path / output_dir.RUN_FILE).exists():
        existing = output_dir.read(path)
        if existing.has_weights:
            return existing.run.precision
    return devices.precision(choice)
