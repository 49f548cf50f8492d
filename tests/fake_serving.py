"""A fake of TensorFlow Serving: one version of an export behind its gRPC and REST interfaces.

It knows the requests that the client and docs/serve.md send. Mistakes get TensorFlow Serving's
codes and the words that the client looks for: as there, a batch fails as a whole, a request without
rows is never answered, and gRPC has few threads. The messages are the official ones.

  python tests/fake_serving.py EXPORT_DIR NAME GRPC_PORT REST_PORT
"""

import base64
import http.server
import importlib
import json
import os
import pathlib
import re
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from typing import Any, Self

import grpc
import numpy as np
import tensorflow as tf

from t2t_lite.serving import session

# Its classes are made at run time, where pyright does not see them.
predict_pb2: Any = importlib.import_module("tensorflow_serving.apis.predict_pb2")
Arrays = dict[str, np.ndarray]
_VERSION = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_PREDICT = rf"/v1/models/(?P<name>[^/:]+){_VERSION}:predict"
_HTTP_STATUS = {"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "NOT_FOUND": 404}
_STATUS = rf"/v1/models/(?P<name>[^/:]+){_VERSION}"


class RefusedError(Exception):
    """A request that gets an error: its gRPC status and message."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status


class Server:
    """Serves the newest version in a folder of versions, on ports of this machine.

    Args:
      export_dir: the folder of versions.
      name: the model's name.
      label: a label of the version.
      port: for gRPC; 0 takes a free one.
      rest_port: for REST; 0 takes a free one.
      max_threads: requests by gRPC at a time; what is above is refused. By default 4 a core.
    """

    def __init__(
        self,
        export_dir: pathlib.Path,
        name: str,
        *,
        label: str = "",
        port: int = 0,
        rest_port: int = 0,
        max_threads: int = 0,
    ):
        path = max(export_dir.glob("[0-9]*"), key=lambda path: int(path.name))
        self.name = name
        self.number = int(path.name)
        self._label = label
        self.session = session.Session(path)
        self._batcher = _Batcher(self.session)
        parameters = (path / "batching_params.pbtxt").read_text()
        assert "pad_variable_length_inputs" not in parameters
        self._max_rows = int(re.findall(r"max_batch_size { value: (\d+) }", parameters)[0])
        self._threads = threading.Semaphore(max_threads or 4 * (os.cpu_count() or 1))
        self._stopped = threading.Event()
        handler = type("Handler", (_Handler,), {"serving": self})
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", rest_port), handler)
        self.rest_port = self._http.server_port
        self._grpc = grpc.server(futures.ThreadPoolExecutor(64))
        predict = grpc.unary_unary_rpc_method_handler(
            self._answer,
            request_deserializer=predict_pb2.PredictRequest.FromString,
            response_serializer=predict_pb2.PredictResponse.SerializeToString,
        )
        service = "tensorflow.serving.PredictionService"
        self._grpc.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {"Predict": predict})]
        )
        self.port = self._grpc.add_insecure_port(f"127.0.0.1:{port}")

    def __enter__(self) -> Self:
        self._grpc.start()
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._grpc.stop(grace=None).wait()
        self._http.shutdown()
        self._http.server_close()

    def check(self, name: str, version: int | None, label: str | None) -> None:
        """Raise RefusedError unless this is the model that is served."""
        if label and label != self._label:
            message = f"Unrecognized servable version label: {label}"
            raise RefusedError("INVALID_ARGUMENT", message)
        if name != self.name or version not in (None, self.number):
            wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise RefusedError("NOT_FOUND", f"Servable not found for request: {wanted}")

    def predict(self, signature: str, inputs: Arrays) -> Arrays:
        """Return a signature's outputs; raise RefusedError for inputs that do not fit it."""
        missing = self.session.specs[signature].keys() - inputs.keys()
        if missing or len(inputs) > len(self.session.specs[signature]):
            message = (
                f"input size does not match signature: {sorted(inputs)}. Missing but required: "
                f"{{{','.join(sorted(missing))}}}."
            )
            raise RefusedError("INVALID_ARGUMENT", message)
        if any(array.ndim == 0 for array in inputs.values()):
            message = "Batching Run() input tensors must have at least one dimension"
            raise RefusedError("INVALID_ARGUMENT", message)
        sizes = {len(array) for array in inputs.values()}
        if len(sizes) > 1:
            message = "Batching Run() input tensors must have equal 0th-dimension size"
            raise RefusedError("INVALID_ARGUMENT", message)
        (size,) = sizes
        if size > self._max_rows:
            message = f"Task size {size} is larger than maximum input batch size {self._max_rows}"
            raise RefusedError("INVALID_ARGUMENT", message)
        if size == 0:
            self._stopped.wait()
        return self._batcher.predict(signature, inputs)

    def _answer(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Answer a PredictRequest, or refuse it where all threads are taken."""
        if not self._threads.acquire(blocking=False):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "Server Threadpool Exhausted")
        try:
            return self._answer_now(request, context)
        finally:
            self._threads.release()

    def _answer_now(self, request: Any, context: grpc.ServicerContext) -> Any:
        spec = request.model_spec
        signature = spec.signature_name or "serving_default"
        try:
            version = spec.version.value if spec.HasField("version") else None
            self.check(spec.name, version, spec.version_label)
            if signature not in self.session.specs:
                message = f'Serving signature key "{signature}" not found.'
                raise RefusedError("FAILED_PRECONDITION", message)
            inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
            outputs = self.predict(signature, inputs)
        except RefusedError as error:
            context.abort(getattr(grpc.StatusCode, error.status), str(error))
        response = predict_pb2.PredictResponse()
        response.model_spec.CopyFrom(spec)
        for name, array in outputs.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(array, shape=array.shape))
        return response


class _Batcher:
    """Runs the requests to a signature that wait at the same time as one batch."""

    def __init__(self, runner: session.Session):
        self._session = runner
        self._waiting: dict[str, list[tuple[Arrays, futures.Future[Arrays]]]] = {}
        self._lock = threading.Lock()
        self._running = threading.Lock()

    def predict(self, signature: str, inputs: Arrays) -> Arrays:
        """Return the outputs of a request; its own thread or another one runs the batch."""
        answer: futures.Future[Arrays] = futures.Future()
        with self._lock:
            self._waiting.setdefault(signature, []).append((inputs, answer))
        with self._running:
            with self._lock:
                batch = self._waiting.pop(signature, [])
            if batch:
                self._run(signature, batch)
        return answer.result()

    def _run(self, signature: str, batch: list[tuple[Arrays, futures.Future[Arrays]]]) -> None:
        try:
            inputs = {key: _merged([request[key] for request, _ in batch]) for key in batch[0][0]}
            outputs = self._session.run(signature, inputs)
        except (RefusedError, tf.errors.OpError) as error:
            status = error.status if isinstance(error, RefusedError) else "INVALID_ARGUMENT"
            for _, answer in batch:
                answer.set_exception(RefusedError(status, str(error)))
            return
        start = 0
        for request, answer in batch:
            end = start + len(next(iter(request.values())))
            answer.set_result({name: array[start:end] for name, array in outputs.items()})
            start = end


def _merged(arrays: list[np.ndarray]) -> np.ndarray:
    """Return the rows of all arrays, texts; raise RefusedError as the server and the graph do."""
    if len({array.shape[1:] for array in arrays}) > 1:
        message = "Tensors from different tasks have different shapes and padding is turned off."
        raise RefusedError("FAILED_PRECONDITION", message)
    if any(array.dtype != object for array in arrays):
        raise RefusedError("INVALID_ARGUMENT", "Type mismatch: actual int32 vs. expect string")
    merged = np.concatenate(arrays)
    if merged.ndim > 1:
        shape = ",".join(map(str, merged.shape))
        message = f"Shape of tensor [{shape}] is not compatible with expected shape [?]."
        raise RefusedError("INVALID_ARGUMENT", message)
    return merged


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers REST requests; a subclass has `serving`."""

    serving: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(_PREDICT, lambda: self._predict(json.loads(data)))

    def do_GET(self) -> None:
        version = {"version": str(self.serving.number), "state": "AVAILABLE"}
        status = {**version, "status": {"error_code": "OK", "error_message": ""}}
        self._answer(_STATUS, lambda: {"model_version_status": [status]})

    def _answer(self, path: str, answer: Callable[[], dict[str, Any]]) -> None:
        """Send the answer, or the error, for a path that names the model."""
        match = re.fullmatch(path, self.path)
        if match is None:
            message = f"Malformed request: {self.command} {self.path}"
            return self._send(400, {"error": message})
        try:
            version = int(match["version"]) if match["version"] else None
            self.serving.check(match["name"], version, match["label"])
            self._send(200, answer())
        except json.JSONDecodeError as error:
            self._send(400, {"error": f"JSON Parse error: {error}"})
        except RefusedError as error:
            self._send(_HTTP_STATUS[error.status], {"error": str(error)})

    def _predict(self, request: dict[str, Any]) -> dict[str, Any]:
        signature = request.get("signature_name", "serving_default")
        specs = self.serving.session.specs.get(signature)
        if specs is None:
            message = f'Serving signature name: "{signature}" not found in signature def'
            raise RefusedError("INVALID_ARGUMENT", message)
        outputs = self.serving.predict(signature, _inputs(request, specs))
        columns = {name: _as_json(array) for name, array in outputs.items()}
        if "inputs" in request:
            return {"outputs": columns}
        return {"predictions": [dict(zip(columns, row)) for row in zip(*columns.values())]}

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer, indent=4).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def _inputs(request: Mapping[str, Any], specs: Mapping[str, tf.TensorSpec]) -> Arrays:
    """Return a request's inputs by name, from rows ("instances") or columns ("inputs")."""
    columns = request.get("inputs")
    if columns is None:
        columns = rows = request["instances"]
        if isinstance(rows[0], dict) and "b64" not in rows[0]:
            columns = {name: [row[name] for row in rows] for name in rows[0]}
    if not isinstance(columns, dict):
        columns = {next(iter(specs)): columns}
    for name in specs.keys() - columns.keys():
        raise RefusedError("INVALID_ARGUMENT", f"Missing named input: {name} in 'inputs' object.")
    return {name: np.array(_elements(columns[name]), object) for name in specs}


def _elements(value: Any) -> Any:
    """Return a JSON value, or lists of them, as what NumPy takes."""
    if isinstance(value, list):
        return [_elements(item) for item in value]
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    if not isinstance(value, str):
        message = f"Failed to process element: JSON Value: {value} not of expected type: string"
        raise RefusedError("INVALID_ARGUMENT", message)
    return value.encode()


def _as_json(array: np.ndarray) -> Any:
    if array.dtype == object:
        return [_as_json(x) if isinstance(x, np.ndarray) else x.decode() for x in array]
    if array.dtype.kind == "f":  # 0.2, not 0.20000000298 as float32 is in float64
        return np.array([float(str(x)) for x in array.flat]).reshape(array.shape).tolist()
    return array.tolist()


def main() -> None:
    """Serve until the process is ended."""
    folder, name, port, rest_port = sys.argv[1:]
    with Server(pathlib.Path(folder), name, port=int(port), rest_port=int(rest_port)):
        print("serving", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
