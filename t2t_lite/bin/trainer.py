"""Train a Transformer ("Attention Is All You Need") on the data that t2t-lite-datagen made.

  t2t-lite-trainer --problem=toy_ende --data_dir=data --output_dir=run --hparams_set=transformer_toy

To resume a training, give the same command again. To print the size of a model without training it:

  t2t-lite-trainer --describe --hparams_set=transformer_big
"""

import dataclasses
import functools
import pathlib
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import flags

from t2t_lite import config, errors, machine, registry
from t2t_lite.bin import command
from t2t_lite.train import options

if TYPE_CHECKING:
    from t2t_lite.train import trainer

FLAGS = command.new_flags()
command.define_strings(
    FLAGS,
    problem="Name of the problem to learn, e.g. wmt14_ende; --registry_help lists all.",
    data_dir="The folder or address that t2t-lite-datagen wrote to.",
    output_dir="Folder to write checkpoints, logs and vocabulary to. An unfinished training in it "
    "is resumed.",
    hparams_set="Name of a hyperparameter set, e.g. transformer_base, or an output_dir, to use its "
    "hyperparameters.",
)
flags.DEFINE_multi_string(
    "hparams",
    [],
    "Changes to --hparams_set, as name=value,name=value; may be repeated. These are all names, "
    "with the values of transformer_base. Sections and tables are the paper's.\n"
    + command.table(config.HParams),
    flag_values=FLAGS,
)
command.define_integers(
    FLAGS,
    1,
    train_steps="Step at which training ends: the total, not additional steps. Default: "
    "train_steps of --hparams_set and --hparams.",
)
command.define_bools(
    FLAGS,
    describe="Instead of training, print how many parameters each part of the model has, and how "
    "much computation and memory a step takes. Takes --hparams_set, and for the size of the "
    "vocabulary --problem and --data_dir. Without these the vocabulary has 37,000 entries, as in "
    "the paper.",
)
command.define_flags(FLAGS, options.TrainerOptions)
command.require(
    FLAGS, "problem", "data_dir", "output_dir", text="Required, except with --describe."
)
command.require(FLAGS, "hparams_set")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_run, FLAGS, doc=__doc__, required=_required, argv=argv)


def _required() -> Sequence[str]:
    if FLAGS.describe:
        data = ["problem", "data_dir"]  # their vocabulary, if any
        return ["hparams_set", *(data if any(FLAGS[name].value for name in data) else [])]
    return ["problem", "data_dir", "output_dir", "hparams_set"]


def _describe() -> None:
    original = _hparams_set()
    with command.quiet_import():
        from t2t_lite.data import data_dir, remote
        from t2t_lite.train import describe
    hparams = config.override(original, ",".join(FLAGS.hparams))
    name = FLAGS.hparams_set if config.model(hparams) == config.model(original) else None
    vocab_size = describe.PAPER_VOCABULARY
    if FLAGS.data_dir:
        data = data_dir.read(remote.local(FLAGS.data_dir), registry.problem(FLAGS.problem))
        vocab_size = data.vocabulary_file["size"]
    print(describe.table(describe.describe(hparams, vocab_size, hparams_set=name)))


def _run() -> int | None:
    if FLAGS.describe:
        return _describe()
    trainer_options = command.options(FLAGS, options.TrainerOptions)
    machine.keep_freed_memory()
    problem = registry.problem(FLAGS.problem)
    hparams = _hparams_set()
    with command.quiet_import():
        from t2t_lite.data import data_dir, remote
        from t2t_lite.tasks import catalog
        from t2t_lite.train import preparation, trainer
    hparams = dataclasses.replace(hparams, **catalog.task_class(problem.task).decoding_defaults)
    hparams = config.override(hparams, ",".join(FLAGS.hparams))
    if FLAGS.train_steps:
        hparams = dataclasses.replace(hparams, train_steps=FLAGS.train_steps)
    setup = preparation.prepare(
        data_dir.read(remote.local(FLAGS.data_dir), problem),
        directory=FLAGS.output_dir,
        hparams=hparams,
        hparams_set=FLAGS.hparams_set,
        options=trainer_options,
        say=functools.partial(print, file=sys.stderr, flush=True),
    )
    summary = trainer.Training(setup).run(sys.stderr)
    print(_report(summary))
    if summary.stopped_by in (None, "patience"):
        return 0
    # The exit status that a shell gives a process ended by a signal, so that scripts stop.
    return 128 + signal.Signals[summary.stopped_by]


def _hparams_set() -> config.HParams:
    """Return the hyperparameters of a set or of an output_dir."""
    path = pathlib.Path(FLAGS.hparams_set) / "hparams.json"
    if FLAGS.hparams_set not in registry.hparams_sets() and path.is_file():
        return config.from_json(path)
    return registry.hparams(FLAGS.hparams_set)


def _report(summary: "trainer.Summary") -> str:
    done = summary.throughput
    work = (
        f"{FLAGS.output_dir}: {errors.counted(summary.steps, 'step')} in {summary.seconds:,.0f} s, "
        f"{done.tokens:,} real tokens ({done.fill:.0%} of the batches)"
    )
    if done.tokens_per_second:  # 0 if only first steps, which compile, were done
        work += f"; while training {done.tokens_per_second:,.0f} tokens/s"
    lines = [work]
    if summary.skipped:
        skipped = errors.counted(summary.skipped, "step")
        lines.append(f"{skipped} with a NaN or infinite gradient skipped")
    if summary.best_step:
        lines.append(f"best dev score at step {summary.best_step}: {FLAGS.output_dir}/best")
    if summary.stopped_by == "patience":
        lines.append("stopped by patience; to resume raise --early_stopping_patience or omit it")
    elif summary.stopped_by:
        lines.append(f"stopped by {summary.stopped_by}; the same command resumes")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
