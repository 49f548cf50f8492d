"""The searches in a LiteRT model, for token ids.

A model has a signature "search_S_T" for each size: sources of up to S tokens, and room for outputs
of T. They share their weights. A source gets the least S that holds it, and the least room first:
where that was too small, the search is done again in the next.

    in   ids int32 [1, S], ending in EOS and padded with 0; num_wanted int32 []
    out  ids int32 [1, K, T], scores float32 [1, K], lengths int32 [1, K], finished bool [1, K],
         done bool [1]: whether the room was enough
"""

import contextlib
import os
import pathlib
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from ai_edge_litert import interpreter as litert

_SMALL = 60_000_000  # bytes of a model


class Outputs(NamedTuple):
    """The K outputs of a search, best first: ids [K, T] end where `lengths` [K] says.

    `scores` [K] are length-normalised log-probabilities; `finished` [K] is False where an output
    was cut off at the length limit. A length of 0 marks a place without an output.
    """

    ids: np.ndarray
    scores: np.ndarray
    lengths: np.ndarray
    finished: np.ndarray


def threads_for(num_bytes: int, most: int | None = None) -> int:
    """Return how many threads one search is best run with: a small model's operations are too short
    to be divided."""
    if num_bytes < _SMALL:
        return 1
    return most or cores()


def cores() -> int:
    """Return the processor's cores, at most 4."""
    return min(len(os.sched_getaffinity(0)), 4)


class Searcher:
    """Runs a model's searches; any number of threads may do so at a time.

    Args:
      path: of model.tflite.
      num_threads: that one search uses.

    Attributes:
      sizes: (S, T) of the signatures, in order.
    """

    def __init__(self, path: str | os.PathLike[str], num_threads: int = 1):
        self._path, self._num_threads = pathlib.Path(path), num_threads
        self._lock = threading.Lock()
        with _hidden_stderr():  # LiteRT says once that it uses XNNPACK
            first = self._new()
        self.sizes = sorted(first)
        self._idle = [first]

    def __call__(self, ids: Sequence[int], num_wanted: int = 1) -> Outputs:
        """Return the outputs for one source, EOS included, of at most the largest S tokens.

        The first `num_wanted` are the best; the others need not be.
        """
        found = {}
        with self._runners() as runners:
            for size in self._rooms(len(ids)):
                padded = np.zeros([1, size[0]], np.int32)
                padded[0, : len(ids)] = ids
                found = runners[size](ids=padded, num_wanted=np.array(num_wanted, np.int32))
                if found["done"][0]:
                    break
        return Outputs(*(found[name][0] for name in Outputs._fields))

    def _rooms(self, length: int) -> list[tuple[int, int]]:
        """Return the sizes for a source, the least room first."""
        source = min((s for s, _ in self.sizes if s >= length), default=None)
        if source is None:
            raise ValueError(f"a source has at most {self.sizes[-1][0]} tokens, got {length}")
        return [size for size in self.sizes if size[0] == source]

    @contextlib.contextmanager
    def _runners(self) -> Iterator[dict[tuple[int, int], Any]]:
        """Yield an interpreter's signatures, which only one thread may run at a time."""
        with self._lock:
            runners = self._idle.pop() if self._idle else None
        runners = runners or self._new()
        try:
            yield runners
        finally:
            with self._lock:
                self._idle.append(runners)

    def _new(self) -> dict[tuple[int, int], Any]:
        model = litert.Interpreter(model_path=str(self._path), num_threads=self._num_threads)
        model.allocate_tensors()  # prints here, not in the first search
        names = (re.fullmatch(r"search_(\d+)_(\d+)", name) for name in model.get_signature_list())
        return {
            (int(name[1]), int(name[2])): model.get_signature_runner(name[0])
            for name in filter(None, names)
        }


@contextlib.contextmanager
def _hidden_stderr() -> Iterator[None]:
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
