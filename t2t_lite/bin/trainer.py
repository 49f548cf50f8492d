"""Train a model on a generated problem.

  t2t-lite-trainer --problem=toy_ende --data_dir=data --output_dir=run --hparams_set=transformer_toy

The same command continues a run that was stopped.
"""

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from absl import flags

from t2t_lite import config, registry
from t2t_lite.bin import command

if TYPE_CHECKING:
    from t2t_lite.train import trainer

FLAGS = command.new_flags()
flags.DEFINE_string("problem", None, "What to learn, e.g. wmt14_ende.", flag_values=FLAGS)
flags.DEFINE_string("data_dir", None, "Where t2t-lite-datagen wrote it.", flag_values=FLAGS)
flags.DEFINE_string(
    "output_dir", None, "Where checkpoints and events go; made if missing.", flag_values=FLAGS
)
flags.DEFINE_string("hparams_set", None, "E.g. transformer_base.", flag_values=FLAGS)
flags.DEFINE_string(
    "hparams", "", "Changes to the set, e.g. d_ff=4096,dropout=0.3.", flag_values=FLAGS
)
flags.DEFINE_integer(
    "train_steps", None, "Updates in all; default: the set's.", lower_bound=1, flag_values=FLAGS
)
flags.DEFINE_integer(
    "eval_frequency", 1000, "Updates between evaluations.", lower_bound=1, flag_values=FLAGS
)
flags.DEFINE_integer(
    "eval_sentences", 500, "Dev sentences decoded for BLEU; 0: none.", 0, flag_values=FLAGS
)
flags.DEFINE_integer(
    "early_stopping_patience",
    0,
    "Evaluations without a better dev score after which to stop; 0: never.",
    0,
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "warm_start_from", None, "An output_dir whose weights a new run takes.", flag_values=FLAGS
)
flags.DEFINE_integer(
    "max_skipped_steps", 0, "Steps without a finite gradient to pass over.", 0, flag_values=FLAGS
)
flags.DEFINE_bool("profile", False, "Write a TensorFlow profile of ten steps.", flag_values=FLAGS)
flags.DEFINE_float(
    "save_checkpoints_secs", 600, "Seconds between checkpoints.", 0, flag_values=FLAGS
)
flags.DEFINE_integer(
    "save_checkpoints_steps", 0, "Updates between checkpoints, instead.", 0, flag_values=FLAGS
)
flags.DEFINE_integer("keep_checkpoint_max", 20, "How many checkpoints stay.", 1, flag_values=FLAGS)
flags.DEFINE_enum(
    "strategy",
    "auto",
    ["auto", "one_device", "mirrored", "multi_worker"],
    "How to use several devices.",
    flag_values=FLAGS,
)
flags.DEFINE_enum(
    "xla", "auto", ["auto", "on", "off"], "Compile; auto: on GPUs.", flag_values=FLAGS
)
flags.DEFINE_enum(
    "precision",
    "auto",
    ["auto", "float32", "bfloat16"],
    "Of the matrix products; auto: bfloat16 where the hardware has it.",
    flag_values=FLAGS,
)
flags.DEFINE_integer("random_seed", 1, "Of weights, data order and dropout.", flag_values=FLAGS)


def main(argv=None) -> int:
    """Run the command; return its exit status."""
    required = ("problem", "data_dir", "output_dir", "hparams_set")
    return command.run(_train, FLAGS, doc=__doc__, required=required, argv=argv)


def _train() -> None:
    problem = registry.problem(FLAGS.problem)
    hparams = registry.hparams(FLAGS.hparams_set)
    hparams = dataclasses.replace(hparams, **problem.decode_defaults)
    hparams = config.override(hparams, FLAGS.hparams)
    if FLAGS.train_steps:
        hparams = config.override(hparams, f"train_steps={FLAGS.train_steps}")
    with command.quiet_import():
        from t2t_lite.train import trainer
    names = [field.name for field in dataclasses.fields(trainer.Options)]
    values: dict[str, Any] = {name: FLAGS[name].value for name in names}
    options = trainer.Options(**values)
    training = trainer.prepare(
        problem,
        data_dir=FLAGS.data_dir,
        directory=FLAGS.output_dir,
        hparams=hparams,
        hparams_set=FLAGS.hparams_set,
        options=options,
    )
    print(_report(training.run(sys.stderr)))


def _report(summary: "trainer.Summary") -> str:
    done = summary.throughput
    share = done.flops_per_second / summary.peak
    lines = [
        f"{FLAGS.output_dir}: {summary.steps:,} steps in {summary.seconds:,.0f} s, "
        f"{done.tokens:,} real tokens ({done.fill:.0%} of the batches), {done.flops:.2e} FLOPs; "
        f"while training {done.tokens_per_second:,.0f} tokens/s, {share:.0%} of the measured "
        f"matrix-multiply peak of {summary.peak / 1e9:,.0f} GFLOP/s",
    ]
    if summary.skipped:
        lines.append(f"{summary.skipped} steps without a finite gradient were left out")
    if summary.best_step:
        lines.append(f"best dev score at step {summary.best_step}: {FLAGS.output_dir}/best")
    if summary.stopped_by:
        lines.append(f"stopped by {summary.stopped_by}; the same command continues")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
