"""How many tokens a call of the trainer learns from, and how fast."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

SIDES = ("inputs", "targets")


class Throughput:
    """Sums over the steps of one call.

    `tokens` are real ones, source and target. The speed is that of steps that compiled nothing,
    without evaluation and saving.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self._padded_tokens = 0
        self._timed_tokens = 0
        self._seconds = 0.0

    def add(self, batch: Mapping[str, tf.Tensor], *, seconds: float | None) -> int:
        """Count a step and return its real tokens; `seconds` is None if it was compiled first."""
        sides = [batch[side].numpy() for side in SIDES]  # on the host, where the pipeline made them
        tokens = sum(int(np.count_nonzero(ids)) for ids in sides)
        self.tokens += tokens
        self._padded_tokens += sum(ids.size for ids in sides)
        if seconds is not None:
            self._timed_tokens += tokens
            self._seconds += seconds
        return tokens

    @property
    def fill(self) -> float:
        """The share of real tokens in the batches."""
        return self.tokens / max(self._padded_tokens, 1)

    @property
    def tokens_per_second(self) -> float:
        """Real tokens a second."""
        return self._timed_tokens / max(self._seconds, 1e-9)
