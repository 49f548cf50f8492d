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
import pathlib
import random
import re
import socket
import ssl
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, NamedTuple, Self

from t2t_lite import errors
from t2t_lite.serving import protocol

_FIRST_DELAY = 0.1  # seconds before the first retry; twice as long before each further one
_LONGEST_DELAY = 5.0


class Unavailable(errors.UserError):
    """The server cannot answer for a while: it starts, is down, or its queue is full."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """One input's outputs with their scores, best first, and whether something was cut off.

    `truncated`: the input or the best output. `input_truncated` and, for each output, `finished`
    (it ends by itself) tell the two apart; None from an export that was made before it said so.
    """

    outputs: tuple[str, ...]
    scores: tuple[float, ...]
    truncated: bool = False
    input_truncated: bool | None = None
    finished: tuple[bool, ...] | None = None

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


class Address(NamedTuple):
    """Where a server listens: host:port, whether it speaks TLS, and what its paths begin with."""

    netloc: str
    tls: bool = False
    prefix: str = ""


class Client:
    """A connection to one model.

    Args:
      server: host:port; https://host/prefix means TLS, and a path before REST's own.
      name: the model's name there.
      rest: speak JSON over HTTP (port 8501 by default), not gRPC (8500).
      signature_name: serving_default or nbest.
      version: which version; default: the server's newest.
      version_label: the label of a version, instead.
      timeout: seconds that a request may take, with all its retries.
      retries: how often a request is sent again while the server is unavailable.
      in_flight: requests that wait for their answer at the same time.
      batch_size: texts of a request.
      tls: encrypt, also where `server` does not begin with https://.
      ca_file: certificates (PEM) of who may vouch for the server; means TLS. Default: with `rest`
        the system's, else those that gRPC brings along.
      headers: sent with each request, as HTTP headers or gRPC metadata.
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
        tls: bool = False,
        ca_file: str | None = None,
        headers: Mapping[str, str] | None = None,
    ):
        self._target = Target(
            name=name, signature_name=signature_name, version=version, version_label=version_label
        )
        self._timeout = timeout
        self._retries = retries
        self._in_flight = in_flight
        self._batch_size = batch_size
        address = parse_address(server)
        address = address._replace(tls=address.tls or tls or ca_file is not None)
        settings: Any = {"ca": _certificates(ca_file), "headers": _checked(headers or {})}
        self._transport = (Rest if rest else Grpc)(address, **settings)
        self._threads = futures.ThreadPoolExecutor(in_flight)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is not None:  # nobody waits for what is under way
            self._transport.close()
        self._threads.shutdown(cancel_futures=True)
        self._transport.close()

    def translate(self, texts: Sequence[str]) -> list[Answer]:
        """Return the answers to texts, sent as one request."""
        _refuse_one_text(texts)
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
        _refuse_one_text(texts)  # here, since a generator would wait until it is asked
        return self._stream(texts)

    def _stream(self, texts: Iterable[str]) -> Iterator[Answer]:
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


def _refuse_one_text(texts: Iterable[str]) -> None:
    """Raise TypeError for one text, whose letters would be taken for texts."""
    if isinstance(texts, str):
        raise TypeError("expected a list of texts, got one text")


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


def parse_address(server: str) -> Address:
    """Return a server's address; raise UserError where it is none.

    >>> parse_address("https://models.example.org/mt")
    Address(netloc='models.example.org:443', tls=True, prefix='/mt')
    """
    scheme, _, rest = server.rpartition("://")
    netloc, slash, path = rest.partition("/")
    host, _, port = netloc.rpartition(":")
    if not host and scheme in _PORTS:
        host, port = netloc, _PORTS[scheme]
    is_port = port.isdecimal() and 0 < int(port) < 65536
    if not host or not is_port or scheme not in ("", "grpc", *_PORTS):
        raise errors.UserError(
            "--server is host:port, e.g. localhost:8500, or with --rest an address such as "
            f"https://host/prefix; got {server!r}"
        )
    prefix = (slash + path).rstrip("/")
    return Address(f"{host}:{port}", tls=scheme == "https", prefix=prefix)


class Grpc:
    """PredictionService.Predict; raises Unavailable where another try may help, else UserError."""

    def __init__(self, address: Address, *, ca: str | None, headers: Mapping[str, str]):
        import grpc

        if address.prefix:
            raise errors.UserError(
                f"gRPC has no paths: give --rest, or leave out {address.prefix} of --server"
            )
        for name in headers:
            # The rest are bytes, or gRPC's own.
            if not re.fullmatch(r"(?!grpc-)[0-9a-z_.-]+(?<!-bin)", name):
                raise errors.UserError(f"--header {name}: gRPC takes no such name")
        self._grpc = grpc
        self._address = address.netloc
        self._metadata = tuple(headers.items())
        # Messages may be as large as the server allows.
        sizes = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        if address.tls:
            credentials = grpc.ssl_channel_credentials(ca.encode() if ca else None)
            self._channel = grpc.secure_channel(address.netloc, credentials, options=sizes)
        else:
            self._channel = grpc.insecure_channel(address.netloc, options=sizes)
        self._predict = self._channel.unary_unary(
            protocol.PREDICT,
            request_serializer=protocol.PredictRequest.SerializeToString,
            response_deserializer=protocol.PredictResponse.FromString,
        )

    def predict(self, target: Target, inputs: dict[str, list], timeout: float) -> dict[str, list]:
        """Return the response's tensors by name."""
        request = protocol.request(inputs=inputs, **dataclasses.asdict(target))
        try:
            response = self._predict(request, timeout=timeout, metadata=self._metadata)
            return _as_text(protocol.outputs(response))
        except self._grpc.RpcError as error:
            details = error.details() or ""
            raise _error(error.code().name, details, self._address, target) from error

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


class Rest:
    """POST <prefix>/v1/models/<name>:predict, with the interface of Grpc."""

    def __init__(self, address: Address, *, ca: str | None, headers: Mapping[str, str]):
        self._address = address.netloc
        self._prefix = address.prefix
        self._headers = {"content-type": "application/json", **headers}
        self._tls = ssl.create_default_context(cadata=ca) if address.tls else None

    def predict(self, target: Target, inputs: dict[str, list], timeout: float) -> dict[str, list]:
        """Return the response's tensors by name."""
        path = f"{self._prefix}/v1/models/{urllib.parse.quote(target.name, safe='')}"
        if target.version is not None:
            path += f"/versions/{target.version}"
        if target.version_label is not None:
            path += f"/labels/{urllib.parse.quote(target.version_label, safe='')}"
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
        if self._tls:
            connection = http.client.HTTPSConnection(
                self._address, timeout=timeout, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(self._address, timeout=timeout)
        try:
            connection.request("POST", path, body, self._headers)
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except TimeoutError as error:
            raise _error("DEADLINE_EXCEEDED", "", self._address, target) from error
        except ssl.SSLError as error:
            raise errors.UserError(
                f"no TLS with {self._address}: {error}; --ca_file names who vouches for the server"
            ) from error
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


_PORTS = {"http": "80", "https": "443"}
_HTTP_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    412: "FAILED_PRECONDITION",
    413: "RESOURCE_EXHAUSTED",
    429: "UNAVAILABLE",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def _error(status: str, details: str, address: str, target: Target) -> errors.UserError:
    """Return one line that says what went wrong and what to do."""
    details = " ".join(details.split())
    if "Failed parsing HTTP/2" in details:
        return errors.UserError(f"{address} does not speak gRPC: is it the port of --rest?")
    # A request may have waited too long in the server's queue.
    if status == "UNAVAILABLE" or (status == "RESOURCE_EXHAUSTED" and "timeout" in details):
        return Unavailable(f"the server at {address} is not available: {details}")
    if status == "DEADLINE_EXCEEDED":
        return errors.UserError(
            f"no answer from {address} in time: give more --timeout_secs, or smaller requests"
        )
    if status == "NOT_FOUND":
        return errors.UserError(f"{address} serves no model {target}: {details}")
    if status in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return errors.UserError(
            f"{address} does not let you in ({status}: {details}): give --header=name=value"
        )
    if status == "RESOURCE_EXHAUSTED" or "larger than maximum input batch size" in details:
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
    rows = [dict(zip(tensors, values)) for values in zip(*tensors.values())]
    return [_answer(row, is_nbest=isinstance(row["outputs"], list)) for row in rows]


def _answer(row: dict[str, Any], *, is_nbest: bool) -> Answer:
    def several(name: str) -> tuple:
        return tuple(row[name]) if is_nbest else (row[name],)

    kinds = {*map(type, several("outputs"))}, {*map(type, several("scores"))}
    if kinds[0] != {str} or not kinds[1] <= {int, float}:
        raise TypeError(f"outputs and scores are {kinds}")
    cut = bool(row.get("truncated", False))
    finished = several("finished") if "finished" in row else None
    if is_nbest and finished:  # its `truncated` is the input alone
        cut = cut or not finished[0]
    return Answer(
        outputs=several("outputs"),
        scores=several("scores"),
        truncated=cut,
        input_truncated=row.get("truncated" if is_nbest else "input_truncated"),
        finished=finished,
    )


def _certificates(path: str | None) -> str | None:
    """Return the text of a file of certificates."""
    if path is None:
        return None
    try:
        text = pathlib.Path(path).read_text("ascii")
        ssl.create_default_context(cadata=text)
    except (OSError, ValueError) as error:  # ssl's own errors are OSErrors
        raise errors.UserError(f"--ca_file {path} is no file of certificates: {error}") from error
    return text


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by their names in lower case; raise UserError for what HTTP cannot carry."""
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise errors.UserError(f"--header {name!r}: that is no name of a header")
        if not re.fullmatch(r"[ -~]*", value):
            raise errors.UserError(f"--header {name}: its value is not plain ASCII")
    return {name.lower(): value.strip() for name, value in headers.items()}


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
