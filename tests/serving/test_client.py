"""The client's own logic; over the wire in test_servers.py."""

import contextlib
import http.server
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from concurrent import futures

import grpc
import pytest

from t2t_lite import errors
from t2t_lite.serving import client, protocol


class _Clock:
    """Time that passes only in sleep."""

    def __init__(self):
        self.seconds = 0.0
        self.delays = []

    def __call__(self):
        return self.seconds

    def sleep(self, delay):
        self.delays.append(delay)
        self.seconds += delay


def _retry(send, clock, **changes):
    settings = {"timeout": 60.0, "retries": 5, **changes}
    return client.retry(send, clock=clock, sleep=clock.sleep, **settings)


def _fails(times, clock, cost=0.0, error=None):
    calls = []

    def send(left):
        calls.append(left)
        clock.seconds += cost
        if len(calls) <= times:
            raise error or client.Unavailable("down")
        return "answer"

    return send, calls


def test_delays_double_and_vary_until_it_gives_up_with_one_line():
    clock = _Clock()
    send, calls = _fails(4, clock)
    assert _retry(send, clock) == "answer"
    assert len(calls) == 5
    for delay, longest in zip(clock.delays, (0.1, 0.2, 0.4, 0.8)):
        assert longest / 2 <= delay <= longest
    send, calls = _fails(9, clock)
    with pytest.raises(errors.UserError, match=r"^down \(after 3 tries\)$"):
        _retry(send, clock, retries=2)
    assert len(calls) == 3


def test_deadline_holds_for_all_tries_together():
    clock = _Clock()
    send, calls = _fails(99, clock, cost=0.4)
    with pytest.raises(errors.UserError, match="down"):
        _retry(send, clock, timeout=1.0, retries=99)
    assert clock.seconds <= 1.0 + 0.4
    assert calls[0] == 1.0
    assert calls[1] < 0.6


def test_other_errors_are_not_retried():
    clock = _Clock()
    send, calls = _fails(9, clock, error=errors.UserError("no such model"))
    with pytest.raises(errors.UserError, match="no such model"):
        _retry(send, clock)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("localhost:8500", ("localhost:8500", False, "")),
        ("[::1]:8500", ("[::1]:8500", False, "")),
        ("https://models.example.org", ("models.example.org:443", True, "")),
        ("https://models.example.org:8443/mt/v2/", ("models.example.org:8443", True, "/mt/v2")),
        ("http://proxy/mt", ("proxy:80", False, "/mt")),
        ("http://proxy/\udce9 %20/", ("proxy:80", False, "/%E9%20%20")),
    ],
)
def test_addresses(server, address):
    assert tuple(client.parse_address(server)) == address


@pytest.mark.parametrize(
    "server",
    [
        *("", "localhost", ":8500", "localhost:", "a:b", "a:0", "a:70000", "ftp://a:8500"),
        *("https://", "a b:8500", "a..b:8500", "\udce9:8500", f"{'a' * 64}:8500"),
    ],
)
def test_what_is_no_address(server):
    with pytest.raises(errors.UserError, match="host:port"):
        client.parse_address(server)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"server": "host:1/mt"}, "gRPC has no paths"),
        ({"ca_file": "nowhere.pem"}, "--ca_file nowhere.pem is not a file of certificates"),
        ({"headers": {"a b": "c"}}, "not a header's name"),
        ({"headers": {"a": "c\nd"}}, "not plain ASCII"),
        ({"headers": {"grpc-a": "c"}}, "gRPC does not take this name"),
        ({"version": 99999999999999999999}, "--version is from 0 to 9223372036854775807"),
        ({"version": -1}, "--version is from 0 to"),
        ({"name": "caf\udce9"}, "a name on the server is UTF-8"),
        ({"version_label": "\udce9"}, "a name on the server is UTF-8"),
    ],
)
def test_what_no_connection_can_be_made_with(changes, says):
    with pytest.raises(errors.UserError, match=says) as caught:
        client.Client(**{"server": "host:1", "name": "m", **changes})
    assert "\n" not in str(caught.value)


def _tensors(texts):
    """Return the answer of serving_default with these outputs."""
    count = len(texts)
    flags = {"finished": [True] * count, "truncated": [False] * count}
    return {"outputs": texts, "scores": [0.0] * count, **flags}


class _Echo:
    """A transport that answers in reverse order and notes how many requests wait at a time."""

    def __init__(self, wait_for):
        self._barrier = threading.Barrier(wait_for, timeout=10)
        self.sizes = []

    def predict(self, target, inputs, timeout):
        self._barrier.wait()
        texts = inputs["inputs"]
        self.sizes.append(len(texts))
        return _tensors([f"<{text}>" for text in texts])

    def close(self):
        pass


def test_stream_keeps_the_order_with_several_in_flight(monkeypatch):
    with client.Client("localhost:1", "m", in_flight=4, batch_size=3) as translator:
        echo = _Echo(wait_for=4)  # passes only if four requests are there at the same time
        monkeypatch.setattr(translator, "_transport", echo)
        answers = list(translator.stream(str(i) for i in range(35)))
    assert [answer.text for answer in answers] == [f"<{i}>" for i in range(35)]
    assert sorted(echo.sizes) == [2, *[3] * 11]


class _Small:
    """A transport of a server with room for so many requests; others are refused at once."""

    def __init__(self, size):
        self._room = threading.Semaphore(size)
        self.num_refused = 0

    def predict(self, target, inputs, timeout):
        if not self._room.acquire(blocking=False):
            self.num_refused += 1
            raise client._error("RESOURCE_EXHAUSTED", "Server Threadpool Exhausted", "s:1", target)
        time.sleep(0.01)
        self._room.release()
        return _tensors(inputs["inputs"])

    def close(self):
        pass


@pytest.mark.parametrize("in_flight", [8, 16])
def test_a_server_with_less_room_gets_fewer_requests_at_a_time(monkeypatch, in_flight):
    with client.Client("localhost:1", "m", in_flight=in_flight, retries=0) as translator:
        small = _Small(size=3)
        monkeypatch.setattr(translator, "_transport", small)
        texts = [str(number) for number in range(400)]
        assert [answer.text for answer in translator.stream(texts)] == texts
    assert 0 < small.num_refused < 8 * in_flight  # only at first


@pytest.mark.parametrize("rest", [False, True])
def test_a_request_has_rows_and_texts(rest):
    """TensorFlow Serving never answers what has no rows."""
    with client.Client("localhost:1", "m", rest=rest) as translator:
        assert translator.translate([]) == []
        with pytest.raises(errors.UserError, match="at least one text"):
            translator.predict({"inputs": []})
        with pytest.raises(TypeError, match=r"expected a text, got \[5, 1\]"):
            translator.predict({"ids": [[5, 1]]})


@pytest.mark.parametrize("method", ["translate", "stream"])
def test_one_text_is_no_list_of_texts(method):
    with (
        client.Client("localhost:1", "m") as translator,
        pytest.raises(TypeError, match="expected a list of texts, got one text"),
    ):
        getattr(translator, method)("a dog")


@pytest.mark.parametrize(
    ("status", "details", "says"),
    [
        ("DEADLINE_EXCEEDED", "", "--timeout_secs"),
        (client._HTTP_STATUS[504], "Timed out", "--rest_api_timeout_in_ms"),
        ("RESOURCE_EXHAUSTED", "larger than max", "--batch_size"),
        (client._HTTP_STATUS[413], "<html>", "--batch_size"),
        ("INVALID_ARGUMENT", "size 9 is larger than maximum input batch size 8", "--batch_size"),
        ("UNAUTHENTICATED", "who?", "--header"),
        ("INTERNAL", "two\n lines", "answers INTERNAL: two lines"),
    ],
)
def test_errors_say_what_to_do(status, details, says):
    target = client.Target(name="m", signature_name="x")
    error = client._error(status, details, "host:1", target)
    assert says in str(error)
    assert "\n" not in str(error)
    assert not isinstance(error, client.Unavailable)


@pytest.mark.parametrize(
    ("status", "details", "kind"),
    [
        ("RESOURCE_EXHAUSTED", "Run() timeout exceeded while waiting in batching queue", "Busy"),
        ("RESOURCE_EXHAUSTED", "Server Threadpool Exhausted", "Busy"),
        (client._HTTP_STATUS[429], "slow down", "Busy"),
        (
            "UNAVAILABLE",
            "The batch scheduling queue to which this task is full",
            "Busy",
        ),
        ("UNAVAILABLE", "Connection refused", "Unavailable"),
        ("FAILED_PRECONDITION", "Tensors ... from different tasks have different", "Unavailable"),
    ],
)
def test_what_is_tried_again(status, details, kind):
    error = client._error(status, details, "host:1", client.Target(name="m"))
    assert type(error).__name__ == kind
    assert kind == "Unavailable" or "--in_flight" in str(error)


@pytest.mark.parametrize("start", [b"HTTP/1.0 200 OK\r\nA: ", b"HTTP/1.0 200 OK\r\n\r\n"])
def test_the_time_out_is_for_a_whole_answer(start):
    """A server that writes a letter now and then, in its headers or in the text."""

    def write(connection):
        with contextlib.suppress(OSError), connection:
            connection.sendall(start)
            while True:
                connection.sendall(b"x")
                time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: write(server.accept()[0]))
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        begin = time.monotonic()
        with (
            client.Client(address, "m", rest=True, timeout=0.5) as translator,
            pytest.raises(errors.UserError, match="in time: give more --timeout_secs"),
        ):
            translator.translate(["a"])
        assert time.monotonic() - begin < 2
        thread.join()


# TLS, headers and prefixes


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return the files of a key and of its certificate for localhost, signed by itself."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


@contextlib.contextmanager
def _rest_server(certificate):
    """Yield a REST server's port and the paths and headers that it is asked with."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, dict(self.headers)))
            data = json.dumps({"outputs": _tensors(["x"])}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format, *args):
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port, asked
    server.shutdown()
    server.server_close()


def test_rest_by_tls_with_headers_behind_a_prefix(certificate):
    with _rest_server(certificate) as (port, asked):
        with client.Client(
            f"https://localhost:{port}/mt",
            "m/x",
            rest=True,
            ca_file=str(certificate[1]),
            headers={"Authorization": "Bearer abc=="},
        ) as translator:
            assert translator.translate(["a"])[0].text == "x"
        ((path, headers),) = asked
        assert path == "/mt/v1/models/m%2Fx:predict"
        assert headers["authorization"] == "Bearer abc=="
        with (
            client.Client(f"https://localhost:{port}", "m", rest=True) as stranger,
            pytest.raises(errors.UserError, match=r"no TLS with .*--ca_file"),
        ):
            stranger.translate(["a"])


def test_grpc_by_tls_with_headers(certificate):
    asked = []

    def answer(request, context):
        asked.extend(context.invocation_metadata())
        response = protocol.PredictResponse()
        types = {"outputs": 7, "scores": 1, "finished": 10, "truncated": 10}  # tensorflow.DataType
        for name, dtype in types.items():
            tensor = response.outputs.add(key=name).value
            tensor.dtype = dtype
            tensor.tensor_shape.dim.add(size=1)
        response.outputs[0].value.string_val.append(b"x")
        return response

    predict = grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=protocol.PredictRequest.FromString,
        response_serializer=protocol.PredictResponse.SerializeToString,
    )
    server = grpc.server(futures.ThreadPoolExecutor(1))
    handlers = grpc.method_handlers_generic_handler(protocol.SERVICE, {"Predict": predict})
    server.add_generic_rpc_handlers([handlers])
    pair = [path.read_bytes() for path in certificate]
    port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([tuple(pair)]))
    server.start()
    address = f"localhost:{port}"
    ca_file, headers = str(certificate[1]), {"X-Team": "mt=1"}
    with client.Client(address, "m", ca_file=ca_file, headers=headers) as translator:
        assert translator.translate(["a"])[0].text == "x"
    assert ("x-team", "mt=1") in [(name, value) for name, value in asked]
    with (
        client.Client(address, "m", tls=True, retries=0) as stranger,
        pytest.raises(errors.UserError, match="not available"),
    ):
        stranger.translate(["a"])
    server.stop(None)
