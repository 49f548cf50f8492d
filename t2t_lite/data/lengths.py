"""The histogram of a split's lengths: rows (source length, target length, pairs), EOS counted.

    two pairs of 5 and 6 tokens, one of 129 and 120  -->  [[5, 6, 2], [130, 120, 1]]

Long lengths are rounded up, so that the table stays small and no pair exceeds its row.
"""

import numpy as np


def histogram(sources: np.ndarray, targets: np.ndarray) -> list[list[int]]:
    """Return the rows [source length, target length, pairs] of some pairs' lengths."""
    cells = np.stack([round_up(sources), round_up(targets)], axis=1)
    lengths, counts = np.unique(cells, axis=0, return_counts=True)
    return np.concatenate([lengths, counts[:, None]], axis=1).tolist()


def round_up(lengths: np.ndarray) -> np.ndarray:
    """Round lengths up: exact to 128, then 64 steps an octave.

    >>> round_up(np.array([7, 128, 129, 257])).tolist()
    [7, 128, 130, 260]
    """
    octave = np.ceil(np.log2(np.maximum(lengths, 128))).astype(np.int64)
    step = np.maximum(1, 1 << np.maximum(octave - 7, 0))
    return (lengths + step - 1) // step * step


def is_too_long(table: np.ndarray, max_length: int) -> np.ndarray:
    """Return which rows hold pairs with a side of more than `max_length` tokens.

    A pair just over a limit that is not itself a rounded length is counted as within it.
    """
    return table[:, :2].max(axis=1) > round_up(np.array(max_length))
