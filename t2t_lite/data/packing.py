"""Several pairs in one row, so that next to nothing is padding.

    inputs            5 6 1 7 1 0        targets            8 1 9 9 1 0
    inputs_segments   1 1 1 2 2 0        targets_segments   1 1 2 2 2 0
    inputs_positions  0 1 2 0 1 0        targets_positions  0 1 0 1 2 0

holds (5 6 1 -> 8 1) and (7 1 -> 9 9 1). A token attends only within its segment, positions start
again with each, and segment 0 is padding; so the loss is that of the pairs one by one.
"""

import numpy as np


def sizes(mean_source: float, mean_target: float, max_length: int) -> tuple[int, int]:
    """Return a row's (source, target) tokens: in the corpus' proportion, the smaller max_length.

    >>> sizes(20.0, 25.0, 256)
    (256, 320)
    """
    ratio = mean_target / mean_source
    return round(max_length * max(1, 1 / ratio)), round(max_length * max(1, ratio))


def pack(
    inputs: np.ndarray,
    input_lengths: np.ndarray,
    targets: np.ndarray,
    target_lengths: np.ndarray,
    *,
    size: tuple[int, int],
    seed: int,
) -> list[np.ndarray]:
    """Return the ids, segments and positions of inputs, then of targets, each int32 [rows, size].

    Each side comes as its pairs' tokens one after another, and their lengths. The rows are
    shuffled, since they were filled with the longest pairs first.
    """
    rows = assign(input_lengths, target_lengths, size)
    num_rows = int(rows.max()) + 1
    rows = np.random.default_rng([seed, len(inputs), len(targets)]).permutation(num_rows)[rows]
    return [
        *fill_rows(inputs, input_lengths, rows, num_rows, size[0]),
        *fill_rows(targets, target_lengths, rows, num_rows, size[1]),
    ]


def assign(sources: np.ndarray, targets: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return the row of every pair of lengths, so that few rows are used.

    One row is filled after the other: of all pairs that still fit, the next is one that leaves
    least room on the side with more room. Pairs of equal lengths are as good as each other and
    taken in their order. Every pair must fit into an empty row.
    """
    lengths, kinds = np.unique(np.stack([sources, targets], 1), axis=0, return_inverse=True)
    waiting = [np.flatnonzero(kinds == kind).tolist()[::-1] for kind in range(len(lengths))]
    shares = lengths / np.array(size)
    rows = np.empty(len(sources), np.int64)
    row, room = 0, np.ones(2)
    for _ in range(len(sources)):
        left = _room_left(room, shares)
        if left.min() == np.inf:
            row, room = row + 1, np.ones(2)
            left = _room_left(room, shares)
        kind = int(left.argmin())
        room = room - shares[kind]
        rows[waiting[kind].pop()] = row
        if not waiting[kind]:
            shares[kind] = np.inf
    return rows


def _room_left(room: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the room that each kind of pair leaves on the emptier side, inf if it does not fit."""
    left = room - shares
    fits = left.min(1) > -1e-9
    return np.where(fits, left.max(1), np.inf)


def fill_rows(
    ids: np.ndarray, lengths: np.ndarray, rows: np.ndarray, num_rows: int, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one side's ids, segments and positions, each int32 [num_rows, size].

    `ids` holds the examples' tokens one after another, `lengths` and `rows` one number of each.
    """
    examples = np.argsort(rows, kind="stable")
    first = np.searchsorted(rows[examples], np.arange(num_rows))
    # of each example: its number in its row, and the tokens before it there
    number = np.empty(len(rows), np.int64)
    number[examples] = np.arange(len(rows)) - first[rows[examples]]
    before = np.concatenate([[0], np.cumsum(lengths[examples])])
    offset = np.empty(len(rows), np.int64)
    offset[examples] = before[:-1] - before[first[rows[examples]]]
    # of each token
    starts = np.cumsum(lengths) - lengths
    position = np.arange(len(ids)) - np.repeat(starts, lengths)
    row, column = np.repeat(rows, lengths), np.repeat(offset, lengths) + position
    out = np.zeros((3, num_rows, size), np.int32)
    out[:, row, column] = ids, np.repeat(number + 1, lengths), position
    return out[0], out[1], out[2]
