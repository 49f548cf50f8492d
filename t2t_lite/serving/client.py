"""A client of TensorFlow Serving, over gRPC or REST, without TensorFlow.

with client.Client("localhost:8500", "ende") as translator:
    translator.translate(["A dog runs."])[0].text
"""

import base64
import collections
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
from t2t_lite.decode.translation import Translation
from t2t_lite.serving import answers, protocol

_FIRST_DELAY = 0.1  # seconds before the first retry; twice as long before each further one
_LONGEST_DELAY = 5.0


class Unavailable(errors.UserError):
    """The server cannot answer for a while: it starts, is down, or its queue is full."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A model of a server and one of its signatures."""

    name: str
    signature_name: str = "serving_default"
    version: int | None = None
    version_label: str | None = None

    def __str__(self) -> str:
        which = self.version_label if self.version is None else self.version
        return repr(self.name) if which is None else f"{self.name!r} version {which!r}"


class Address(NamedTuple):
    """A server's host:port, whether it speaks TLS, and the prefix of its REST paths."""

    netloc: str
    tls: bool = False
    prefix: str = ""


class Client:
    """A connection to one model.

    Args:
      server: host:port, or https://host/prefix: TLS, and a prefix of the REST paths.
      name: the model's name on the server.
      rest: use JSON over HTTP (port 8501 by default), not gRPC (8500).
      signature_name: serving_default or nbest.
      version: the model's version; default: the newest.
      version_label: the label of a version, instead.
      timeout: seconds for a request with all its retries.
      retries: how often to send a request again while the server is unavailable.
      in_flight: how many requests may wait for an answer at a time.
      batch_size: texts in a request.
      tls: encrypt, also where `server` does not begin with https://.
      ca_file: certificates (PEM) of the authorities to trust; implies TLS. Default: with `rest` the
        system's, else those of gRPC.
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

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """Return the translations of texts, sent as one request."""
        answers.require_list(texts)
        tensors = self.predict({"inputs": list(texts)})
        try:
            translations = answers.translations(tensors)
            if len(translations) != len(texts):
                raise ValueError(f"{len(translations)} translations of {len(texts)} texts")
            return translations
        except errors.UserError:  # a ValueError, too
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise errors.UserError(
                f"signature {self._target.signature_name!r} answers {sorted(tensors)}, "
                "not outputs and scores: use serving_default or nbest"
            ) from error

    def stream(self, texts: Iterable[str]) -> Iterator[Translation]:
        """Yield the translations in order, with several requests in flight."""
        answers.require_list(texts)  # now, not when the first translation is asked for
        return self._stream(texts)

    def _stream(self, texts: Iterable[str]) -> Iterator[Translation]:
        waiting: collections.deque[futures.Future[list[Translation]]] = collections.deque()
        for batch in _batches(texts, self._batch_size):
            waiting.append(self._threads.submit(self.translate, batch))
            if len(waiting) >= self._in_flight:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    def predict(self, inputs: dict[str, list]) -> dict[str, list]:
        """Send tensors of texts or ids by name to the signature; return its outputs by name.

        Raises UserError with one clear line for any failure.
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
    """Return send(seconds left); call it again after 0.1, 0.2, 0.4 ... s while it is Unavailable.

    Each delay is shortened at random by up to a half, so that clients do not all return at once.
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
    """Return the parts of a server's address; raise UserError where they are wrong.

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
            # grpc-... is gRPC's own, and the values of ...-bin are bytes.
            if not re.fullmatch(r"(?!grpc-)[0-9a-z_.-]+(?<!-bin)", name):
                raise errors.UserError(f"--header {name}: gRPC does not take this name")
        self._grpc = grpc
        self._address = address.netloc
        self._metadata = tuple(headers.items())
        # No limits of our own: the server has its own.
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
            return {
                name: answers.as_text(rows) for name, rows in protocol.outputs(response).items()
            }
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
        try:
            fields = json.loads(answer)
        except (ValueError, RecursionError):
            fields = None
        match fields:
            case {"outputs": dict(tensors)} if status == 200:
                return tensors
            case {"error": details}:
                details = str(details)
            case _:
                details = answer[:200]
        raise _error(_HTTP_STATUS.get(status, "UNKNOWN"), details, self._address, target)

    def close(self) -> None:
        """Each request has a connection of its own."""

    def _post(self, path: str, body: str, timeout: float, target: Target) -> tuple[int, str]:
        """Return the status and the text of the response."""
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
        except (OSError, http.client.HTTPException) as error:
            raise _connection_error(error, self._address, target) from error
        finally:
            connection.close()


def _connection_error(error: Exception, address: str, target: Target) -> errors.UserError:
    """Return one line for an exception of an HTTP connection."""
    if isinstance(error, TimeoutError):
        return _error("DEADLINE_EXCEEDED", "", address, target)
    if isinstance(error, ssl.SSLError):
        return errors.UserError(
            f"no TLS with {address}: {error}; --ca_file names the authorities to trust"
        )
    if isinstance(error, ConnectionError | socket.gaierror):
        return _error("UNAVAILABLE", str(error), address, target)
    if isinstance(error, http.client.BadStatusLine):
        return errors.UserError(f"{address} does not speak HTTP/1.1: is it the gRPC port?")
    return _error("UNKNOWN", str(error) or type(error).__name__, address, target)


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


def _certificates(path: str | None) -> str | None:
    """Return the text of a file of certificates; raise UserError where it is not one."""
    if path is None:
        return None
    try:
        text = pathlib.Path(path).read_text("ascii")
        ssl.create_default_context(cadata=text)
    except (OSError, ValueError) as error:  # ssl's own errors are OSErrors
        raise errors.UserError(
            f"--ca_file {path} is not a file of certificates: {error}"
        ) from error
    return text


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with names in lower case; raise UserError for those that HTTP cannot carry."""
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise errors.UserError(f"--header {name!r}: this is not a header's name")
        if not re.fullmatch(r"[ -~]*", value):
            raise errors.UserError(f"--header {name}: its value is not plain ASCII")
    return {name.lower(): value.strip() for name, value in headers.items()}


def _json_text(text: str | bytes) -> str | dict[str, str]:
    """Return text as JSON has it; bytes that are not UTF-8 are in base 64."""
    data = protocol.as_bytes(text)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode()}


def _batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    texts = iter(texts)  # text_files.windows would import NumPy, which the client does not need
    while batch := list(itertools.islice(texts, size)):
        yield batch
