"""TensorFlow Serving's REST interface: https://www.tensorflow.org/tfx/serving/api_rest."""

import http.server
import json
import re
import urllib.parse
from collections.abc import Callable
from typing import Any, Protocol

from t2t_lite.serving import json_tensors, protocol, served_model

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


class Serving(Protocol):
    """What answers: a model under a name."""

    name: str
    model: served_model.Model

    def version(self, name: str, choice: served_model.Choice) -> served_model.Version:
        """Return what a request asks for; raise Refused as TensorFlow Serving would."""
        ...


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # clients that may connect at the same moment

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has gone."""


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection's requests; a subclass has `serving`."""

    serving: Serving
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


def _asked(match: re.Match[str]) -> tuple[str, served_model.Choice]:
    """Return the name and the version of a path."""
    number, label = match["version"], match["label"]
    return urllib.parse.unquote(match["name"]), served_model.Choice(
        int(number) if number else None, urllib.parse.unquote(label) if label else None
    )
