"""Few static shapes for many lengths: which [source, target] sizes waste the least padding.

A pair of lengths (s, t) goes into the smallest shape (S, T) with s <= S and t <= T; smallest means
the smallest S + T; token_batches says how many rows there are of it. Every traced shape costs
seconds of compilation, every missing one padding. The shapes are fitted to the corpus' own
histogram of length pairs:

1. split the box that holds all pairs where a cut saves most padding, again and again;
2. move each side of each shape to where the sum of all padding is smallest, while that helps.
"""

from collections.abc import Sequence

import numpy as np

_TOO_SMALL = 1 << 34  # the cost of a shape that does not hold a pair


def choose(table: np.ndarray, *, max_buckets: int, min_fill: float = 0.93) -> list[tuple[int, int]]:
    """Return the (S, T) of as few shapes as fill `min_fill`, at most `max_buckets`, small to large.

    `table` has the rows (source length, target length, pairs). Every pair of it finds a shape.
    """
    sizes = [(int(table[:, 0].max()), int(table[:, 1].max()))]
    count = min(4, max_buckets)
    while count <= max_buckets:
        sizes = _refine(table, _split(table, count))
        if len(sizes) < count or fill(table, sizes) >= min_fill:
            break
        count += 1
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


def _split(table: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Return the boxes after the `count - 1` cuts that each save the most padding."""
    parts = [(table, *_best_cut(table))]
    while len(parts) < count:
        best = max(range(len(parts)), key=lambda i: parts[i][1])
        if not parts[best][1]:
            break
        _, _, halves = parts.pop(best)
        parts += [(half, *_best_cut(half)) for half in halves]
    return sorted({_box(part) for part, _, _ in parts})


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


def _refine(table: np.ndarray, sizes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Move one side of one shape at a time to the best of all lengths, until nothing moves."""
    sizes = list(sizes)
    lengths = [np.unique(table[:, side]).tolist() for side in (0, 1)]
    for _ in range(20):
        before = list(sizes)
        for i in range(len(sizes)):
            others = _costs(table, sizes[:i] + sizes[i + 1 :]).min(1, initial=_TOO_SMALL)
            for side in (0, 1):
                kept = sizes[i][1 - side]
                tried = [(n, kept) if side == 0 else (kept, n) for n in lengths[side]]
                costs = np.minimum(_costs(table, tried), others[:, None])
                sizes[i] = tried[int((table[:, 2] @ costs).argmin())]
        if sizes == before:
            break
    return sorted(set(sizes))
