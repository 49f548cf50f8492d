"""scripts/nginx.conf before a stub of TensorFlow Serving: hostile requests do not come through."""

import gzip
import http.client
import http.server
import json
import pathlib
import random
import shutil
import socket
import subprocess
import threading
import time
from concurrent import futures

import pytest

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"
PREDICT = "/v1/models/tiny:predict"
OTHERS = ["/v1/models/tiny:classify", "/v1/models/a/../tiny:predict/", "/v1/models/a b:predict"]
OTHERS += [
    "/v1/models/tiny/versions/x:predict",
    "/monitoring/prometheus/metrics",
    "/",
    PREDICT + "x",
]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    """Return nginx's port and the list of what reaches the stub: (method, path, body)."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    reached = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reached.append((self.command, self.path, body))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

        def log_message(self, format, *args):
            pass

    class Stub(http.server.ThreadingHTTPServer):
        request_queue_size = 128

    stub = Stub(("127.0.0.1", 0), Handler)
    threading.Thread(target=stub.serve_forever, daemon=True).start()
    folder = tmp_path_factory.mktemp("nginx")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    config = (SCRIPTS / "nginx.conf").read_text()
    for old, new in (("127.0.0.1:8080", f"127.0.0.1:{port}"), (":8501", f":{stub.server_port}")):
        assert old in config
        config = config.replace(old, new)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(config.replace("http {", f"http {{ access_log off; {paths}"))
    shutil.copy(SCRIPTS / "nginx.js", folder)
    command = [program, "-e", "stderr", "-c", str(folder / "nginx.conf")]
    command += ["-g", f"daemon off; pid {folder}/pid;"]
    try:
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log)
    except OSError:
        pytest.skip("needs nginx: apt-get install nginx libnginx-mod-http-js")
    while process.poll() is None and not _is_open(port):
        time.sleep(0.05)
    if process.poll() is not None:
        stub.shutdown()
        pytest.skip(f"nginx does not start: {(folder / 'log').read_text()}")
    yield port, reached
    process.terminate()
    process.wait()
    stub.shutdown()


def _is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _send(connection, method, path, body, headers=()):
    try:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        response.read()
        return response.status
    except (OSError, http.client.HTTPException):
        connection.close()
        if len(body or "") > 1_000_000:  # nginx hangs up before the end
            return 413
        raise


def _text(draw):
    text = draw.choice(
        ["a dog runs", "", "\u2603 \U0001f415", '"\\', "\n\0", "[[[[{", "x" * 30_000]
    )
    return {"b64": "YQ=="} if draw.random() < 0.1 else text


def _well_formed(draw, mark):
    """Return a request that a client may send; it holds the mark."""
    texts = [f"mark {mark}.", *(_text(draw) for _ in range(draw.choice([0, 1, 20])))]
    name = draw.choice(["inputs", "ids"])
    request = draw.choice(
        [
            {"instances": texts},
            {"instances": [{name: text} for text in texts]},
            {"instances": [{"inputs": text, "targets": "b"} for text in texts]},
            {"inputs": texts},
            {"inputs": {name: texts}},
        ]
    )
    if draw.random() < 0.5:
        request["signature_name"] = draw.choice(["nbest", "serving_default"])
    return json.dumps(request, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 4]))


def _hostile(draw):
    """Return a body, its headers, and whether it may be sent on once it is written anew."""
    deep = draw.choice([5, 40, 5_000, 50_000])
    nested = draw.choice(["[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep])
    bad = draw.choice(
        ["1", "null", "true", "[]", '["x"]', "{}", '{"a": "b"}', '{"b64": 1}', nested]
    )
    bodies = [
        nested,
        f'{{"instances": {nested}}}',
        f'{{"instances": ["a", {bad}]}}',
        f'{{"inputs": {{"inputs": ["a", {bad}]}}}}',
        f'{{"instances": [{{"inputs": {bad}}}]}}',
        f'{{"inputs": ["a"], "more": {bad}}}',
        f'{{"signature_name": [{bad}], "inputs": ["a"]}}',
        *('{"inputs": []}', '{"instances": []}', '{"inputs": {"inputs": []}}', '{"inputs": {}}'),
        *(
            "",
            "{}",
            "[]",
            "null",
            '"a"',
            '{"instances": ["a"], "inputs": ["a"]}',
            '{"inputs": ["a"',
        ),
        *('{"inputs": ["a"],}', '{inputs: ["a"]}', '{"inputs": ["\ud800"]} x', "\0", "NaN"),
        json.dumps({"inputs": ["a"] * draw.choice([1025, 5000])}),
        '{"inputs": [], "inputs": ["a"]}',
        f'{{"inputs": {nested}, "inputs": ["a"]}}',
    ]
    if draw.random() < 0.01:
        return json.dumps({"inputs": ["x" * 1_100_000]}).encode(), {}
    body = draw.choice(bodies).encode("utf-8", "surrogatepass")
    if draw.random() < 0.1:
        return gzip.compress(body), {"Content-Encoding": "gzip"}
    return body, {}


def _is_harmless(body):
    """Return whether TensorFlow Serving answers this for each of its texts."""

    def pairs(items):
        assert len({key for key, _ in items}) == len(items), "a key twice"
        return dict(items)

    request = json.loads(body, object_pairs_hook=pairs)
    rows = request.get("instances") or request["inputs"]
    columns = list(rows.values()) if isinstance(rows, dict) else [rows]
    values = [value for column in columns for value in column]
    for _ in range(2):  # named columns of a row, and base 64
        values = [v for x in values for v in (x.values() if isinstance(x, dict) else [x])]
    assert set(request) <= {"instances", "inputs", "signature_name"}
    assert len(request.keys() & {"instances", "inputs"}) == 1
    assert isinstance(request.get("signature_name", ""), str)
    return all(0 < len(column) <= 1024 for column in columns) and all(
        isinstance(value, str) for value in values
    )


@pytest.mark.parametrize("count", [1_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_only_what_is_harmless_comes_through(proxy, count):
    port, reached = proxy
    reached.clear()

    def ask(seed):
        draw = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        marks = []
        for number in range(count // 4):
            if number % 500 == 0:
                connection.close()  # after 1,000 requests nginx does
            if draw.random() < 0.3:
                marks.append(f"{seed}-{number}")
                body = _well_formed(draw, marks[-1]).encode()
                chunks = iter([body]) if draw.random() < 0.2 else body  # in chunks, sometimes
                assert _send(connection, "POST", PREDICT, chunks) == 200
            elif draw.random() < 0.1:
                method, path = draw.choice(["GET", "PUT", "DELETE"]), PREDICT
                if draw.random() < 0.5:
                    method, path = "POST", draw.choice(OTHERS).replace(" ", "%20")
                assert _send(connection, method, path, b'{"inputs": ["a"]}') in (403, 404)
            else:
                body, headers = _hostile(draw)
                status = _send(connection, "POST", PREDICT, body, headers.items())
                assert status in (400, 413) or b'"inputs": ["a"]' in body
        connection.close()
        return marks

    with futures.ThreadPoolExecutor(4) as pool:
        marks = {mark for some in pool.map(ask, range(4)) for mark in some}
    assert all((method, path) == ("POST", PREDICT) for method, path, _ in reached)
    assert all(_is_harmless(body) for *_, body in reached)
    found = {body.partition(b"mark ")[2].partition(b".")[0].decode() for *_, body in reached}
    assert marks == found - {""}


def test_a_probe_may_ask_whether_the_model_is_ready(proxy):
    port, reached = proxy
    reached.clear()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    assert _send(connection, "GET", "/v1/models/tiny", None) == 200
    assert _send(connection, "POST", "/v1/models/tiny", b"[" * 50_000) == 403
    connection.close()
    assert reached == [("GET", "/v1/models/tiny", b"")]
