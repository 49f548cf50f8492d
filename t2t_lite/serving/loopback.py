"""A stand-in for TensorFlow Serving: its gRPC and REST interfaces over an export.

For tests, measurements and trying a model out where no TensorFlow Serving is at hand:

  python -m t2t_lite.bin.loopback_server --export_dir=export --servable_name=ende

It loads a SavedModel as TensorFlow knows it, with nothing of t2t-lite's model code, runs its
warm-up requests, gathers requests into batches and answers errors with TensorFlow Serving's codes.
It is not meant for production: one model, one version, no limits.
"""
# Generated modules have no types.
# pyright: reportAttributeAccessIssue=false

import base64
import contextlib
import dataclasses
import http.server
import json
import math
import pathlib
import queue
import re
import threading
import time
from concurrent import futures
from typing import Any, Self

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the tokenizer's ops
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

from t2t_lite import errors

Arrays = dict[str, np.ndarray]
_MAX_VALUES = 1 << 24  # of an input


class Refused(Exception):  # noqa: N818  an answer, not a failure of the server
    """A request that gets an error: its gRPC status and what it says."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status


@dataclasses.dataclass
class _Item:
    """One request in the queue."""

    inputs: Arrays
    result: futures.Future[Arrays]

    @property
    def size(self) -> int:
        return len(next(iter(self.inputs.values())))


class Model:
    """One version of an export, whose requests run in batches.

    Args:
      export_dir: the folder of versions; the largest is loaded.
      max_batch_size: items of a batch, at most (a larger request runs alone).
      batch_timeout: seconds that a request waits for company while a thread is free.
      num_threads: batches that run at the same time.
      warm_up: run the export's own warm-up requests first.
    """

    def __init__(
        self,
        export_dir: str | pathlib.Path,
        *,
        max_batch_size: int = 32,
        batch_timeout: float = 0.0,
        num_threads: int = 1,
        warm_up: bool = True,
    ):
        versions = [p for p in pathlib.Path(export_dir).iterdir() if p.name.isdecimal()]
        if not versions:
            raise errors.UserError(f"{export_dir} holds no version: expected folders 1, 2, ...")
        self.path = max(versions, key=lambda path: int(path.name))
        self.version = int(self.path.name)
        self._loaded = tf.saved_model.load(str(self.path))
        self._max_batch_size = max_batch_size
        self._batch_timeout = batch_timeout
        self._queues: dict[str, queue.Queue[_Item | None]] = {}
        self._threads: list[threading.Thread] = []
        for name in self._loaded.signatures:
            self._queues[name] = queue.Queue()
            for _ in range(num_threads):
                thread = threading.Thread(target=self._work, args=(name,), daemon=True)
                thread.start()
                self._threads.append(thread)
        if warm_up:
            self._warm_up()

    def predict(self, signature_name: str, inputs: Arrays) -> Arrays:
        """Return the signature's outputs; wait for a batch to run."""
        name = signature_name or "serving_default"
        if name not in self._queues:
            raise Refused(
                "INVALID_ARGUMENT", f'Serving signature name: "{name}" not found in signature def'
            )
        wanted = self._inputs(name)
        if inputs.keys() != wanted.keys():
            raise Refused(
                "INVALID_ARGUMENT", f"expected inputs {sorted(wanted)}, got {sorted(inputs)}"
            )
        for key, spec in wanted.items():
            is_text = inputs[key].dtype == object
            if is_text != (spec.dtype == tf.string) or inputs[key].ndim != spec.shape.rank:
                raise Refused(
                    "INVALID_ARGUMENT", f"input {key!r} is {spec.dtype.name} of shape {spec.shape}"
                )
        if len({len(value) for value in inputs.values()}) > 1:
            sizes = {key: len(value) for key, value in inputs.items()}
            raise Refused("INVALID_ARGUMENT", f"inputs of different sizes: {sizes}")
        item = _Item(inputs, futures.Future())
        self._queues[name].put(item)
        return item.result.result()

    def close(self) -> None:
        """Stop the threads."""
        for waiting in self._queues.values():
            for _ in self._threads:
                waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _inputs(self, name: str) -> dict[str, tf.TensorSpec]:
        return self._loaded.signatures[name].structured_input_signature[1]

    def _work(self, name: str) -> None:
        waiting, held = self._queues[name], None
        while True:
            first, held = held or waiting.get(), None
            if first is None:
                return
            batch, size = [first], first.size
            end = time.monotonic() + self._batch_timeout
            while size < self._max_batch_size:
                try:
                    item = waiting.get(timeout=max(end - time.monotonic(), 1e-6))
                except queue.Empty:
                    break
                if item is None or not _fits(item, first, self._max_batch_size - size):
                    held = item
                    if item is None:
                        waiting.put(None)
                    break
                batch.append(item)
                size += item.size
            self._run(name, batch)

    def _run(self, name: str, batch: list[_Item]) -> None:
        try:
            inputs = {
                key: tf.constant(np.concatenate([item.inputs[key] for item in batch]), spec.dtype)
                for key, spec in self._inputs(name).items()
            }
            tensors = self._loaded.signatures[name](**inputs)
            outputs = {key: tensor.numpy() for key, tensor in tensors.items()}
            start = 0
            for item in batch:
                rows = slice(start, start + item.size)
                item.result.set_result({key: value[rows] for key, value in outputs.items()})
                start += item.size
        except Exception as error:
            for item in batch:
                item.result.set_exception(Refused("INTERNAL", str(error)))

    def _warm_up(self) -> None:
        path = self.path / "assets.extra" / "tf_serving_warmup_requests"
        for record in tf.data.TFRecordDataset([str(path)] if path.exists() else []):
            log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
            request = log.predict_log.request
            self.predict(request.model_spec.signature_name, _arrays(request))


def _fits(item: _Item, first: _Item, room: int) -> bool:
    """Return whether a request may join a batch: it must have the same width, and there be room."""
    same = all(item.inputs[key].shape[1:] == first.inputs[key].shape[1:] for key in first.inputs)
    return same and item.size <= room


class Server:
    """Serves a Model under a name, on ports of this machine alone."""

    def __init__(self, model: Model, name: str, *, port: int = 0, rest_port: int = 0):
        self._model = model
        self._name = name
        sizes = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self._grpc = grpc.server(futures.ThreadPoolExecutor(64), options=sizes)
        service = _Service(self)
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(service, self._grpc)
        self.port = self._grpc.add_insecure_port(f"127.0.0.1:{port}")
        self._grpc.start()
        handler = type("Handler", (_Handler,), {"serving": self})
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", rest_port), handler)
        self.rest_port = self._http.server_port
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self._grpc.stop(grace=None).wait()
        self._http.shutdown()
        self._http.server_close()
        self._model.close()

    def predict(
        self, name: str, version: int | None, signature_name: str, inputs: Arrays
    ) -> Arrays:
        """Return a signature's outputs; raise Refused as TensorFlow Serving would."""
        if name != self._name or version not in (None, self._model.version):
            wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise Refused("NOT_FOUND", f"Servable not found for request: {wanted}")
        return self._model.predict(signature_name, inputs)


class _Service(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, server: Server):
        self._server = server

    def Predict(self, request, context):  # noqa: N802  the service's name
        spec = request.model_spec
        version = spec.version.value if spec.HasField("version") else None
        try:
            outputs = self._server.predict(
                spec.name, version, spec.signature_name, _arrays(request)
            )
        except Refused as error:
            context.abort(getattr(grpc.StatusCode, error.status), str(error))
        response = predict_pb2.PredictResponse(model_spec=spec)
        for key, value in outputs.items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(value))
        return response


class _Handler(http.server.BaseHTTPRequestHandler):
    """POST /v1/models/<name>[/versions/<n>]:predict in the row and the column format."""

    serving: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        with contextlib.suppress(ConnectionError):  # the client may have given up
            if not re.fullmatch("[0-9]{1,18}", length):
                self.close_connection = True  # nobody knows where the next request begins
                self._send(411, {"error": f"Content-Length is {length[:20]!r}"})
                return
            self._answer(self.rfile.read(int(length)))

    def _answer(self, body: bytes) -> None:
        try:
            self._send(200, self._predict(json.loads(body)))
        except Refused as error:
            codes = {"NOT_FOUND": 404, "INVALID_ARGUMENT": 400}
            self._send(codes.get(error.status, 500), {"error": str(error)})
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            self._send(400, {"error": f"JSON Parse error: {error}"})

    def _predict(self, request: dict[str, Any]) -> dict[str, Any]:
        path, _, verb = self.path.removeprefix("/v1/models/").partition(":")
        name, _, version = path.partition("/versions/")
        if verb != "predict":
            raise Refused("NOT_FOUND", f"Malformed request: POST {self.path}")
        rows = request.get("instances")
        columns = request["inputs"] if rows is None else rows
        if not isinstance(columns, dict):
            columns = {"inputs": columns}
        inputs = {
            key: np.array([_raw(value) for value in values], object)
            for key, values in columns.items()
        }
        signature_name = request.get("signature_name", "")
        number = int(version) if version else None
        outputs = self.serving.predict(name, number, signature_name, inputs)
        answer = {key: _as_json(value.tolist()) for key, value in outputs.items()}
        if rows is None:
            return {"outputs": answer}
        return {"predictions": [dict(zip(answer, row)) for row in zip(*answer.values())]}

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _arrays(request: predict_pb2.PredictRequest) -> Arrays:
    """Return a request's inputs; raise Refused for a tensor that contradicts itself."""
    for key, tensor in request.inputs.items():
        sizes = [dim.size for dim in tensor.tensor_shape.dim]
        if not all(0 <= size <= _MAX_VALUES for size in (*sizes, math.prod(sizes))):
            raise Refused("INVALID_ARGUMENT", f"input {key!r} has the shape {sizes[:4]}")
    try:
        return {key: tf.make_ndarray(tensor) for key, tensor in request.inputs.items()}
    except (TypeError, ValueError) as error:
        raise Refused("INVALID_ARGUMENT", f"a tensor is damaged: {error}") from error


def _raw(value: str | dict[str, str]) -> bytes:
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode()


def _as_json(values: Any) -> Any:
    if isinstance(values, list):
        return [_as_json(value) for value in values]
    return values.decode() if isinstance(values, bytes) else values
