"""Asks a running TensorFlow Serving, over gRPC or REST, without TensorFlow.

with client.Client("localhost:8500", "ende") as translator:
    translator.translate(["A dog runs."])[0].text
"""

import base64
import collections
import contextlib
import dataclasses
import http.client
import itertools
import json
import random
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from typing import Any, Self

from t2t_lite import errors
from t2t_lite.serving import protocol

_FIRST_DELAY = 0.1  # seconds before the first retry; twice as long before each further one
_LONGEST_DELAY = 5.0


class Unavailable(errors.UserError):
    """The server cannot answer for a while: it starts, is down, or its queue is full."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """One input's outputs with their scores, best first, and whether something was cut off."""

    outputs: tuple[str, ...]
    scores: tuple[float, ...]
    truncated: bool = False

    @property
    def text(self) -> str:
        """The best output."""
        return self.outputs[0]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """Which model of a server, and which of its signatures."""

    name: str
    signature_name: str = "serving_default"
    version: int | None = None
    version_label: str | None = None

    def __str__(self) -> str:
        which = self.version_label if self.version is None else self.version
        return repr(self.name) if which is None else f"{self.name!r} version {which!r}"


class Client:
    """A connection to one model.

    Args:
      server: host:port.
      name: the model's name there.
      rest: speak JSON over HTTP (port 8501 by default), not gRPC (8500).
      signature_name: serving_default or nbest.
      version: which version; default: the server's newest.
      version_label: the label of a version, instead.
      timeout: seconds that a request may take, with all its retries.
      retries: how often a request is sent again while the server is unavailable.
      in_flight: requests that wait for their answer at the same time.
      batch_size: texts of a request.
    """

    def __init__(
        self,
        server: str,
        name: str,
        *,
        rest: bool = False,
        signature_name: str = "serving_default",
        version: int | None = None,
        version_label: str | None = None,
        timeout: float = 30.0,
        retries: int = 5,
        in_flight: int = 8,
        batch_size: int = 1,
    ):
        self._target = Target(
            name=name, signature_name=signature_name, version=version, version_label=version_label
        )
        self._timeout = timeout
        self._retries = retries
        self._in_flight = in_flight
        self._batch_size = batch_size
        address = parse_address(server)
        self._transport = Rest(address) if rest else Grpc(address)
        self._threads = futures.ThreadPoolExecutor(in_flight)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        self._transport.close()

    def translate(self, texts: Sequence[str]) -> list[Answer]:
        """Return the answers to texts, sent as one request."""
        tensors = self.predict({"inputs": list(texts)})
        try:
            answers = _answers(tensors)
            if len(answers) != len(texts):
                raise TypeError(f"{len(answers)} answers to {len(texts)} texts")
            return answers
        except (KeyError, TypeError) as error:
            raise errors.UserError(
                f"signature {self._target.signature_name!r} answers {sorted(tensors)}, "
                "not outputs and scores: use serving_default or nbest"
            ) from error

    def stream(self, texts: Iterable[str]) -> Iterator[Answer]:
        """Yield the answers in order, with several requests in flight."""
        waiting: collections.deque[futures.Future[list[Answer]]] = collections.deque()
        for batch in _batches(texts, self._batch_size):
            waiting.append(self._threads.submit(self.translate, batch))
            if len(waiting) >= self._in_flight:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    def predict(self, inputs: dict[str, list]) -> dict[str, list]:
        """Send string tensors by name to the signature; return what comes back by name.

        Raises UserError with one clear line for whatever goes wrong.
        """
        return retry(
            lambda left: self._transport.predict(self._target, inputs, left),
            timeout=self._timeout,
            retries=self._retries,
        )


def retry(
    send: Callable[[float], Any],
    *,
    timeout: float,
    retries: int,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Any:
    """Return send(seconds left); call it again after 0.1, 0.2, 0.4 ... s while Unavailable.

    Each delay is shortened by up to a half at random, so that clients do not come back all at once.
    """
    end = clock() + timeout
    for attempt in range(retries + 1):
        try:
            return send(max(end - clock(), 0.001))
        except Unavailable as error:
            delay = min(_FIRST_DELAY * 2**attempt, _LONGEST_DELAY) * random.uniform(0.5, 1.0)
            if attempt == retries or clock() + delay >= end:
                tries = f" (after {attempt + 1} tries)" if attempt else ""
                raise errors.UserError(f"{error}{tries}") from error
            sleep(delay)


def parse_address(server: str) -> str:
    """Return host:port; raise UserError where it is none."""
    address = server.removeprefix("http://").removeprefix("grpc://").rstrip("/")
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
        raise errors.UserError(f"--server is host:port, e.g. localhost:8500, got {server!r}")
    return address


class Grpc:
    """PredictionService.Predict; raises Unavailable where another try may help, else UserError."""

    def __init__(self, address: str):
        import grpc

        self._grpc = grpc
        self._address = address
        # Messages may be as large as the server allows.
        sizes = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        self._channel = grpc.insecure_channel(address, options=sizes)
        self._predict = self._channel.unary_unary(
            protocol.PREDICT,
            request_serializer=protocol.PredictRequest.SerializeToString,
            response_deserializer=protocol.PredictResponse.FromString,
        )

    def predict(self, target: Target, inputs: dict[str, list], timeout: float) -> dict[str, list]:
        """Return the response's tensors by name."""
        request = protocol.request(inputs=inputs, **dataclasses.asdict(target))
        try:
            return _as_text(protocol.outputs(self._predict(request, timeout=timeout)))
        except self._grpc.RpcError as error:
            details = error.details() or ""
            raise _error(error.code().name, details, self._address, target) from error

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


class Rest:
    """POST /v1/models/<name>:predict, with the interface of Grpc."""

    def __init__(self, address: str):
        self._address = address

    def predict(self, target: Target, inputs: dict[str, list], timeout: float) -> dict[str, list]:
        """Return the response's tensors by name."""
        path = f"/v1/models/{target.name}"
        if target.version is not None:
            path += f"/versions/{target.version}"
        if target.version_label is not None:
            path += f"/labels/{target.version_label}"
        columns = {name: [_json_text(text) for text in texts] for name, texts in inputs.items()}
        body = {"signature_name": target.signature_name, "inputs": columns}
        status, answer = self._post(f"{path}:predict", json.dumps(body), timeout, target)
        fields: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            fields = json.loads(answer)
        if not isinstance(fields, dict):
            fields = {}
        if status == 200 and isinstance(fields.get("outputs"), dict):
            return fields["outputs"]
        details = str(fields.get("error", answer[:200]))
        raise _error(_HTTP_STATUS.get(status, "UNKNOWN"), details, self._address, target)

    def close(self) -> None:
        """Nothing stays open."""

    def _post(self, path: str, body: str, timeout: float, target: Target) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._address, timeout=timeout)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except TimeoutError as error:
            raise _error("DEADLINE_EXCEEDED", "", self._address, target) from error
        except (ConnectionError, socket.gaierror) as error:
            raise _error("UNAVAILABLE", str(error), self._address, target) from error
        except http.client.BadStatusLine as error:
            raise errors.UserError(
                f"{self._address} does not speak HTTP/1.1: is it the gRPC port?"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise _error("UNKNOWN", reason, self._address, target) from error
        finally:
            connection.close()


_HTTP_STATUS = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    412: "FAILED_PRECONDITION",
    413: "RESOURCE_EXHAUSTED",
    429: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def _error(status: str, details: str, address: str, target: Target) -> errors.UserError:
    """Return one line that says what went wrong and what to do."""
    details = " ".join(details.split())
    if "Failed parsing HTTP/2" in details:
        return errors.UserError(f"{address} does not speak gRPC: is it the port of --rest?")
    if status == "UNAVAILABLE":
        return Unavailable(f"the server at {address} is not available: {details}")
    if status == "DEADLINE_EXCEEDED":
        return errors.UserError(
            f"no answer from {address} in time: give more --timeout_secs, or smaller requests"
        )
    if status == "NOT_FOUND":
        return errors.UserError(f"{address} serves no model {target}: {details}")
    if status == "RESOURCE_EXHAUSTED":
        return errors.UserError(f"too large for {address}, give a smaller --batch_size: {details}")
    if "signature" in details.lower() and "not found" in details:
        return errors.UserError(
            f"model {target} has no signature {target.signature_name!r}: {details}"
        )
    return errors.UserError(f"{address} answers {status}: {details}")


def _answers(tensors: dict[str, list]) -> list[Answer]:
    """Return an Answer an item, of the tensors of serving_default [B] or nbest [B, N].

    Raises KeyError or TypeError where they are others.
    """
    truncated = tensors.get("truncated", [False] * len(tensors["outputs"]))
    answers = [
        Answer(
            outputs=tuple(texts) if isinstance(texts, list) else (texts,),
            scores=tuple(scores) if isinstance(scores, list) else (scores,),
            truncated=bool(cut),
        )
        for texts, scores, cut in zip(tensors["outputs"], tensors["scores"], truncated)
    ]
    for one in answers:
        kinds = {*map(type, one.outputs)}, {*map(type, one.scores)}
        if kinds[0] != {str} or not kinds[1] <= {int, float}:
            raise TypeError(f"outputs and scores are {kinds}")
    return answers


def _as_text(tensors: Any) -> Any:
    """Return the same with bytes decoded."""
    if isinstance(tensors, dict):
        return {name: _as_text(values) for name, values in tensors.items()}
    if isinstance(tensors, list):
        return [_as_text(value) for value in tensors]
    return tensors.decode("utf-8", "replace") if isinstance(tensors, bytes) else tensors


def _json_text(text: str | bytes) -> str | dict[str, str]:
    """Return what JSON may hold: text as it is, bytes that are none in base 64."""
    data = protocol.as_bytes(text)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode()}


def _batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    texts = iter(texts)
    while batch := list(itertools.islice(texts, size)):
        yield batch
