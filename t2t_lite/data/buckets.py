"""Few static shapes for many lengths: choose the [source, target] sizes that waste least padding.

A pair of lengths (s, t) goes into the smallest shape (S, T) with s <= S and t <= T, where smallest
means the smallest S + T; token_batches says how many rows a batch of it has. Every shape costs
seconds of compilation, every missing one padding. The shapes are fitted to the corpus' own
histogram of length pairs:

1. split the box that holds all pairs where a cut saves most padding, again and again;
2. move one side of one shape at a time to where the sum of all padding is smallest.
"""

import bisect
from collections.abc import Iterator, Sequence

import numpy as np

_TOO_SMALL = 1 << 34  # the cost of a shape that does not hold a pair


def choose(table: np.ndarray, *, max_buckets: int, min_fill: float = 0.93) -> list[tuple[int, int]]:
    """Return the (S, T) of as few shapes as fill `min_fill`, at most `max_buckets`, small to large.

    `table` has the rows (source length, target length, pairs). Every pair of it finds a shape.
    """
    sides = _Side(table, 0, 1), _Side(table, 1, 0)
    splits = list(_splits(table, max_buckets))
    # More shapes fill better, so the fewest that are full are found by halving: 5 of 21 are tried.
    fewest, most = min(4, len(splits)) - 1, len(splits) - 1
    number = bisect.bisect_left(
        splits,
        True,
        fewest,
        most,
        key=lambda boxes: fill(table, _refine(sides, boxes)) >= min_fill,
    )
    sizes = _refine(sides, splits[number])
    return sorted(sizes, key=lambda size: (sum(size), size))


def fill(table: np.ndarray, sizes: Sequence[tuple[int, int]]) -> float:
    """Return the share of real tokens, both sides together, in batches of these sizes."""
    sources, targets, pairs = table.T
    return float((pairs * (sources + targets)).sum() / (pairs * _costs(table, sizes).min(1)).sum())


def smallest(table: np.ndarray, sizes: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the number of the smallest size that holds each row of `table`."""
    return _costs(table, sizes).argmin(1)


def unfit(table: np.ndarray, sizes: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the rows of `table` whose pairs fit none of the sizes."""
    return table[_costs(table, sizes).min(1) == _TOO_SMALL]


def _costs(table: np.ndarray, sizes: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the padded tokens of each row's pair in each size: [rows, sizes]."""
    source_sizes, target_sizes = np.array(sizes, np.int64).reshape(-1, 2).T
    fits = (table[:, :1] <= source_sizes) & (table[:, 1:2] <= target_sizes)
    return np.where(fits, source_sizes + target_sizes, _TOO_SMALL)


def _box(table: np.ndarray) -> tuple[int, int]:
    return int(table[:, 0].max()), int(table[:, 1].max())


def _splits(table: np.ndarray, max_parts: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the boxes after 0, 1, 2, ... cuts; each cut saves as much padding as one can."""
    parts = [(table, *_best_cut(table))]
    while True:
        yield sorted({_box(part) for part, _, _ in parts})
        best = max(range(len(parts)), key=lambda i: parts[i][1])
        if len(parts) == max_parts or not parts[best][1]:
            return
        _, _, halves = parts.pop(best)
        parts += [(half, *_best_cut(half)) for half in halves]


def _best_cut(table: np.ndarray) -> tuple[int, list[np.ndarray]]:
    """Return the padding saved by the best cut of one box into two, and its halves."""
    best: tuple[int, list[np.ndarray]] = (0, [])
    for side in (0, 1):
        rows = table[np.argsort(table[:, side], kind="stable")]
        cuts = np.flatnonzero(np.diff(rows[:, side])) + 1
        if not len(cuts):
            continue
        below = np.cumsum(rows[:, 2])
        boxes_below = np.maximum.accumulate(rows[:, :2]).sum(1)
        boxes_above = np.maximum.accumulate(rows[::-1, :2])[::-1].sum(1)
        costs = below[cuts - 1] * boxes_below[cuts - 1]
        costs += (below[-1] - below[cuts - 1]) * boxes_above[cuts]
        cut = int(costs.argmin())
        saved = int(below[-1] * sum(_box(rows)) - costs[cut])
        if saved > best[0]:
            best = saved, [rows[: cuts[cut]], rows[cuts[cut] :]]
    return best


def _refine(
    sides: "tuple[_Side, _Side]", sizes: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Move one side of one shape at a time to the best of all lengths, until nothing moves."""
    sizes = list(sizes)
    for _ in range(20):
        before = list(sizes)
        for i in range(len(sizes)):
            source, target = sizes[i]
            others = sorted(sizes[:i] + sizes[i + 1 :], key=sum, reverse=True)
            source = sides[0].best_length(target, others)
            target = sides[1].best_length(source, [(t, s) for s, t in others])
            sizes[i] = source, target
        if sizes == before:
            break
    return sorted(set(sizes))


class _Side:
    """One side's lengths and how many pairs have each: at most 192 with max_length=256.

    `_pairs` [length, other length] counts the pairs of a length that are at most so long on the
    other side.
    """

    def __init__(self, table: np.ndarray, side: int, other_side: int):
        self._lengths, rows = np.unique(table[:, side], return_inverse=True)
        self._other_lengths, columns = np.unique(table[:, other_side], return_inverse=True)
        pairs = np.zeros((len(self._lengths), len(self._other_lengths)), np.int64)
        np.add.at(pairs, (rows, columns), table[:, 2])
        self._pairs = pairs.cumsum(1)

    def best_length(self, other: int, others: Sequence[tuple[int, int]]) -> int:
        """Return the length with which a shape, `other` long on the other side, saves most.

        A shape of n + other tokens takes over the pairs up to (n, other) that cost more in the
        `others`, (length, length of the other side) from the largest to the smallest. So for each
        of their costs the pairs up to every n are counted; each saves the difference.
        """
        # Between two ends, pairs of one length have the same cost.
        ends = np.unique([other, *(end for _, end in others if end < other)])
        strips = self._pairs[:, np.searchsorted(self._other_lengths, ends)]
        pairs = np.diff(strips, axis=1, prepend=0)
        ranks = np.zeros(pairs.shape, np.intp)
        rows = np.searchsorted(self._lengths, [length for length, _ in others], "right")
        columns = np.searchsorted(ends, [end for _, end in others], "right")
        for rank, (row, column) in enumerate(zip(rows, columns), 1):
            ranks[:row, :column] = rank  # a smaller shape takes its corner from the larger ones
        costs = np.array([_TOO_SMALL, *map(sum, others)])
        cells = np.arange(len(self._lengths))[:, None] * len(costs) + ranks
        counts = np.bincount(cells.ravel(), pairs.ravel(), len(self._lengths) * len(costs))
        up_to = counts.astype(np.int64).reshape(-1, len(costs)).cumsum(0)
        saved = up_to * np.maximum(costs - (self._lengths[:, None] + other), 0)
        return int(self._lengths[saved.sum(1).argmax()])
