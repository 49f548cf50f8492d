"""Serve an export on this machine, to try it out without TensorFlow Serving.

python -m t2t_lite.bin.loopback_server --export_dir=export --servable_name=ende

It serves the newest version, and replaces it as soon as there is a newer one.
"""

import signal
import socket
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
flags.DEFINE_string(
    "labels",
    "",
    'E.g. "stable=1 canary=2": serve these versions, each under its label too, and no other.',
    flag_values=FLAGS,
)
flags.DEFINE_integer(
    "max_batch_size",
    None,
    "Rows of a batch, and of a request; default: what the export says.",
    1,
    flag_values=FLAGS,
)
flags.DEFINE_float(
    "batch_timeout_secs",
    None,
    "How long a request waits for company; default: what the export says.",
    0,
    flag_values=FLAGS,
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
    labels = _labels()
    for name in ("port", "rest_port"):
        _check_port(name)
    with command.quiet_import():
        import tensorflow as tf

        from t2t_lite.serving import loopback, served_model
    tf.get_logger().setLevel("ERROR")  # of sessions it says that they are old
    tf.config.threading.set_intra_op_parallelism_threads(FLAGS.tensorflow_intra_op_parallelism)
    model = served_model.Model(
        FLAGS.export_dir,
        labels=labels,
        max_batch_size=FLAGS.max_batch_size,
        batch_timeout=FLAGS.batch_timeout_secs,
        num_threads=FLAGS.num_threads,
        warm_up=FLAGS.warm_up,
        report=lambda line: print(line, file=sys.stderr, flush=True),
    )
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with loopback.Server(
        model, FLAGS.servable_name, port=FLAGS.port, rest_port=FLAGS.rest_port
    ) as server:
        print(
            f"serving {model.newest.path} as {FLAGS.servable_name!r}: gRPC port {server.port}, "
            f"REST port {server.rest_port}; ready after {time.monotonic() - start:.2f} s",
            flush=True,
        )
        stopped.wait()


def _labels() -> dict[str, int]:
    """Return the version of each label."""
    pairs = [pair.partition("=") for pair in FLAGS.labels.split()]
    for label, _, number in pairs:
        if not label or not number.isdecimal():
            raise errors.UserError(
                f'--labels is "label=version ...", e.g. "stable=1 canary=2"; got {FLAGS.labels!r}'
            )
    return {label: int(number) for label, _, number in pairs}


def _check_port(flag: str) -> None:
    """Say before the seconds that loading takes that a port cannot be had."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", FLAGS[flag].value))
        except (OSError, OverflowError) as error:
            raise errors.UserError(
                f"port {FLAGS[flag].value} cannot be had ({error}): give another --{flag}, or 0 "
                "for a free one"
            ) from error


if __name__ == "__main__":
    sys.exit(main())
