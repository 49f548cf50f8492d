"""The mean of several checkpoints' weights (Section 6.1: base averages 5, big 20)."""

import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from t2t_lite import errors
from t2t_lite.run import checkpoint, output_dir
from t2t_lite.run import identity as identities


def average(
    prefixes: Sequence[str], directory: str | pathlib.Path, identity: identities.Identity
) -> str:
    """Write the mean weights as directory/averaged/ckpt-<last step>; return its prefix.

    Optimizer moments and data position are left out: the result is for decoding and export. The
    sum is made in float64. Raises UserError where a checkpoint is not of this identity, where they
    hold different weights, and where the last has another name than ckpt-<step>.
    """
    last_step = checkpoint.step_of(prefixes[-1])

    def read() -> Iterator[Mapping[str, np.ndarray]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for prefix in prefixes:
            checkpoint.check_identity(prefix, identity)
            weights = checkpoint.read_weights(prefix)
            found = {name: value.shape for name, value in weights.items()}
            if shapes and found != shapes:
                raise errors.UserError(f"{prefix} holds other weights than {prefixes[0]}")
            shapes = found
            yield weights

    means = mean(read())
    averaged = pathlib.Path(directory) / "averaged"
    with output_dir.only_one(averaged):
        return checkpoint.write_only(averaged, last_step, means, identity)


def mean(checkpoints: Iterable[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the mean of each weight, float32, of checkpoints {name: weight}."""
    total: dict[str, np.ndarray] = {}
    count = 0
    for weights in checkpoints:
        count += 1
        for name, weight in weights.items():
            total[name] = total.get(name, 0) + weight.astype(np.float64)
    return {name: (weight / count).astype(np.float32) for name, weight in total.items()}


def last_checkpoints(directory: str | pathlib.Path, count: int) -> list[str]:
    """Return the newest `count` checkpoints, oldest first; raise UserError for fewer."""
    checkpoint.resolve(directory)  # says so if there are none
    prefixes = [prefix for _, prefix in checkpoint.list_checkpoints(directory)]
    if len(prefixes) < count:
        raise errors.UserError(
            f"{directory} has {errors.counted(len(prefixes), 'checkpoint')}, {count} were asked "
            "for: give "
            f"--num_last_checkpoints={len(prefixes)} or train with a larger "
            "--keep_checkpoint_max"
        )
    return prefixes[-count:]
