"""Whether a training fits into memory: the system would kill it without a word."""

import contextlib
import os
import pathlib
import re

import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.data import manifest, pipeline
from t2t_lite.data import problem as problems
from t2t_lite.train import cost, describe

# Where Linux says what is free, and a container's limit (cgroup version 2 and 1).
_MEMORY_LIMITS = {
    "/proc/meminfo": r"MemAvailable: +(\d+)( kB)",
    "/sys/fs/cgroup/memory.max": r"^(\d+)()",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": r"^(\d+)()",
}


def check(
    problem: problems.Problem,
    data_dir: str | pathlib.Path,
    *,
    hparams: config.HParams,
    vocab_size: int,
    workers: int = 1,
) -> None:
    """Raise UserError where training, or evaluating dev, needs more memory than the machine has.

    The system would kill the process without a word. Of several workers each computes its share of
    a batch. A GPU's memory is not counted: when that is full, TensorFlow says so.
    """
    if tf.config.list_physical_devices("GPU"):
        return
    shapes = pipeline.bucket_shapes(
        problem,
        data_dir,
        batch_tokens=hparams.batch_tokens,
        max_length=hparams.max_length,
        max_buckets=hparams.max_buckets,
    )
    described = describe.describe(hparams, vocab_size)
    weights, has = described.weight_bytes, available()
    batch = max(
        cost.activation_bytes(
            hparams, vocab_size, batch=-(-rows // workers), source=source, target=target
        )
        for rows, source, target in shapes
    )
    if weights + batch > has:
        lower = "d_model, d_ff or the number of layers"
        if weights <= has:
            lower = "max_tokens_per_device, batch_tokens or max_length"
        raise errors.UserError(
            f"training {described.parameters:,} parameters needs at least "
            f"{(weights + batch) / 1e9:,.1f} GB of memory (weights, gradients and moments "
            f"{weights / 1e9:,.1f}, a batch {batch / 1e9:,.1f}), and {has / 1e9:,.1f} GB are free "
            f"here: lower {lower}"
        )
    # Dev is not cleaned and evaluated whole: one line of junk can be longer than any batch.
    dev = manifest.load(data_dir, problem).lengths("dev", is_reversed=problem.is_reversed)
    source, target, _ = dev.max(axis=0, initial=0).tolist()
    evaluation = cost.evaluation_bytes(hparams, vocab_size, source=source, target=target)
    if weights + evaluation > has:
        raise errors.UserError(
            f"evaluating dev needs at least {(weights + evaluation) / 1e9:,.1f} GB of memory, and "
            f"{has / 1e9:,.1f} GB are free here: its longest texts have {source:,} source and "
            f"{target:,} target tokens; leave them out of the dev text"
        )


def available() -> int:
    """Return the bytes of memory that this process may still have, as machine and cgroups say."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path, number in _MEMORY_LIMITS.items():
        with contextlib.suppress(OSError):  # there is no such file
            if found := re.search(number, pathlib.Path(path).read_text("ascii")):
                limits.append(int(found[1]) * (1024 if found[2] else 1))
    return min(limits)
