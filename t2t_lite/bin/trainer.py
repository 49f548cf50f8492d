"""Train a model on a generated problem.

  t2t-lite-trainer --problem=toy_ende --data_dir=data --output_dir=run --hparams_set=transformer_toy

The same command continues a run that was stopped.
"""

import sys

from absl import flags

from t2t_lite import config, registry
from t2t_lite.bin import command

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
    hparams = config.override(registry.hparams(FLAGS.hparams_set), FLAGS.hparams)
    if FLAGS.train_steps:
        hparams = config.override(hparams, f"train_steps={FLAGS.train_steps}")
    with command.quiet_import():
        from t2t_lite.train import trainer
    options = trainer.Options(
        eval_frequency=FLAGS.eval_frequency,
        save_checkpoints_secs=FLAGS.save_checkpoints_secs,
        save_checkpoints_steps=FLAGS.save_checkpoints_steps,
        keep_checkpoint_max=FLAGS.keep_checkpoint_max,
        strategy=FLAGS.strategy,
        xla=FLAGS.xla,
        precision=FLAGS.precision,
        random_seed=FLAGS.random_seed,
    )
    summary = trainer.train(
        problem,
        data_dir=FLAGS.data_dir,
        directory=FLAGS.output_dir,
        hparams=hparams,
        hparams_set=FLAGS.hparams_set,
        options=options,
        stream=sys.stderr,
    )
    speed = summary.tokens / summary.seconds if summary.seconds else 0
    print(
        f"{FLAGS.output_dir}: {summary.steps} steps in {summary.seconds:,.0f} s, "
        f"{summary.tokens:,} real tokens, {speed:,.0f} tokens/s with evaluation and saving"
    )


if __name__ == "__main__":
    sys.exit(main())
