"""Sentences in batches of like length (no TensorFlow)."""

from collections.abc import Sequence

import numpy as np


def batches(lengths: Sequence[int], *, batch_size: int, batch_tokens: int) -> list[list[int]]:
    """Group sentences by index, longest first, by the budget of tokens with padding.

    >>> batches([2, 9, 3, 8], batch_size=3, batch_tokens=18)
    [[1, 3], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    groups: list[list[int]] = []
    for index in order:
        group = groups[-1] if groups else []
        room = min(batch_size, batch_tokens // lengths[group[0]]) if group else 0
        if len(group) < room:
            group.append(index)
        else:
            groups.append([index])
    return groups


def pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Return int32 [B, S]: [[5, 6], [7]] -> [[5, 6], [7, 0]]."""
    padded = np.zeros([len(rows), max(map(len, rows), default=0)], np.int32)
    for row, ids in zip(padded, rows):
        row[: len(ids)] = ids
    return padded
