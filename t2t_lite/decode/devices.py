"""Where batches are decoded."""

import contextlib

import tensorflow as tf

from t2t_lite import machine


def for_batches() -> list[str]:
    """Return every GPU; or each core of the CPU, so that it decodes a batch of its own.

    Two batches on a core each are faster than one after the other on both: nothing waits. Once
    TensorFlow has started, the threads of its operations stay as they are.
    """
    gpus = tf.config.list_logical_devices("GPU") if tf.config.list_physical_devices("GPU") else []
    if gpus:
        return [gpu.name for gpu in gpus]
    cores = machine.cores()
    with contextlib.suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(cores)
    return [""] * cores
