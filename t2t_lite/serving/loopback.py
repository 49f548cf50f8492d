"""A stand-in for TensorFlow Serving: its gRPC and REST interfaces over a folder of exports.

For tests, measurements and trying a model out where no TensorFlow Serving is at hand:

  python -m t2t_lite.bin.loopback_server --export_dir=export --servable_name=ende

It loads a SavedModel as TensorFlow knows it, with nothing of t2t-lite's model code, runs its
warm-up requests, gathers requests as the export's batching parameters say (see batcher), takes up
new versions, and answers errors with TensorFlow Serving's codes and words. By gRPC it has Predict,
by REST Predict, the status and the metadata of the model. It is not meant for production: one
model, on this machine alone.
"""

import collections
import functools
import http.server
import json
import pathlib
import re
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any, NamedTuple, Self

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the tokenizer's ops
from google.protobuf import json_format
from tensorflow.core.protobuf import error_codes_pb2, saved_model_pb2

from t2t_lite import errors
from t2t_lite.serving import batcher, json_tensors, protocol

Arrays = dict[str, np.ndarray]
_HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_MODEL = (
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>[0-9]{1,18})|/labels/(?P<label>[^/:]+))?"
)
_PREDICT_PATH = re.compile(rf"(?i){_MODEL}:(?P<verb>classify|regress|predict)")
_STATUS_PATH = re.compile(rf"(?i){_MODEL}(?P<metadata>/metadata)?")
_LOAD_TRIES = 5  # a version's folder may still be copied


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
        self._loaded = tf.saved_model.load(str(path))
        self._specs = {
            name: function.structured_input_signature[1]
            for name, function in self._loaded.signatures.items()
        }
        self._batcher = batcher.Batcher(self.run, parameters, num_threads=num_threads)
        if warm_up:
            self._warm_up()

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
        tensors = {k: tf.constant(inputs[k], spec.dtype) for k, spec in self._specs[name].items()}
        try:
            outputs = self._loaded.signatures[name](**tensors)
        except tf.errors.OpError as error:
            status = error_codes_pb2.Code.Name(error.error_code)
            raise protocol.Refused(status, error.message) from error
        return {key: tensor.numpy() for key, tensor in outputs.items()}

    def close(self) -> None:
        """Stop the threads when they are done."""
        self._batcher.close()

    @functools.cached_property
    def signature_defs(self) -> dict[str, Any]:
        """The signatures as JSON, as the SavedModel describes them."""
        saved_model = saved_model_pb2.SavedModel.FromString(
            (self.path / "saved_model.pb").read_bytes()
        )
        return {
            name: json_format.MessageToDict(
                signature,
                preserving_proto_field_name=True,
                always_print_fields_with_no_presence=True,
            )
            for name, signature in saved_model.meta_graphs[0].signature_def.items()
        }

    def _warm_up(self) -> None:
        path = self.path / "assets.extra" / "tf_serving_warmup_requests"
        for record in tf.data.TFRecordDataset([str(path)] if path.exists() else []):
            request = protocol.PredictionLog.FromString(record.numpy()).predict_log.request
            self.predict(request.model_spec.signature_name, _arrays(protocol.inputs(request)))


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
        self._ended: dict[int, str] = {}  # why versions are not served, "" if by their age
        for number in sorted(self._wanted()):
            self._served[number] = self._load(number)

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
        for number in sorted(wanted - served.keys()):
            if self._failures[number] < _LOAD_TRIES:
                try:
                    served[number] = self._load(number)
                except Exception as error:
                    self._failures[number] += 1
                    self._ended[number] = " ".join(str(error).split())
                    self._report(f"cannot load version {number}: {self._ended[number]}")
                else:
                    self._report(f"serving version {number}")
        if wanted <= served.keys():
            for number in served.keys() - wanted:
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

    def _wanted(self) -> set[int]:
        """Return the numbers of the versions to serve."""
        if not self._folder.is_dir():
            raise errors.UserError(f"there is no folder {self._folder}: run t2t-lite-exporter")
        paths = (path for path in self._folder.iterdir() if path.is_dir())
        there = {int(path.name) for path in paths if path.name.isdecimal()}
        if not there:
            raise errors.UserError(f"{self._folder} holds no version: expected folders 1, 2, ...")
        for label, number in self._labels.items():
            if number not in there:
                raise errors.UserError(
                    f"label {label} is of version {number}, but {self._folder} has "
                    f"{', '.join(map(str, sorted(there)))}"
                )
        return set(self._labels.values()) or {max(there)}

    def _load(self, number: int) -> Version:
        path = self._folder / str(number)
        parameters = batcher.Parameters.read(path, **self._gathering)
        return Version(path, parameters, num_threads=self._num_threads, warm_up=self._warm_up)


class Server:
    """Serves a Model under a name, on ports of this machine alone.

    Args:
      model: what to serve.
      name: under which name.
      port: of gRPC; 0 takes a free one.
      rest_port: of REST; 0 takes a free one.
      poll_wait: seconds between two looks for new versions.

    Raises:
      UserError: where a port is in use.
    """

    def __init__(
        self, model: Model, name: str, *, port: int = 0, rest_port: int = 0, poll_wait: float = 1.0
    ):
        self.model = model
        self.name = name
        handler = type("Handler", (_Handler,), {"serving": self})
        try:
            self._http = _HttpServer(("127.0.0.1", rest_port), handler)
        except OSError as error:
            raise errors.UserError(f"REST port {rest_port} cannot be had: {error}") from error
        self.rest_port = self._http.server_port
        self._grpc = grpc.server(
            futures.ThreadPoolExecutor(64),
            options=[
                ("grpc.max_receive_message_length", -1),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),  # else two servers take the same port
            ],
        )
        predict = grpc.unary_unary_rpc_method_handler(
            self._answer,
            request_deserializer=protocol.PredictRequest.FromString,
            response_serializer=protocol.PredictResponse.SerializeToString,
        )
        self._grpc.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(protocol.SERVICE, {"Predict": predict})]
        )
        try:
            self.port = self._grpc.add_insecure_port(f"127.0.0.1:{port}")
        except RuntimeError as error:
            self._http.server_close()
            raise errors.UserError(f"gRPC port {port} cannot be had: is it in use?") from error
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._http.serve_forever, daemon=True),
            threading.Thread(target=self._poll, args=(poll_wait,), daemon=True),
        ]

    def __enter__(self) -> Self:
        self._grpc.start()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stopped.set()
        self._grpc.stop(grace=None).wait()
        self._http.shutdown()
        self._http.server_close()
        self._threads[1].join()
        self.model.close()

    def version(self, name: str, choice: Choice) -> Version:
        """Return what a request asks for; raise Refused as TensorFlow Serving would."""
        if name != self.name and choice.label is None:
            raise not_found(name, choice.number)
        if name != self.name:
            raise protocol.Refused(
                "INVALID_ARGUMENT", f"Unrecognized servable version label: {choice.label}"
            )
        return self.model.version(name, choice)

    def _answer(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Answer a PredictRequest."""
        spec = request.model_spec
        number = spec.version.value if spec.HasField("version") else None
        try:
            version = self.version(spec.name, Choice(number, spec.version_label or None))
            outputs = version.predict(spec.signature_name, _arrays(protocol.inputs(request)))
        except protocol.Refused as error:
            context.abort(getattr(grpc.StatusCode, error.status), str(error))
        else:
            return protocol.response(request, version.number, _tensors(outputs))

    def _poll(self, wait: float) -> None:
        while not self._stopped.wait(wait):
            self.model.refresh()


class _HttpServer(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # clients that may connect at the same moment

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has gone."""


class _Handler(http.server.BaseHTTPRequestHandler):
    """The REST interface: https://www.tensorflow.org/tfx/serving/api_rest."""

    serving: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        stated = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,18}", stated):
            self.close_connection = True  # nobody knows where the next request begins
            self._send(411, {"error": f"Content-Length is {stated[:20]!r}"})
            return
        length = int(stated)
        body = self.rfile.read(length)
        if len(body) == length:  # else the client has gone in the middle
            self._answer(lambda: self._predict(body))

    def do_GET(self) -> None:
        self._answer(self._describe)

    def do_PUT(self) -> None:
        self._answer(self._malformed)

    do_DELETE = do_PATCH = do_PUT  # noqa: N815  the names that http.server looks for

    def _answer(self, what: Callable[[], dict[str, Any]]) -> None:
        path = urllib.parse.urlsplit(self.path).path
        try:
            if not path.lower().startswith("/v1/"):
                raise protocol.Refused("NOT_FOUND", f"Not found: {path}")
            self._send(200, what())
        except protocol.Refused as error:
            self._send(_HTTP_STATUS.get(error.status, 500), {"error": str(error)})

    def _predict(self, body: bytes) -> dict[str, Any]:
        match = _PREDICT_PATH.fullmatch(urllib.parse.urlsplit(self.path).path)
        if not match:
            return self._malformed()
        request = json_tensors.decode(body)
        signature_name = json_tensors.signature_name(request)
        version = self.serving.version(*_asked(match))
        dtypes = version.dtypes(signature_name)
        if dtypes is None:
            raise protocol.Refused(
                "INVALID_ARGUMENT",
                f'Serving signature name: "{signature_name}" not found in signature def',
            )
        verb = match["verb"].lower()
        if verb != "predict":
            raise protocol.Refused(
                "INVALID_ARGUMENT",
                f"Expected {verb} signature method_name to be tensorflow/serving/{verb}. Was: "
                "tensorflow/serving/predict",
            )
        inputs, in_rows = json_tensors.arrays(request, dtypes)
        return json_tensors.answer(version.predict(signature_name, inputs), rows=in_rows)

    def _describe(self) -> dict[str, Any]:
        path = urllib.parse.urlsplit(self.path).path
        match = _STATUS_PATH.fullmatch(path)
        if not match:
            if path.lower() in ("/v1/models", "/v1/models/metadata"):
                raise protocol.Refused("INVALID_ARGUMENT", "Missing model name in request.")
            return self._malformed()
        name, choice = _asked(match)
        if match["metadata"]:
            version = self.serving.version(name, choice)
            spec = {"name": name, "signature_name": "", "version": str(version.number)}
            definitions = {"signature_def": version.signature_defs}
            return {"model_spec": spec, "metadata": {"signature_def": definitions}}
        states = self.serving.model.status() if name == self.serving.name else {}
        if choice.number is not None:
            if choice.number not in states:
                raise protocol.Refused(
                    "NOT_FOUND", f"Could not find version {choice.number} of model {name}"
                )
            states = {choice.number: states[choice.number]}
        if not states:
            raise protocol.Refused("NOT_FOUND", f"Could not find any versions of model {name}")
        return {"model_version_status": list(states.values())}

    def _malformed(self) -> dict[str, Any]:
        path = urllib.parse.urlsplit(self.path).path
        raise protocol.Refused("INVALID_ARGUMENT", f"Malformed request: {self.command} {path}")

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer, indent=4).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def not_found(name: str, number: int | None) -> protocol.Refused:
    """Return the refusal of a model or version that is not served."""
    wanted = f"Latest({name})" if number is None else f"Specific({name}, {number})"
    return protocol.Refused("NOT_FOUND", f"Servable not found for request: {wanted}")


def _asked(match: re.Match[str]) -> tuple[str, Choice]:
    """Return the name and the version of a path."""
    number, label = match["version"], match["label"]
    return urllib.parse.unquote(match["name"]), Choice(
        int(number) if number else None, urllib.parse.unquote(label) if label else None
    )


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


def _arrays(tensors: Mapping[str, protocol.Tensor]) -> Arrays:
    arrays = {}
    for name, (dtype, shape, elements) in tensors.items():
        arrays[name] = np.empty(len(elements), object if dtype == "string" else dtype)
        arrays[name][:] = elements
        arrays[name] = arrays[name].reshape(shape)
    return arrays


def _tensors(arrays: Arrays) -> dict[str, protocol.Tensor]:
    return {
        name: protocol.Tensor(
            "string" if array.dtype == object else array.dtype.name,
            array.shape,
            array.ravel().tolist(),
        )
        for name, array in arrays.items()
    }
