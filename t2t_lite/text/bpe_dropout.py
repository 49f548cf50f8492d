"""BPE-dropout (Provilkov et al. 2020, algorithm 1): the same text in other subwords.

BPE joins, of all neighbours in a word that can be joined, those whose subword was learnt first,
until there are none. BPE-dropout leaves each such pair out of a step's choice with some
probability, and stops where no pair is left:

    share 0    u n r e l a t e d  ->  ...  ->  unrelated
    share 0.1  u n r e l a t e d  ->  ...  ->  un relat ed, or un related, or unrelated, ...

All words of many texts take their steps together, in NumPy. SentencePiece's own sampling cannot be
repeated: the same seed gives other subwords in every process. It also leaves a pair out for good,
so that with 0.1 a text becomes 1.28 times as long, where here, as in the paper, it is 1.17.
"""

from collections.abc import Sequence

import numpy as np

from t2t_lite.text import vocabulary


class BPEDropout:
    """The merges of a vocabulary.

    Symbols and bytes are never joined, nor is what stands on both sides of a word's beginning.
    """

    def __init__(self, vocab: vocabulary.Vocabulary):
        self._size = vocab.size
        pieces = [vocab.piece(token) for token in range(vocab.size)]
        first = vocab.byte_ids.stop
        ids = {piece: token for token, piece in enumerate(pieces) if token >= first}
        characters = [
            [ids[character] for character in piece] if token >= first else [token]
            for token, piece in enumerate(pieces)
        ]
        self._lengths = np.array([len(part) for part in characters])
        self._characters = np.concatenate(characters)
        self._begins_word = np.array(
            [
                token < first or piece.startswith(vocabulary.SPACE)
                for token, piece in enumerate(pieces)
            ]
        )
        # Of two neighbours l, r the number l * size + r, in order, and what they are joined to; a
        # larger number than any is joined to nothing. Subwords stand in the order they were learnt.
        joined = {
            ids[piece[:cut]] * self._size + ids[piece[cut:]]: token
            for piece, token in ids.items()
            for cut in range(1, len(piece))
            if piece[:cut] in ids and piece[cut:] in ids
        }
        joined[self._size**2] = self._size
        self._pairs, self._joined = np.array(sorted(joined.items())).T

    def __call__(
        self, ids: np.ndarray, lengths: np.ndarray, *, share: float, seed: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return texts in other subwords, which follow from `seed`: ids [tokens'], lengths [texts].

        Args:
          ids: [tokens], of all texts one after the other; EOS may be among them.
          lengths: [texts], of each text in tokens.
          share: the probability with which a pair is left out of a step.
        """
        random = np.random.default_rng(seed)
        counts = self._lengths[ids]
        before = (np.cumsum(self._lengths) - self._lengths)[ids] - (np.cumsum(counts) - counts)
        symbols = self._characters[np.repeat(before, counts) + np.arange(counts.sum())]
        text = np.repeat(np.repeat(np.arange(len(lengths)), lengths), counts)
        begins = self._begins_word[symbols] | (np.diff(text, prepend=-1) != 0)
        word = np.cumsum(begins) - 1
        text_of_word = text[begins]
        cut = [(symbols[:0], word[:0])]
        joined = self._join(symbols, word, np.arange(len(symbols)))
        while len(symbols):
            places = np.arange(len(symbols))
            rank = np.where(random.random(len(symbols)) < share, self._size, joined)
            starts = np.flatnonzero(np.diff(word, prepend=-1))
            best, at = np.divmod(
                np.minimum.reduceat(rank * len(symbols) + places, starts), len(symbols)
            )
            goes_on = best < self._size
            stays = np.repeat(goes_on, np.diff(starts, append=len(symbols)))
            cut.append((symbols[~stays], word[~stays]))
            at = at[goes_on]
            symbols[at] = best[goes_on]
            stays[at + 1] = False
            symbols, word, joined = symbols[stays], word[stays], joined[stays]
            at = (np.cumsum(stays) - 1)[at]
            for changed in (at, at[at > 0] - 1):
                joined[changed] = self._join(symbols, word, changed)
        symbols, word = (np.concatenate(parts) for parts in zip(*cut))
        order = np.argsort(word, kind="stable")
        counts = np.bincount(text_of_word[word], minlength=len(lengths))
        return symbols[order].astype(ids.dtype), counts.astype(lengths.dtype)

    def _join(self, symbols: np.ndarray, word: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return what the symbols at `places` and after them are joined to; `size`: nothing."""
        after = np.minimum(places + 1, len(symbols) - 1)
        pairs = symbols[places] * self._size + symbols[after]
        found = np.searchsorted(self._pairs, pairs)
        is_pair = (self._pairs[found] == pairs) & (word[places] == word[after]) & (after > places)
        return np.where(is_pair, self._joined[found], self._size)
