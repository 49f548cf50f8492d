"""The best checkpoint by the dev split, kept apart under output_dir/best.

best/ckpt-<step>.*   its weights, as `--checkpoint_path=output_dir/best` takes them
best/best.json       {"step": ..., "score": ...}
"""

import json
import pathlib
from collections.abc import Mapping

import tensorflow as tf

from t2t_lite.run import checkpoint
from t2t_lite.text import text_files


class Best:
    """Remembers the best score of a run, also across restarts."""

    def __init__(self, directory: str | pathlib.Path):
        self._directory = pathlib.Path(directory) / "best"
        self._file = self._directory / "best.json"
        kept = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        self.step: int = kept.get("step", 0)
        self.score: float = kept.get("score", float("-inf"))

    def offer(self, step: int, score: float, variables: Mapping[str, tf.Variable]) -> bool:
        """Keep these weights if `score` is the highest so far; return whether it is."""
        if score <= self.score:
            return False
        weights = {name: variable.numpy() for name, variable in variables.items()}
        checkpoint.write_only(self._directory, step, weights)
        with text_files.replacing(self._file) as file:
            file.write(json.dumps({"step": step, "score": score}).encode("utf-8") + b"\n")
        self.step, self.score = step, score
        return True
