"""The best checkpoint by the dev split, kept apart under output_dir/best.

best/ckpt-<step>.*   its weights, as `--checkpoint_path=output_dir/best` takes them
best/best.json       {"step": ..., "score": ..., "measure": {...}}

The measure says what the score is, BLEU (of how many sentences, decoded how) or the loss, and of
which dev split. Scores of different measures are never compared.
"""

import json
import math
import pathlib
from collections.abc import Mapping
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
        self.step, self.score, kept = self._read()
        self.difference = ", ".join(identities.differences(kept, self._measure))

    def offer(self, step: int, score: float, variables: Mapping[str, tf.Variable]) -> bool:
        """Keep these weights if `score` is the highest so far; return whether it is."""
        if self.difference or not score > self.score:  # NaN is never the best
            return False
        weights = {name: variable.numpy() for name, variable in variables.items()}
        checkpoint.write_only(self._directory, step, weights, self._identity)
        content = {"step": step, "score": score, "measure": self._measure}
        text_files.write_json(self._file, content)
        self.step, self.score = step, score
        return True

    def _read(self) -> tuple[int, float, Mapping[str, Any]]:
        """Return step, score and measure of what is kept."""
        try:
            kept = json.loads(self._file.read_text("utf-8"))
            step, score = int(kept["step"]), float(kept["score"])
            measure = kept["measure"]
            if not math.isfinite(score) or not isinstance(measure, dict):
                raise ValueError(f"score {score}, measure {measure}")
        except FileNotFoundError:
            return 0, float("-inf"), self._measure
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise errors.UserError(
                f"{self._file} is damaged: {error}; remove {self._directory} and the best is "
                "chosen anew"
            ) from error
        return step, score, measure
