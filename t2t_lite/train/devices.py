"""What to train on and how: strategy, XLA and precision, where "auto" has to decide."""

import os
import pathlib

import tensorflow as tf

from t2t_lite import errors


def check(name: str) -> None:
    """Raise UserError for a strategy that this machine's settings do not allow."""
    if name == "multi_worker" and not _in_cluster():
        raise errors.UserError("--strategy=multi_worker needs TF_CONFIG in the environment")


def strategy(name: str) -> tf.distribute.Strategy:
    """Return the strategy called auto, one_device, mirrored or multi_worker.

    "auto" is multi_worker where TF_CONFIG is set, mirrored where there are several GPUs, one
    device otherwise. "mirrored" without a GPU takes the logical CPUs, of which tests make two.
    """
    check(name)
    if name == "auto" and _in_cluster():
        name = "multi_worker"  # before anything starts TensorFlow's runtime, as collectives demand
    elif name == "auto":
        several = len(tf.config.list_logical_devices("GPU")) > 1
        name = "mirrored" if several else "one_device"
    if name == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_devices())
    return tf.distribute.get_strategy()  # one device: no strategy


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Return whether this process writes: of several workers, only the first one does."""
    resolver = strategy.cluster_resolver
    return resolver is None or (resolver.task_type, resolver.task_id) in (
        ("worker", 0),
        ("chief", 0),
    )


def use_xla(choice: str) -> bool:
    """Return whether to compile: "auto" means on a GPU (on a CPU XLA is 1.5 times slower)."""
    return choice == "on" or (choice == "auto" and bool(tf.config.list_physical_devices("GPU")))


def precision(choice: str) -> str:
    """Return "float32" or "bfloat16"; "auto" is the latter where the hardware multiplies it."""
    if choice != "auto":
        return choice
    if tf.config.list_physical_devices("GPU"):
        return "bfloat16"
    try:
        features = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return "float32"
    return "bfloat16" if "avx512_bf16" in features or "amx_bf16" in features else "float32"


def dtype_policy(precision: str) -> str:
    """Return the Keras policy for training: float32 variables whatever the compute type."""
    return "mixed_bfloat16" if precision == "bfloat16" else "float32"


def _in_cluster() -> bool:
    return bool(os.environ.get("TF_CONFIG"))


def _devices() -> list[str]:
    gpus = tf.config.list_logical_devices("GPU")
    return [device.name for device in gpus or tf.config.list_logical_devices("CPU")]
