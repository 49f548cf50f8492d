"""Strategy, XLA and precision of a training, and what "auto" means for each."""

import pathlib
from collections.abc import Callable, Iterator

import tensorflow as tf

from t2t_lite import errors
from t2t_lite.train import cluster as clusters

_BFLOAT16_SINCE = (8, 0)  # compute capability of GPUs that multiply it (Ampere)


def strategy(name: str, *, say: Callable[[str], None] = lambda _: None) -> tf.distribute.Strategy:
    """Return the strategy called auto, one_device, mirrored or multi_worker.

    "auto" is multi_worker if TF_CONFIG is set, mirrored if there are several GPUs, and one device
    otherwise. "mirrored" without a GPU uses the logical CPUs; tests create two. Several workers
    wait for each other here; `say` gets a line about those that are missing.
    """
    cluster = clusters.read() if name in ("auto", "multi_worker") else None
    if cluster:  # before anything starts TensorFlow's runtime, as collectives demand
        clusters.wait(cluster, say)
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "multi_worker":
        raise errors.UserError("--strategy=multi_worker needs TF_CONFIG in the environment")
    if name == "auto":
        several = len(tf.config.list_logical_devices("GPU")) > 1
        name = "mirrored" if several else "one_device"
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_devices())
    return tf.distribute.get_strategy()  # one device: no strategy


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Return whether this process writes: of several, the task "chief", or worker 0 if the cluster
    has no chief."""
    resolver = strategy.cluster_resolver
    if resolver is None:
        return True
    has_chief = "chief" in resolver.cluster_spec().jobs
    return (resolver.task_type, resolver.task_id) == ("chief" if has_chief else "worker", 0)


def num_workers(strategy: tf.distribute.Strategy) -> int:
    """Return the number of processes that train together."""
    if strategy.cluster_resolver is None:
        return 1
    cluster = strategy.cluster_resolver.cluster_spec().as_dict()
    return sum(len(cluster.get(kind, [])) for kind in clusters.KINDS)


def use_xla(choice: str) -> bool:
    """Return whether to compile: "auto" means on a GPU (on a CPU XLA is 1.5 times slower)."""
    return choice == "on" or (choice == "auto" and bool(tf.config.list_physical_devices("GPU")))


def steps_between_fetches() -> int:
    """Return after how many steps the host reads their results.

    Reading waits for a GPU, which then idles until it gets the next step. A CPU computes a step
    while it is called.
    """
    return 10 if tf.config.list_physical_devices("GPU") else 1


def precision(choice: str) -> str:
    """Return "float32" or "bfloat16"; "auto" is bfloat16 if the hardware multiplies it."""
    if choice != "auto":
        return choice
    if gpus := tf.config.list_physical_devices("GPU"):
        details = map(tf.config.experimental.get_device_details, gpus)
        capable = all(gpu.get("compute_capability", (0,)) >= _BFLOAT16_SINCE for gpu in details)
        return "bfloat16" if capable else "float32"
    try:
        features = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return "float32"
    return "bfloat16" if "avx512_bf16" in features or "amx_bf16" in features else "float32"


def remarks() -> Iterator[str]:
    """Yield a line where TensorFlow has no kernels for these GPUs: the driver compiles them."""
    compiled = tf.sysconfig.get_build_info().get("cuda_compute_capabilities", ())
    for gpu in tf.config.list_physical_devices("GPU")[:1]:
        details = tf.config.experimental.get_device_details(gpu)
        name = "".join(map(str, details.get("compute_capability", ())))
        if name and f"sm_{name}" not in compiled:
            yield (
                "TensorFlow has no kernels for this GPU: the first start compiles them, which may "
                "take minutes, and keeps them in ~/.nv/ComputeCache"
            )


def dtype_policy(precision: str) -> str:
    """Return the Keras policy for training: float32 variables whatever the compute type."""
    return "mixed_bfloat16" if precision == "bfloat16" else "float32"


def _devices() -> list[str]:
    gpus = tf.config.list_logical_devices("GPU")
    return [device.name for device in gpus or tf.config.list_logical_devices("CPU")]
