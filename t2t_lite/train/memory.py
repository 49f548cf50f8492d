"""Does a training fit into memory? If not, the system would kill it without a message."""

import tensorflow as tf

from t2t_lite import config, errors, machine
from t2t_lite.data import data_dir, pipeline
from t2t_lite.train import cost, describe

# TensorFlow's temporary memory over `cost.activation_bytes`, measured for base and big under XLA on
# a processor: 1.8 to 2.2. Weights, gradients and moments are four arrays; the packed gradients a
# fifth.
_ACTIVATIONS, _WEIGHTS = 2.2, 1.25


def tokens_per_device(
    hparams: config.HParams, vocab_size: int, *, replicas: int, memory: int
) -> int:
    """Return the `max_tokens_per_device` that fits a GPU's memory; 0: its share of a batch fits.

    A limit in `hparams` is kept.
    """
    if hparams.max_tokens_per_device:
        return hparams.max_tokens_per_device
    length = hparams.max_length  # a token of a long row takes most
    pair = cost.activation_bytes(hparams, vocab_size, batch=1, source=length, target=length)
    free = 0.9 * memory - _WEIGHTS * describe.describe(hparams, vocab_size).weight_bytes
    tokens = max(int(free * length / (_ACTIVATIONS * pair)), 1)
    return tokens if tokens * replicas < hparams.batch_tokens else 0


def check(
    data: data_dir.Data,
    *,
    hparams: config.HParams,
    vocab_size: int,
    workers: int = 1,
) -> None:
    """Raise UserError if training, or evaluating dev, needs more memory than is free.

    Each of several workers computes its share of a batch. A GPU's memory is not checked: TensorFlow
    reports when it is full.
    """
    if tf.config.list_physical_devices("GPU"):
        return
    shapes = pipeline.bucket_shapes(data, **hparams.batch_limits)
    described = describe.describe(hparams, vocab_size)
    weights, has = described.weight_bytes, machine.memory()
    batch = max(
        cost.activation_bytes(
            hparams, vocab_size, batch=-(-rows // workers), source=source, target=target
        )
        for rows, source, target in shapes
    )
    if weights + batch > has:
        batches = "max_tokens_per_device, batch_tokens or max_length"
        lower = batches if weights <= has else "d_model, d_ff or the number of layers"
        raise errors.UserError(
            f"training {described.parameters:,} parameters needs at least "
            f"{(weights + batch) / 1e9:,.1f} GB of memory (weights, gradients and moments "
            f"{weights / 1e9:,.1f}, a batch {batch / 1e9:,.1f}), and {has / 1e9:,.1f} GB are free "
            f"here: lower {lower}"
        )
    # Dev is not cleaned and evaluated whole: one line of junk can be longer than any batch.
    dev = data.lengths("dev")
    source, target, _ = dev.max(axis=0, initial=0).tolist()
    evaluation = cost.evaluation_bytes(hparams, vocab_size, source=source, target=target)
    if weights + evaluation > has:
        raise errors.UserError(
            f"evaluating dev needs at least {(weights + evaluation) / 1e9:,.1f} GB of memory, and "
            f"{has / 1e9:,.1f} GB are free here: its longest texts have {source:,} source and "
            f"{target:,} target tokens; leave them out of the dev text"
        )
