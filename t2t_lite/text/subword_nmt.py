"""Subwords of subword-nmt and fastBPE: merges of the characters of words (Sennrich et al. 2016).

A word begins as its characters, the last one with "</w>". The pair of neighbours that was learnt
first is joined wherever it stands, from the left, and so on until no known pair is left:

    "hunde"  ->  h u n d e</w>  ->  h u n de</w>  ->  hu n de</w>  ->  "hu@@", "n@@", "de"

Words stand between blanks. A filter, subword-nmt's --vocabulary, takes back merges whose result is
not among its pieces: without "hu@@" it is "h@@", "u@@". subword_nmt_tokenizer has the same for a
graph.
"""

import functools
import itertools
import re
from collections.abc import Collection, Iterable, Sequence

END = "</w>"
CONTINUED = "@@"


class Codes:
    """A file of merges, by their rank, and the pieces of a filter.

    Raises ValueError where the text is not one.
    """

    def __init__(self, text: str, allowed: Collection[str] | None = None):
        self.text = text
        lines = text.rstrip("\n").split("\n")
        version = re.fullmatch(r"#version: *(\d+)\.(\d+)\s*", lines[0])
        pairs = [line.strip("\r ").split(" ") for line in lines[1 if version else 0 :]]
        has_counts = all(len(pair) == 3 for pair in pairs)  # fastBPE's
        if not all(len(pair) == (3 if has_counts else 2) for pair in pairs):
            raise ValueError("a line of the merges does not have two parts")
        # Before version 0.2 the end of a word is a symbol of its own.
        self.end_is_apart = not has_counts and (not version or version.groups() == ("0", "1"))
        ranks: dict[tuple[str, str], int] = {}
        for rank, (left, right, *_) in enumerate(pairs):
            ranks.setdefault((left, right), rank)
        self.ranks = ranks
        self.splits = {} if allowed is None else self._splits(frozenset(allowed))
        self._cut_word = functools.lru_cache(maxsize=100_000)(self._cut_word)

    def cut(self, text: str) -> str:
        """Return a text with its words cut, blanks between the pieces."""
        words = filter(None, text.strip("\r\n ").split(" "))
        pieces = [piece for word in words for piece in self._cut_word(word)]
        return " ".join(self.splits.get(piece, piece) for piece in pieces)

    def _cut_word(self, word: str) -> tuple[str, ...]:
        if len(word) == 1:
            return (word,)
        symbols = [*word, END] if self.end_is_apart else [*word[:-1], word[-1] + END]
        while ranked := [self.ranks[p] for p in itertools.pairwise(symbols) if p in self.ranks]:
            symbols = self._merged(symbols, min(ranked))
        if symbols[-1] == END:
            symbols.pop()
        symbols[-1] = symbols[-1].removesuffix(END)
        return (*(symbol + CONTINUED for symbol in symbols[:-1]), symbols[-1])

    def _splits(self, allowed: Collection[str]) -> dict[str, str]:
        """Return the pieces that the filter does not allow, and what they are split into."""
        merges: dict[str, tuple[str, str]] = {}
        for pair in self.ranks:
            merges.setdefault("".join(pair), pair)

        def parts(symbol: str) -> list[str]:
            piece = _piece(symbol)
            if piece in allowed or symbol not in merges:
                return [piece]
            return [part for half in merges[symbol] for part in parts(half)]

        pieces = {_piece(symbol): symbol for symbol in merges}
        # A word of one character is never split.
        return {
            piece: " ".join(filter(None, parts(symbol)))
            for piece, symbol in pieces.items()
            if piece not in allowed and len(piece) > 1
        }

    def _merged(self, symbols: Sequence[str], rank: int) -> list[str]:
        merged: list[str] = []
        place = 0
        while place < len(symbols):
            pair = tuple(symbols[place : place + 2])
            size = 2 if self.ranks.get(pair) == rank else 1  # pyright: ignore[reportArgumentType]
            merged.append("".join(symbols[place : place + size]))
            place += size
        return merged


def _piece(symbol: str) -> str:
    return symbol.removesuffix(END) if symbol.endswith(END) else symbol + CONTINUED


def joined(pieces: Iterable[str]) -> str:
    """Return the text that pieces spell.

    >>> joined(["hu@@", "n@@", "de", "."])
    'hunde .'
    """
    return re.sub(f"{CONTINUED} |{CONTINUED}$", "", " ".join(pieces))
