"""A fake of TensorFlow Serving: one version of an export behind its gRPC and REST interfaces.

It knows the requests that the client and docs/serve.md send. Mistakes get TensorFlow Serving's
codes and the words that the client looks for. The messages are the official ones.

  python tests/fake_serving.py EXPORT_DIR NAME GRPC_PORT REST_PORT
"""

import base64
import http.server
import importlib
import json
import pathlib
import re
import sys
import threading
from collections.abc import Mapping
from concurrent import futures
from typing import Any, Self

import grpc
import numpy as np
import tensorflow as tf

from t2t_lite.serving import session

# Its classes are made at run time, where pyright does not see them.
predict_pb2: Any = importlib.import_module("tensorflow_serving.apis.predict_pb2")
Arrays = dict[str, np.ndarray]
_MAX_ROWS = 1024  # max_batch_size in batching_params.pbtxt
_VERSION = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_PREDICT = rf"/v1/models/(?P<name>[^/:]+){_VERSION}:predict"
_HTTP_STATUS = {"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "NOT_FOUND": 404}


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
    """

    def __init__(
        self,
        export_dir: pathlib.Path,
        name: str,
        *,
        label: str = "",
        port: int = 0,
        rest_port: int = 0,
    ):
        path = max(export_dir.glob("[0-9]*"), key=lambda path: int(path.name))
        self.name = name
        self.number = int(path.name)
        self._label = label
        self.session = session.Session(path)
        self._batcher = _Batcher(self.session)
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
        if max(sizes) > _MAX_ROWS:
            message = f"Task size {max(sizes)} is larger than maximum input batch size {_MAX_ROWS}"
            raise RefusedError("INVALID_ARGUMENT", message)
        return self._batcher.predict(signature, inputs)

    def _answer(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Answer a PredictRequest."""
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
        names = batch[0][0]
        inputs = {name: _merged([request[name] for request, _ in batch]) for name in names}
        try:
            outputs = self._session.run(signature, inputs)
        except tf.errors.OpError as error:
            for _, answer in batch:
                answer.set_exception(RefusedError("INVALID_ARGUMENT", error.message))
            return
        start = 0
        for request, answer in batch:
            end = start + len(next(iter(request.values())))
            answer.set_result({name: array[start:end] for name, array in outputs.items()})
            start = end


def _merged(arrays: list[np.ndarray]) -> np.ndarray:
    """Return the rows of all arrays; narrow ones are padded with their first element.

    >>> _merged([np.array([[5, 6, 1]]), np.array([[7, 1]])]).tolist()
    [[5, 6, 1], [7, 1, 7]]
    """
    if arrays[0].ndim == 1:
        return np.concatenate(arrays)
    width = max(array.shape[1] for array in arrays)
    return np.concatenate(
        [
            np.pad(array, [(0, 0), (0, width - array.shape[1])], constant_values=array.flat[0])
            for array in arrays
        ]
    )


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers REST requests; a subclass has `serving`."""

    serving: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match = re.fullmatch(_PREDICT, self.path)
        assert match, f"not among the requests that this fake knows: {self.path}"
        try:
            version = int(match["version"]) if match["version"] else None
            self.serving.check(match["name"], version, match["label"])
            self._send(200, self._predict(request))
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
    return {
        name: np.array(_elements(columns[name]), spec.dtype.as_numpy_dtype)
        for name, spec in specs.items()
    }


def _elements(value: Any) -> Any:
    """Return a JSON value, or lists of them, as what NumPy takes."""
    if isinstance(value, list):
        return [_elements(item) for item in value]
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    return value.encode() if isinstance(value, str) else value


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
