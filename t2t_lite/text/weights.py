"""How often the corpora of a split count: weights.tsv beside them, a line "name<TAB>weight" each.

wsj<TAB>4
automatic.txt.gz<TAB>1.5
"""

import math
import pathlib
import random
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from t2t_lite import errors
from t2t_lite.text import text_files

_Item = TypeVar("_Item")


def file(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the file of weights in a folder, if there is one."""
    path = folder / "weights.tsv"
    return [path] if path.is_file() else []


def read(folder: pathlib.Path, names: Iterable[str]) -> dict[str, float]:
    """Return the weight of each of the corpora, 1 where the file does not name it."""
    weights = dict.fromkeys(names, 1.0)
    line_of: dict[str, int] = {}
    for path in file(folder):
        for number, line in enumerate(text_files.read_lines(path), 1):
            if not line.strip():
                continue
            name, _, value = line.rpartition("\t")
            if name not in weights:
                raise errors.UserError(
                    f"{path}, line {number}: expected name<TAB>weight, the name one of "
                    f"{', '.join(weights)}, got {line!r}"
                )
            if line_of.setdefault(name, number) != number:
                raise errors.UserError(
                    f"{path}, line {number}: line {line_of[name]} gives {name} a weight already: "
                    "leave one of the two"
                )
            try:
                weights[name] = float(value)
            except ValueError:
                weights[name] = math.nan
            if not 0 <= weights[name] < math.inf:
                raise errors.UserError(
                    f"{path}, line {number}: a weight is a number of at least 0, got {value!r}"
                )
    return weights


def repeat(read: Callable[[], Iterable[_Item]], weight: float, seed: str) -> Iterator[_Item]:
    """Yield all items as often as a weight says.

    With weight 1.5 they come once, and half of them, drawn by the seed, a second time.
    """
    for _ in range(math.floor(weight)):
        yield from read()
    rest, rng = weight % 1, random.Random(seed)
    if rest:
        for item in read():
            if rng.random() < rest:
                yield item
