"""Whether a training fits into memory: the system would kill it without a word."""

import contextlib
import functools
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
    needs = [
        needed(hparams, vocab_size, batch=-(-batch // workers), source=source, target=target)
        for batch, source, target in shapes
    ]
    weights, batch = max(needs)
    has = available()
    if weights + batch > has:
        count = describe.describe(hparams, vocab_size).parameters
        lower = "d_model, d_ff or the number of layers"
        if weights <= has:
            lower = "max_tokens_per_device, batch_tokens or max_length"
        raise errors.UserError(
            f"training {count:,} parameters needs at least {(weights + batch) / 1e9:,.1f} GB of "
            f"memory (weights, gradients and moments {weights / 1e9:,.1f}, a batch "
            f"{batch / 1e9:,.1f}), and {has / 1e9:,.1f} GB are free here: lower {lower}"
        )
    # Dev is not cleaned and evaluated whole: one line of junk can be longer than any batch.
    dev = manifest.load(data_dir, problem).lengths("dev", is_reversed=problem.is_reversed)
    source, target, _ = dev.max(axis=0, initial=0).tolist()
    evaluation = needed_to_evaluate(hparams, vocab_size, source=source, target=target)
    if weights + evaluation > has:
        raise errors.UserError(
            f"evaluating dev needs at least {(weights + evaluation) / 1e9:,.1f} GB of memory, and "
            f"{has / 1e9:,.1f} GB are free here: its longest texts have {source:,} source and "
            f"{target:,} target tokens; leave them out of the dev text"
        )


def needed_to_evaluate(
    hparams: config.HParams, vocab_rows: int, *, source: int, target: int
) -> int:
    """Return the bytes that evaluating one pair needs at least beside the weights: of one
    sub-layer's attention, its products and weights, or the logits; two bytes a number."""
    keys = functools.partial(cost.keys_of_a_query, hparams)
    attention = max(
        source * keys(source, causal=False), target * keys(target, causal=True), target * source
    )
    return 2 * max(2 * hparams.num_heads * attention, target * vocab_rows)


def needed(
    hparams: config.HParams, vocab_rows: int, *, batch: int, source: int, target: int
) -> tuple[int, int]:
    """Return the bytes that training needs at least: of the weights, and of one batch at a time.

    Weights, gradients and two moments are float32. Of a batch count what stays of each layer until
    its backward pass: of every sub-layer its input, its output and their norm, float32; attention
    weights and the hidden layer, and the logits with their probabilities, two bytes a number at
    least. TensorFlow's own hundreds of megabytes and what it copies come on top.
    """
    h = hparams
    if h.max_tokens_per_device:
        batch = max(1, min(batch, h.max_tokens_per_device // max(source, target)))
    states = 3 * h.d_model * (2 * h.num_encoder_layers * source + 3 * h.num_decoder_layers * target)
    encoder = h.num_heads * source * cost.keys_of_a_query(h, source, causal=False) + source * h.d_ff
    seen = cost.keys_of_a_query(h, target, causal=True) + source
    decoder = h.num_heads * target * seen + target * h.d_ff
    others = h.num_encoder_layers * encoder + h.num_decoder_layers * decoder
    others += 2 * target * vocab_rows
    weights = describe.describe(h, vocab_rows).parameters
    return 4 * 4 * weights, batch * (4 * states + 2 * others)


def available() -> int:
    """Return the bytes of memory that this process may still have, as machine and cgroups say."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path, number in _MEMORY_LIMITS.items():
        with contextlib.suppress(OSError):  # there is no such file
            if found := re.search(number, pathlib.Path(path).read_text("ascii")):
                limits.append(int(found[1]) * (1024 if found[2] else 1))
    return min(limits)
