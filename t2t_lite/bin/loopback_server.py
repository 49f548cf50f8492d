"""Serve an export on this machine where no TensorFlow Serving is at hand: to try it out.

python -m t2t_lite.bin.loopback_server --export_dir=export --servable_name=ende
"""

import signal
import sys
import threading
import time
from collections.abc import Sequence

from absl import flags

from t2t_lite import errors
from t2t_lite.bin import command

FLAGS = command.new_flags()
flags.DEFINE_string("export_dir", None, "What t2t-lite-exporter wrote.", flag_values=FLAGS)
flags.DEFINE_string("servable_name", None, "The name to serve it under.", flag_values=FLAGS)
flags.DEFINE_integer("port", 8500, "Of gRPC; 0 takes a free one.", 0, flag_values=FLAGS)
flags.DEFINE_integer("rest_port", 8501, "Of REST; 0 takes a free one.", 0, flag_values=FLAGS)
flags.DEFINE_integer("max_batch_size", 32, "Sentences of a batch.", 1, flag_values=FLAGS)
flags.DEFINE_float(
    "batch_timeout_secs", 0, "How long a request waits for company.", 0, flag_values=FLAGS
)
flags.DEFINE_integer("num_threads", 1, "Batches at a time.", 1, flag_values=FLAGS)
# Named as TensorFlow Serving's own, which has 0, as many as there are cores. Steps of a beam search
# over few sentences are too small to share: waking a thread costs more than it brings.
flags.DEFINE_integer(
    "tensorflow_intra_op_parallelism", 1, "Threads of an operation; 0: all.", 0, flag_values=FLAGS
)
flags.DEFINE_bool("warm_up", True, "Run the export's warm-up requests first.", flag_values=FLAGS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    required = ("export_dir", "servable_name")
    return command.run(_serve, FLAGS, doc=__doc__, required=required, argv=argv)


def _serve() -> None:
    start = time.monotonic()
    try:
        with command.quiet_import():
            import tensorflow as tf

            from t2t_lite.serving import loopback
    except ModuleNotFoundError as error:
        raise errors.UserError(f"{error}: run `pip install tensorflow-serving-api`") from error
    tf.config.threading.set_intra_op_parallelism_threads(FLAGS.tensorflow_intra_op_parallelism)
    model = loopback.Model(
        FLAGS.export_dir,
        max_batch_size=FLAGS.max_batch_size,
        batch_timeout=FLAGS.batch_timeout_secs,
        num_threads=FLAGS.num_threads,
        warm_up=FLAGS.warm_up,
    )
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with loopback.Server(
        model, FLAGS.servable_name, port=FLAGS.port, rest_port=FLAGS.rest_port
    ) as server:
        print(
            f"serving {model.path} as {FLAGS.servable_name!r}: gRPC port {server.port}, "
            f"REST port {server.rest_port}; ready after {time.monotonic() - start:.2f} s",
            flush=True,
        )
        stopped.wait()


if __name__ == "__main__":
    sys.exit(main())
