"""The versions of an export as a server holds them: loaded, batched, renewed, checked.

Answers and refusals have TensorFlow Serving's codes and words.
"""

import collections
import functools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.protobuf import error_codes_pb2

from t2t_lite import errors
from t2t_lite.serving import batcher, exported, protocol, session

Arrays = dict[str, np.ndarray]
_LOAD_TRIES = 5  # of a folder that does not change: one that does is still being copied


class Choice(NamedTuple):
    """Which version a request asks for: by number, by label, or the newest."""

    number: int | None = None
    label: str | None = None


class Version:
    """One version of an export, whose requests run in batches."""

    def __init__(
        self, path: pathlib.Path, parameters: batcher.Parameters, *, num_threads: int, warm_up: bool
    ):
        self.path = path
        self.number = int(path.name)
        exported.require_processor(path)
        self._session = session.Session(path)
        self._specs = self._session.specs
        self._batcher = batcher.Batcher(self.run, parameters, num_threads=num_threads)
        if warm_up:
            try:
                self._warm_up(parameters.max_batch_size)
            except BaseException:
                self.close()
                raise

    def dtypes(self, signature_name: str) -> dict[str, str] | None:
        """Return the type of each input, by name; None where there is no such signature."""
        specs = self._specs.get(signature_name or "serving_default")
        return specs and {name: spec.dtype.name for name, spec in specs.items()}

    def predict(self, signature_name: str, inputs: Arrays) -> Arrays:
        """Return the signature's outputs; wait for a batch to run."""
        name = signature_name or "serving_default"
        if name not in self._specs:
            raise protocol.Refused(
                "FAILED_PRECONDITION", f'Serving signature key "{name}" not found.'
            )
        _check(inputs, self._specs[name])
        return self._batcher.predict(name, inputs)

    def run(self, name: str, inputs: Arrays) -> Arrays:
        """Return the outputs of one batch."""
        try:
            return self._session.run(name, inputs)
        except tf.errors.OpError as error:
            status = error_codes_pb2.Code.Name(error.error_code)
            raise protocol.Refused(status, error.message) from error

    def close(self) -> None:
        """Stop the threads when they are done."""
        self._batcher.close()

    @functools.cached_property
    def signature_defs(self) -> dict[str, Any]:
        """The signatures as JSON, as the SavedModel describes them."""
        return {
            name: json_format.MessageToDict(
                signature,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
            )
            for name, signature in self._session.definitions.items()
        }

    def _warm_up(self, max_batch_size: int) -> None:
        """Answer the export's own requests, but for those that are larger than is allowed here."""
        path = self.path / "assets.extra" / "tf_serving_warmup_requests"
        for record in tf.data.TFRecordDataset([str(path)] if path.exists() else []):
            request = protocol.PredictionLog.FromString(record.numpy()).predict_log.request
            inputs = arrays(protocol.inputs(request))
            if len(next(iter(inputs.values()))) <= max_batch_size:
                self.predict(request.model_spec.signature_name, inputs)


class Model:
    """The versions of an export that are served: the newest, or those that have a label.

    Args:
      export_dir: the folder of versions.
      labels: the version of each label; then these are served, and no other.
      max_batch_size: rows of a batch and of a request; default: what the export says.
      batch_timeout: seconds that a request waits for company; default: what the export says.
      num_threads: batches that run at the same time.
      warm_up: run a version's own warm-up requests first.
      report: called with a line about what happens to versions.
    """

    def __init__(
        self,
        export_dir: str | pathlib.Path,
        *,
        labels: Mapping[str, int] | None = None,
        max_batch_size: int | None = None,
        batch_timeout: float | None = None,
        num_threads: int = 1,
        warm_up: bool = True,
        report: Callable[[str], None] = lambda line: None,
    ):
        self._folder = pathlib.Path(export_dir)
        self._labels = dict(labels or {})
        gathering = {"max_batch_size": max_batch_size, "batch_timeout": batch_timeout}
        self._gathering: Any = {k: v for k, v in gathering.items() if v is not None}
        self._num_threads = num_threads
        self._warm_up = warm_up
        self._report = report
        self._served: dict[int, Version] = {}
        self._failures: collections.Counter[int] = collections.Counter()
        self._last_changes: dict[int, int] = {}  # of versions that cannot be loaded yet
        self._ended: dict[int, str] = {}  # why versions are not served, "" if by their age
        for number, path in self._wanted().items():
            self._served[number] = self._load(path)

    @property
    def newest(self) -> Version:
        """The version that is served where none is asked for."""
        return self._served[max(self._served)]

    def version(self, name: str, choice: Choice) -> Version:
        """Return the version that a request asks for; raise Refused where it is not served."""
        number = choice.number
        if choice.label is not None:
            if choice.label not in self._labels:
                raise protocol.Refused(
                    "INVALID_ARGUMENT", f"Unrecognized servable version label: {choice.label}"
                )
            number = self._labels[choice.label]
        served = self._served  # refresh() puts another in its place
        if number is None:
            return served[max(served)]
        if number not in served:
            raise not_found(name, number)
        return served[number]

    def refresh(self) -> None:
        """Load what is new in the folder, then let go what is no longer wanted."""
        try:
            wanted = self._wanted()
        except errors.UserError:
            return  # the folder is away: what is served stays
        served = dict(self._served)
        for number in sorted(wanted.keys() - served.keys()):
            last_change = _last_change(wanted[number])
            if self._last_changes.setdefault(number, last_change) != last_change:
                self._last_changes[number] = last_change
                self._failures[number] = 0
            elif self._failures[number] < _LOAD_TRIES:
                try:
                    served[number] = self._load(wanted[number])
                except Exception as error:
                    self._failures[number] += 1
                    self._ended[number] = " ".join(str(error).split())
                    self._report(f"cannot load version {number}: {self._ended[number]}")
                else:
                    self._report(f"serving version {number}")
        if wanted.keys() <= served.keys():
            for number in served.keys() - wanted.keys():
                self._ended[number] = ""
                served.pop(number).close()
        self._served = served

    def status(self) -> dict[int, dict[str, Any]]:
        """Return the state of each version that is or was served, newest first."""
        known = {**self._ended, **dict.fromkeys(self._served, "")}
        return {
            number: {
                "version": str(number),
                "state": "AVAILABLE" if number in self._served else "END",
                "status": {
                    "error_code": "UNKNOWN" if known[number] else "OK",
                    "error_message": known[number],
                },
            }
            for number in sorted(known, reverse=True)
        }

    def close(self) -> None:
        """Stop the threads."""
        for version in self._served.values():
            version.close()

    def _wanted(self) -> dict[int, pathlib.Path]:
        """Return the versions to serve, oldest first."""
        if not self._folder.is_dir():
            raise errors.UserError(f"there is no folder {self._folder}: run t2t-lite-exporter")
        paths = [path for path in self._folder.iterdir() if path.is_dir()]
        there = {int(path.name): path for path in paths if path.name.isdecimal()}
        if not there:
            raise errors.UserError(f"{self._folder} holds no version: expected folders 1, 2, ...")
        for label, number in self._labels.items():
            if number not in there:
                raise errors.UserError(
                    f"label {label} is of version {number}, but {self._folder} has "
                    f"{', '.join(map(str, sorted(there)))}"
                )
        return {n: there[n] for n in sorted({*self._labels.values()} or {max(there)})}

    def _load(self, path: pathlib.Path) -> Version:
        parameters = batcher.Parameters.read(path, **self._gathering)
        return Version(path, parameters, num_threads=self._num_threads, warm_up=self._warm_up)


def _last_change(folder: pathlib.Path) -> int:
    """Return when anything in a folder last changed; 0 if a file went while this looked.

    By ctime, which a copy cannot set to that of the original.
    """
    try:
        return max(path.stat().st_ctime_ns for path in (folder, *folder.rglob("*")))
    except FileNotFoundError:
        return 0


def not_found(name: str, number: int | None) -> protocol.Refused:
    """Return the refusal of a model or version that is not served."""
    wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
    return protocol.Refused("NOT_FOUND", f"Servable not found for request: {wanted}")


def _check(inputs: Arrays, specs: Mapping[str, tf.TensorSpec]) -> None:
    """Raise Refused for inputs that are not the signature's."""
    if inputs.keys() != specs.keys():
        extra, missing = inputs.keys() - specs.keys(), specs.keys() - inputs.keys()
        raise protocol.Refused(
            "INVALID_ARGUMENT",
            f"input size does not match signature: {len(inputs)}!={len(specs)} "
            f"len({{{','.join(sorted(inputs))}}}) != len({{{','.join(sorted(specs))}}}). "
            f"Sent extra: {{{','.join(sorted(extra))}}}. "
            f"Missing but required: {{{','.join(sorted(missing))}}}.",
        )
    for key, spec in specs.items():
        array = inputs[key]
        dtype = "string" if array.dtype == object else array.dtype.name
        # Rank 0 has words of its own, see batcher.
        if dtype != spec.dtype.name or array.ndim not in (0, spec.shape.rank):
            raise protocol.Refused(
                "INVALID_ARGUMENT",
                f"input {key!r} is {spec.dtype.name} of shape {spec.shape}, got {dtype} of shape "
                f"{list(array.shape)}",
            )


def arrays(tensors: Mapping[str, protocol.Tensor]) -> Arrays:
    """Return a request's tensors as arrays; strings are of dtype object."""
    result = {}
    for name, (dtype, shape, elements) in tensors.items():
        result[name] = np.empty(len(elements), object if dtype == "string" else dtype)
        result[name][:] = elements
        result[name] = result[name].reshape(shape)
    return result


def tensors(outputs: Arrays) -> dict[str, protocol.Tensor]:
    """Return arrays as the tensors of an answer."""
    return {
        name: protocol.Tensor(
            "string" if array.dtype == object else array.dtype.name,
            array.shape,
            array.ravel().tolist(),
        )
        for name, array in outputs.items()
    }
