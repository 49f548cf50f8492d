"""LiteRT as the engine of a translator's single sentences, where its runtime is installed.

Converting a model takes from two seconds to half a minute. A process does so in the background, and
TensorFlow answers until it is done. The model is kept beside the checkpoint:

    output_dir/litert/<fingerprint of weights, options and versions>.tflite
"""

import atexit
import dataclasses
import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from importlib import metadata
from typing import Any, Literal

import numpy as np

from t2t_lite import errors
from t2t_lite.decode import options as decode_options

Engine = Literal["auto", "graph", "litert"]
INSTALL = "install its runtime: pip install ./runtime, in a checkout of t2t-lite"
LONGEST = 64  # tokens of a source
# Single sentences after which it is worth converting a model without being asked to.
_MANY = 20
# Converting takes 15 times the memory of a parameter.
_MOST_PARAMETERS = 100_000_000


def is_installed() -> bool:
    """Return whether the runtime is there."""
    return importlib.util.find_spec("t2t_lite_runtime") is not None


class LiteEngine:
    """Searches for one source at a time, once its model is there.

    Args:
      output_dir: of the run.
      checkpoint: the prefix of the one checkpoint.
      fingerprint: of its weights.
      options: how to decode.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str],
        checkpoint: str,
        fingerprint: str,
        options: decode_options.DecodeOptions,
    ):
        self._job = {
            "output_dir": os.fspath(output_dir),
            "checkpoint_path": checkpoint,
            "changes": dataclasses.asdict(options),
        }
        versions = [metadata.version(name) for name in ("t2t-lite", "tensorflow")]
        key = json.dumps([fingerprint, self._job["changes"], versions])
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        self.path = pathlib.Path(checkpoint).parent / "litert" / f"{name}.tflite"
        self._num_asked = 0
        self._process: subprocess.Popen | None = None
        self._searcher: Any = None

    def ready(self) -> Any:
        """Return what searches (see __call__ of t2t_lite_runtime.search.Searcher), None while there
        is none; a model that is asked often is converted in the background."""
        if self._searcher is None and self.path.exists():
            from t2t_lite_runtime import search

            size = self.path.stat().st_size
            self._searcher = search.Searcher(self.path, search.threads_for(size))
        if self._searcher is None:
            self._num_asked += 1
            if self._num_asked == _MANY:
                self.start()
        return self._searcher

    def start(self) -> None:
        """Begin to convert the model in the background, unless it is there."""
        if self._process or self.path.exists():
            return
        command = [sys.executable, "-m", "t2t_lite.decode.litert", json.dumps(self._job)]
        self._process = subprocess.Popen(
            [*command, str(self.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        atexit.register(_stop, self._process)

    def wait(self) -> None:
        """Convert the model if it is not there; raise UserError with the reason if that fails."""
        self.start()
        if self._process:
            _, reason = self._process.communicate()
            if not self.path.exists():
                last = (reason.strip().splitlines() or ["it was killed"])[-1]
                raise errors.UserError(f"the model cannot be converted for LiteRT: {last}")


def of_translator(
    model: Any, output_dir: str | os.PathLike[str], engine: Engine
) -> LiteEngine | None:
    """Return the engine that a Translator of an output_dir is to have besides the graph.

    Raises UserError where it cannot have the one that was asked for.
    """
    if engine == "graph":
        return None
    reason = mistake(model) if is_installed() else INSTALL
    if engine == "litert" and reason:
        raise errors.UserError(f"--engine=litert: {reason}")
    if reason or (engine == "auto" and not _is_worth_it(model)):
        return None
    return LiteEngine(output_dir, model.name, model.fingerprint, model.options)


def mistake(model: Any) -> str | None:
    """Return why a Translator cannot be converted, None where it can."""
    options = model.options
    others = {f"precision {options.precision}": options.precision != "float32"}
    return refusal("LiteRT searches with one model, by beams, in float32", model, others)


def refusal(rule: str, model: Any, others: dict[str, bool]) -> str | None:
    """Return why a Translator cannot have a search of static size, None where it can: the rule, and
    what breaks it, which may be one of `others`."""
    for what, is_it in {
        "a parser": model.grammar is not None,
        "an ensemble": len(model.models) > 1,
        "sampling": model.options.sampling,
        **others,
    }.items():
        if is_it:
            return f"{rule}; not with {what}"
    return None


def _is_worth_it(model: Any) -> bool:
    import tensorflow as tf

    num_parameters = sum(int(np.prod(v.shape)) for v in model.models[0].trainable_variables)
    on_gpu = bool(tf.config.list_logical_devices("GPU"))
    return num_parameters <= _MOST_PARAMETERS and not on_gpu


def _stop(process: subprocess.Popen) -> None:
    process.kill()
