"""Average the weights of checkpoints, as "Attention Is All You Need" does (Section 6.1).

  t2t-lite-avg-checkpoints --output_dir=run

writes the average to run/averaged. Use it with --checkpoint_path=run/averaged.
"""

import sys
from collections.abc import Mapping, Sequence

from absl import flags

from t2t_lite import errors
from t2t_lite.bin import command

FLAGS = command.new_flags()
command.define_strings(
    FLAGS, output_dir=f"{command.OUTPUT_DIR} The average is written to output_dir/averaged."
)
command.define_integers(
    FLAGS,
    1,
    num_last_checkpoints="How many of the newest checkpoints to average. Default: the model's "
    "hyperparameter averaged_checkpoints (5 in transformer_base), or all if there are fewer.",
)
flags.DEFINE_list(
    "checkpoints",
    [],
    "Average these checkpoints instead: step numbers in output_dir, or paths, separated by commas, "
    "e.g. 95000,97500.",
    flag_values=FLAGS,
)
REQUIRED = command.require(FLAGS, "output_dir")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return command.run(_average, FLAGS, doc=__doc__, required=REQUIRED, argv=argv)


def _average() -> None:
    with command.quiet_import():
        from t2t_lite.run import averaging, checkpoint, output_dir
    if FLAGS["checkpoints"].present and FLAGS.num_last_checkpoints:
        raise errors.UserError("--checkpoints and --num_last_checkpoints: expected one of the two")
    if FLAGS["checkpoints"].present and not all(FLAGS.checkpoints or [""]):
        raise errors.UserError(
            f"--checkpoints={','.join(FLAGS.checkpoints)}: expected path prefixes or steps, with "
            "commas between"
        )
    run = output_dir.read(FLAGS.output_dir)
    checkpoints = dict(checkpoint.list_checkpoints(run.path))
    wanted = FLAGS.num_last_checkpoints or run.hparams.averaged_checkpoints
    if FLAGS.checkpoints:
        prefixes = [_prefix(text, checkpoints) for text in FLAGS.checkpoints]
    else:
        count = FLAGS.num_last_checkpoints or min(wanted, len(checkpoints))
        prefixes = averaging.last_checkpoints(run.path, count)
    written = averaging.average(prefixes, run.path, run.identity)
    print(
        f"{written}: the mean of {errors.counted(len(prefixes), 'checkpoint')}, "
        f"{prefixes[0]} to {prefixes[-1]}"
    )
    if not FLAGS.checkpoints and len(prefixes) < wanted:
        print(f"averaged_checkpoints is {wanted}; the run has no more checkpoints")


def _prefix(text: str, checkpoints: Mapping[int, str]) -> str:
    """Return the path prefix that a step of the output_dir, or a prefix itself, stands for."""
    if not text.isdecimal():
        return text
    if int(text) not in checkpoints:
        raise errors.UserError(f"{FLAGS.output_dir} has no checkpoint of step {text}")
    return checkpoints[int(text)]


if __name__ == "__main__":
    sys.exit(main())
