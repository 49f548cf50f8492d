"""Subword regularisation: a pair is read in other subwords each time it comes.

BPE-dropout (Provilkov et al. 2020): some of the merges by which BPE builds a word are left out at
random, so that a model from a small corpus learns what words are made of. Stored ids are turned
into their text and that into ids, which takes some 30 microseconds a pair.
"""

from collections.abc import Sequence

import numpy as np

from t2t_lite.text import vocabulary


def resample(
    vocab: vocabulary.Vocabulary,
    number: int,
    inputs: np.ndarray,
    input_lengths: np.ndarray,
    targets: np.ndarray,
    target_lengths: np.ndarray,
    *,
    sizes: Sequence[tuple[int, int]],
    share: float,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a block of pairs in sampled subwords, which follow from `seed` and `number`.

    Args:
      vocab: of both sides.
      number: the block's, counted through all epochs.
      inputs, targets: int32 [tokens], the ids of each pair one after the other, each with EOS.
      input_lengths, target_lengths: int64 [pairs].
      sizes: (source, target) lengths, one of which a pair must fit, or it stays as it is.
      share: of the merges, left out.
    """
    seeds = np.random.default_rng([seed, number]).integers(1 << 31, size=2).tolist()
    old = _rows(inputs, input_lengths), _rows(targets, target_lengths)
    new = [
        [
            [*ids, vocabulary.EOS_ID]
            for ids in vocab.resample([row[:-1] for row in rows], share=share, seed=side_seed)
        ]
        for rows, side_seed in zip(old, seeds)
    ]
    pairs = [
        sampled if _fits(sampled, sizes) else stored
        for stored, sampled in zip(zip(*old), zip(*new))
    ]
    return (*_flat([source for source, _ in pairs]), *_flat([target for _, target in pairs]))


def _rows(flat: np.ndarray, lengths: np.ndarray) -> list[list[int]]:
    return [row.tolist() for row in np.split(flat, np.cumsum(lengths))[:-1]]


def _flat(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all rows one after the other, and the rows' lengths."""
    ids = [token for row in rows for token in row]
    return np.array(ids, np.int32), np.array([len(row) for row in rows], np.int64)


def _fits(pair: Sequence[Sequence[int]], sizes: Sequence[tuple[int, int]]) -> bool:
    source, target = map(len, pair)
    return any(source <= longest and target <= others for longest, others in sizes)
