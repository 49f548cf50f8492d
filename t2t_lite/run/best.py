"""The best checkpoint by the dev split, kept apart under output_dir/best.

best/ckpt-<step>.*   its weights, as `--checkpoint_path=output_dir/best` takes them
best/best.json       {"step": ..., "score": ..., "ties": [...], "measure": {...}}

The measure says what the score is, BLEU (of how many sentences, decoded how) or the loss, and of
which dev split. Scores of different measures are never compared. Between equal scores the next one
of "ties" decides.
"""

import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from t2t_lite import errors
from t2t_lite.run import checkpoint
from t2t_lite.run import identity as identities
from t2t_lite.text import text_files


class Best:
    """Remembers the best score of a run, also across restarts.

    `difference` says how the measure of this call differs from the kept one's, which then stays:
    "sentences 500 -> 20"; "" where they can be compared.
    """

    def __init__(
        self,
        directory: str | pathlib.Path,
        *,
        measure: Mapping[str, Any],
        identity: identities.Identity,
    ):
        self._directory = pathlib.Path(directory) / "best"
        self._file = self._directory / "best.json"
        self._measure = dict(measure)
        self._identity = identity
        self.step, self.scores, kept = self._read()
        self.difference = ", ".join(identities.differences(kept, self._measure))

    def offer(
        self, step: int, scores: Sequence[float], variables: Mapping[str, tf.Variable]
    ) -> bool:
        """Keep these weights if `scores` are the highest so far; return whether they are.

        The first that differs decides.
        """
        if self.difference or not tuple(scores) > self.scores:  # NaN is never the best
            return False
        weights = {name: variable.numpy() for name, variable in variables.items()}
        checkpoint.write_only(self._directory, step, weights, self._identity)
        score, *ties = scores
        content = {"step": step, "score": score, "ties": ties, "measure": self._measure}
        text_files.write_json(self._file, content)
        self.step, self.scores = step, tuple(scores)
        return True

    def _read(self) -> tuple[int, tuple[float, ...], Mapping[str, Any]]:
        """Return step, scores and measure of what is kept."""
        try:
            kept = json.loads(self._file.read_text("utf-8"))
            step, measure = int(kept["step"]), kept["measure"]
            scores = tuple(map(float, (kept["score"], *kept.get("ties", ()))))
            if not all(map(math.isfinite, scores)) or not isinstance(measure, dict):
                raise ValueError(f"scores {scores}, measure {measure}")
        except FileNotFoundError:
            return 0, (float("-inf"),), self._measure
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise errors.UserError(
                f"{self._file} is damaged: {error}; remove {self._directory} and the best is "
                "chosen anew"
            ) from error
        return step, scores, measure
