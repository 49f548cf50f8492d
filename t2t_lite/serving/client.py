"""A client of TensorFlow Serving, over gRPC or REST, without TensorFlow.

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
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, NamedTuple, Self

from t2t_lite import errors
from t2t_lite.decode.translation import Translation, require_texts
from t2t_lite.serving import answers, protocol

_FIRST_DELAY = 0.1  # seconds before the first retry; twice as long before each further one
_LONGEST_DELAY = 5.0
_MAX_VERSION = 2**63 - 1


class Unavailable(errors.UserError):
    """The server cannot answer for a while: it starts, or is down."""


class Busy(Unavailable):
    """The server answers, but its threads or its queue have no room for this request."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A model of a server and one of its signatures."""

    name: str
    signature_name: str = "serving_default"
    version: int | None = None
    version_label: str | None = None

    def __post_init__(self):
        """Raise UserError for what no request can carry."""
        if self.version is not None and not 0 <= self.version <= _MAX_VERSION:
            raise errors.UserError(f"--version is from 0 to {_MAX_VERSION}, got {self.version}")
        for text in (self.name, self.signature_name, self.version_label or ""):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise errors.UserError(f"a name on the server is UTF-8, got {text!r}") from error

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
      retries: how often to send a request again while the server is unavailable; one for which it
        has no room is sent again until the time-out.
      in_flight: how many requests may wait for an answer at a time; fewer for a server that has no
        room for so many.
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
        self._num_open = 0
        self._lock = threading.Lock()
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

    def wait(self, seconds: float, tell: Callable[[str], object]) -> None:
        """Wait for a server that is starting, so long at most; `tell` that it does not answer yet.

        Raises UserError where it never answers, or refuses the model.
        """

        def ask(left: float) -> dict[str, list]:
            return self._send({"inputs": [""]}, left)

        try:
            ask(self._timeout)
        except Unavailable as error:
            tell(f"{error}; waiting up to {seconds:g} s")
            retry(ask, timeout=seconds, retries=sys.maxsize)

    def translate(self, texts: Sequence[str]) -> list[Translation]:
        """Return the translations of texts, sent as one request."""
        require_texts(texts)
        if not texts:
            return []
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
        require_texts(texts)  # now, not when the first translation is asked for
        return self._stream(texts)

    def _stream(self, texts: Iterable[str]) -> Iterator[Translation]:
        waiting: collections.deque[futures.Future[list[Translation]]] = collections.deque()
        for batch in _batches(texts, self._batch_size):
            waiting.append(self._threads.submit(self.translate, batch))
            while len(waiting) >= self._in_flight:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    def predict(self, inputs: dict[str, list]) -> dict[str, list]:
        """Send lists of texts by name to the signature; return its outputs by name.

        Raises UserError with one clear line for any failure. TensorFlow Serving never answers a
        request without rows, so that none is sent.
        """
        if not all(inputs.values()):
            raise errors.UserError("a request has at least one text for each input, got none")
        return retry(
            lambda left: self._send(inputs, left), timeout=self._timeout, retries=self._retries
        )

    def _send(self, inputs: dict[str, list], left: float) -> dict[str, list]:
        """Send a request once; where the server has no room, have fewer in flight from now on."""
        with self._lock:
            self._num_open += 1
        try:
            return self._transport.predict(self._target, inputs, left)
        except Busy:
            with self._lock:
                self._in_flight = max(1, min(self._in_flight, self._num_open - 1))
            raise
        finally:
            with self._lock:
                self._num_open -= 1


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
    While the server is Busy the number of retries does not matter.
    """
    end = clock() + timeout
    longest = _FIRST_DELAY
    for attempt in itertools.count():
        try:
            return send(max(end - clock(), 0.001))
        except Unavailable as error:
            delay = longest * random.uniform(0.5, 1.0)
            longest = min(2 * longest, _LONGEST_DELAY)
            is_last = attempt >= retries and not isinstance(error, Busy)
            if is_last or clock() + delay >= end:
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
    if not _is_host(host) or not is_port or scheme not in ("", "grpc", *_PORTS):
        raise errors.UserError(
            "--server is host:port, e.g. localhost:8500, or with --rest an address such as "
            f"https://host/prefix; got {server!r}"
        )
    path = urllib.parse.quote((slash + path).rstrip("/"), safe="/%", errors="surrogateescape")
    return Address(f"{host}:{port}", tls=scheme == "https", prefix=path)


def _is_host(host: str) -> bool:
    """Return whether this can be a host's name or address."""
    try:
        return re.fullmatch(rb"[!-~]+", host.encode("idna")) is not None
    except UnicodeError:
        return False


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
        # No limits of size: the server has its own. A server that starts is found within a second.
        settings = [
            *(("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        if address.tls:
            credentials = grpc.ssl_channel_credentials(ca.encode() if ca else None)
            self._channel = grpc.secure_channel(address.netloc, credentials, options=settings)
        else:
            self._channel = grpc.insecure_channel(address.netloc, options=settings)
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
                details = answer[:200] or f"status {status} without a message"
        raise _error(_HTTP_STATUS.get(status, "UNKNOWN"), details, self._address, target)

    def close(self) -> None:
        """Each request has a connection of its own."""

    def _post(self, path: str, body: str, timeout: float, target: Target) -> tuple[int, str]:
        """Return the status and the text of the response; `timeout` is for all of it."""
        if self._tls:
            connection = http.client.HTTPSConnection(
                self._address, timeout=timeout, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(self._address, timeout=timeout)
        end = time.monotonic() + timeout
        try:
            connection.connect()
            with _time_limit(connection.sock, end - time.monotonic()):
                connection.request("POST", path, body, self._headers)
                response = connection.getresponse()
                return response.status, response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise _connection_error(error, self._address, target) from error
        finally:
            connection.close()


@contextlib.contextmanager
def _time_limit(connected: socket.socket, seconds: float) -> Iterator[None]:
    """End a socket's reads and writes and raise TimeoutError where the block takes longer.

    A socket's own time-out is for each of its operations.
    """
    is_late = threading.Event()

    def hang_up() -> None:
        is_late.set()
        with contextlib.suppress(OSError):  # closed meanwhile
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, hang_up)
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if not is_late.is_set():
            raise
    finally:
        timer.cancel()
    if is_late.is_set():
        raise TimeoutError


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
# Two statuses of HTTP for which gRPC has no name of its own.
_GAVE_UP, _TOO_LARGE = "GAVE_UP", "TOO_LARGE"
_HTTP_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: _GAVE_UP,
    412: "FAILED_PRECONDITION",
    413: _TOO_LARGE,
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: _GAVE_UP,
}


def _error(status: str, details: str, address: str, target: Target) -> errors.UserError:
    """Return one line that says what went wrong and what to do."""
    details = " ".join(details.split())
    if "Failed parsing HTTP/2" in details:
        return errors.UserError(f"{address} does not speak gRPC: is it the port of --rest?")
    if status == _TOO_LARGE or "larger than max" in details:
        return errors.UserError(f"too large for {address}, give a smaller --batch_size: {details}")
    if status == "RESOURCE_EXHAUSTED" or (status == "UNAVAILABLE" and "queue" in details):
        return Busy(
            f"the server at {address} is busy: give a smaller --in_flight, or the server a larger "
            f"--grpc_max_threads: {details}"
        )
    # Where a batch has a wrong input of another client, all its requests are refused.
    if status == "UNAVAILABLE" or "from different tasks" in details:
        return Unavailable(f"the server at {address} is not available: {details}")
    if status == "DEADLINE_EXCEEDED":
        return errors.UserError(
            f"no answer from {address} in time: give more --timeout_secs, or smaller requests"
        )
    if status == _GAVE_UP:
        return errors.UserError(
            f"{address} gave up: give the server a larger --rest_api_timeout_in_ms, or send "
            f"smaller requests: {details}"
        )
    if status == "NOT_FOUND":
        return errors.UserError(f"{address} serves no model {target}: {details}")
    if status in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return errors.UserError(
            f"{address} does not let you in ({status}: {details}): give --header=name=value"
        )
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
