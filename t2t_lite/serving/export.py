"""A training run as a SavedModel that takes text and returns text; or as a LiteRT model (see lite).

    export_dir/1/saved_model.pb, variables/
                 batching_params.pbtxt                     how a server gathers requests
                 assets.extra/t2t_lite.json                checkpoint, options, signatures
                 assets.extra/tf_serving_warmup_requests

TensorFlow Serving loads `export_dir` as it is and always serves the largest version.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import secrets
import shutil
from typing import Any, Literal

import tensorflow as tf

from t2t_lite import errors, locks, quiet
from t2t_lite.decode import litert, options, translator
from t2t_lite.run import output_dir as output_dirs
from t2t_lite.run import plain_paths
from t2t_lite.serving import exported, lite, signatures, warmup
from t2t_lite.text import text_files

Format = Literal["saved_model", "litert"]
BATCHING_FILE = "batching_params.pbtxt"
MAX_ROWS = 1024  # of a request, and of a batch that a server makes of several requests
# Read by tensorflow_model_server --enable_batching --enable_per_model_batching_parameters.
# Any size of batch runs, so none is padded (no allowed_batch_sizes), and a large one is cut into
# parts by the graph itself. With no timeout a lone request never waits; requests that come while
# all threads are busy make the next batch. pad_variable_length_inputs stays off: with it one input
# of a wrong shape makes the server read outside of its memory.
_BATCHING = f"""\
max_batch_size {{ value: {MAX_ROWS} }}
batch_timeout_micros {{ value: 0 }}
max_enqueued_batches {{ value: 4 }}
"""
_INCOMPLETE = ".incomplete-"  # begins the name of a version's folder until it is complete


def export(
    output_dir: str | os.PathLike[str],
    export_dir: str | os.PathLike[str],
    *,
    checkpoint_path: str | None = None,
    format: Format = "saved_model",
    weights: litert.Weights = "float32",
    **changes: Any,
) -> pathlib.Path:
    """Write the next version of a trained model and return its folder.

    Args:
      output_dir: of the training run.
      export_dir: a folder of versions; made if missing.
      checkpoint_path: as for Translator.from_output_dir.
      format: "saved_model" or "litert".
      weights: how a LiteRT model stores them; see litert.convert.
      **changes: decoding options, fixed in the export.

    Raises:
      UserError: where something is missing or wrong; then nothing is written.
    """
    _refuse(changes)
    output = output_dirs.read(os.fspath(output_dir))
    model = translator.Translator.from_output_dir(output_dir, checkpoint_path, **changes)
    if model.task.grammar and not model.options.constrained:
        raise errors.UserError(
            "an exported parser's outputs are always trees: leave out constrained=false"
        )
    export_dir = pathlib.Path(export_dir)
    if export_dir.exists() and not export_dir.is_dir():
        raise errors.UserError(f"--export_dir {export_dir} is a file: give a folder")
    export_dir.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(export_dir)
    # Servers that watch the folder read only names that are numbers.
    temporary = export_dir / f"{_INCOMPLETE}{os.getpid()}-{secrets.token_hex(4)}"
    with locks.only_one(temporary.with_suffix(".lock")):
        try:
            if format == "litert":
                lite.save(model, temporary, problem=output.run.problem, weights=weights)
            else:
                _save(model, temporary, problem=output.run.problem)
            return _publish(temporary, export_dir)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def versions(export_dir: str | os.PathLike[str]) -> list[int]:
    """Return the versions that a folder holds, oldest first."""
    names = (path.name for path in pathlib.Path(export_dir).iterdir() if path.is_dir())
    return sorted(int(name) for name in names if name.isdecimal())


def _refuse(changes: dict[str, Any]) -> None:
    """Raise UserError for decoding options that an export cannot honour."""
    defaults = {field.name: field.default for field in dataclasses.fields(options.DecodeOptions)}
    refused = [
        name for name in options.NOT_EXPORTED if changes.get(name, defaults[name]) != defaults[name]
    ]
    if refused:
        raise errors.UserError(
            "an export searches, and returns the best output (serving_default) or all beam_size of "
            f"them (nbest), without their tokens: leave out {', '.join(refused)}"
        )


def _save(model: translator.Translator, path: pathlib.Path, *, problem: str) -> None:
    with quiet.hidden_stderr():  # the tokenizer's library prints
        served = signatures.ServingModel(model)
        functions = served.functions()
    path.mkdir()
    try:
        with plain_paths.folder(path) as plain:
            tf.saved_model.save(served, str(plain), signatures=functions)
    except tf.errors.OpError as error:  # a full disk, met by TensorFlow and not by Python
        reason = error.message.rpartition("}} ")[2]
        raise errors.UserError(f"the export cannot be written: {reason}") from error
    extra = path / exported.EXTRA
    extra.mkdir()
    record = {
        "problem": problem,
        "task": model.task.name,
        "checkpoint": model.name,
        "options": dataclasses.asdict(model.options),
        "signatures": sorted(functions),
    }
    warmup.write(extra / warmup.FILE, model.vocabulary, functions)
    (path / BATCHING_FILE).write_text(_BATCHING, "utf-8")
    (extra / exported.RECORD_FILE).write_text(json.dumps(record, indent=2) + "\n", "utf-8")


def _remove_leftovers(export_dir: pathlib.Path) -> None:
    """Remove the folders that exports which were killed left behind."""
    for leftover in export_dir.glob(f"{_INCOMPLETE}*"):
        lock = leftover.with_suffix(".lock")
        # UserError: another process is at work there
        with contextlib.suppress(errors.UserError), locks.only_one(lock):
            shutil.rmtree(leftover, ignore_errors=True)


def _publish(temporary: pathlib.Path, export_dir: pathlib.Path) -> pathlib.Path:
    """Give a complete export the next number, once its files are on the disk."""
    for file in filter(pathlib.Path.is_file, temporary.rglob("*")):
        text_files.sync(file)
    number = max(versions(export_dir), default=0)
    while True:
        number += 1
        target = export_dir / str(number)
        try:
            os.rename(temporary, target)
            return target
        except OSError:
            # A file may be called so, or another export has taken the number meanwhile.
            if not os.path.lexists(target):
                raise
