"""Subword regularisation: a pair is read in other subwords each time it comes.

Some of the merges by which BPE builds a word are left out at random (see text.bpe_dropout), so
that a model from a small corpus learns what words are made of. A pair takes some 30 microseconds.
"""

from collections.abc import Sequence

import numpy as np

from t2t_lite.text import bpe_dropout

_Rows = tuple[np.ndarray, np.ndarray]  # int32 [tokens] of all rows, int64 [rows] their lengths


def resample(
    dropout: bpe_dropout.BPEDropout,
    number: int,
    inputs: np.ndarray,
    input_lengths: np.ndarray,
    targets: np.ndarray,
    target_lengths: np.ndarray,
    *,
    sizes: Sequence[tuple[int, int]],
    share: float,
    seed: int,
) -> list[np.ndarray]:
    """Return a block of pairs in sampled subwords, which follow from `seed` and `number`.

    Args:
      dropout: of both sides' vocabulary.
      number: the block's, counted through all epochs.
      inputs, targets: int32 [tokens], the ids of each pair one after the other, each with EOS.
      input_lengths, target_lengths: int64 [pairs].
      sizes: (source, target) lengths, one of which a pair must fit, or it stays as it is.
      share: with which a merge is left out.
    """
    stored = (inputs, input_lengths), (targets, target_lengths)
    sampled = [
        dropout(*side, share=share, seed=[seed, number, which]) for which, side in enumerate(stored)
    ]
    lengths = np.stack([side_lengths for _, side_lengths in sampled], axis=1)
    fits = np.any(np.all(lengths[:, None] <= np.array(sizes), axis=2), axis=1)
    return [part for sides in zip(sampled, stored) for part in _choose(*sides, fits)]


def _choose(one: _Rows, other: _Rows, is_one: np.ndarray) -> _Rows:
    """Return the rows of `one` where `is_one`, else those of `other`."""
    parts = (is_one, one), (~is_one, other)
    ids = [flat[np.repeat(chosen, lengths)] for chosen, (flat, lengths) in parts]
    row = [np.repeat(np.flatnonzero(chosen), lengths[chosen]) for chosen, (_, lengths) in parts]
    order = np.argsort(np.concatenate(row), kind="stable")
    return np.concatenate(ids)[order], np.where(is_one, one[1], other[1])
