"""Average the weights of checkpoints, as the paper does before it decodes.

  t2t-lite-avg-checkpoints --output_dir=run --num_last_checkpoints=5

writes run/averaged/; decode with --checkpoint_path=run/averaged.
"""

import sys

from absl import flags

from t2t_lite import errors
from t2t_lite.bin import command

FLAGS = command.new_flags()
flags.DEFINE_string("output_dir", None, "The run; averaged/ is made in it.", flag_values=FLAGS)
flags.DEFINE_integer(
    "num_last_checkpoints", 5, "How many of the newest.", lower_bound=1, flag_values=FLAGS
)
flags.DEFINE_list(
    "checkpoints", [], "These instead: path prefixes, or steps of output_dir.", flag_values=FLAGS
)


def main(argv=None) -> int:
    """Run the command; return its exit status."""
    return command.run(_average, FLAGS, doc=__doc__, required=["output_dir"], argv=argv)


def _average() -> None:
    with command.quiet_import():
        from t2t_lite.run import averaging, checkpoint, output_dir
    output_dir.read(FLAGS.output_dir)
    if FLAGS.checkpoints:
        steps = {str(step): path for step, path in checkpoint.list_checkpoints(FLAGS.output_dir)}
        prefixes: list[str] = [steps.get(str(item), str(item)) for item in FLAGS.checkpoints]
        for prefix in prefixes:
            if prefix.isdigit():
                raise errors.UserError(f"{FLAGS.output_dir} has no checkpoint of step {prefix}")
    else:
        prefixes = averaging.last_checkpoints(FLAGS.output_dir, FLAGS.num_last_checkpoints)
    written = averaging.average(prefixes, FLAGS.output_dir)
    print(f"{written}: the mean of {len(prefixes)} checkpoints, {prefixes[0]} to {prefixes[-1]}")


if __name__ == "__main__":
    sys.exit(main())
