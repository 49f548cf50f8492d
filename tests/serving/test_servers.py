"""The client and documented requests against the fake and, where there is one, TensorFlow Serving.

TENSORFLOW_MODEL_SERVER names its binary; or tensorflow_model_server is on the PATH; or Docker runs
and has the image of scripts/serve.sh. That script starts it, so that its flags are tested too.
"""

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from concurrent import futures
from typing import Any

import fake_serving
import numpy as np
import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.serving import client

SERVE = pathlib.Path(__file__).parents[2] / "scripts" / "serve.sh"
TINY = "/v1/models/tiny"
PREDICT = f"{TINY}:predict"
DOG = base64.b64encode(b"a dog runs").decode()
IDS = ["5 6 1", "7"]


@contextlib.contextmanager
def _model_server(export_dir, log):
    """Yield the ports of a TensorFlow Serving; skip where there is none."""
    ports = _free_port(), _free_port()
    environment = {**os.environ, "GRPC_PORT": str(ports[0]), "REST_PORT": str(ports[1])}
    binary = os.environ.get("TENSORFLOW_MODEL_SERVER")
    if binary:
        environment["TF_SERVING_BINARY"] = binary
    arguments = ["--labels", "stable=1", str(export_dir), "tiny"]
    if not binary and not shutil.which("tensorflow_model_server"):
        printed = subprocess.run(
            ["bash", str(SERVE), "--print", *arguments], env=environment, capture_output=True
        )
        image = re.search(r"\S*tensorflow/serving\S*", printed.stdout.decode())
        if image is None:
            pytest.skip("needs TENSORFLOW_MODEL_SERVER, tensorflow_model_server or Docker")
        if subprocess.run(["docker", "image", "inspect", image[0]], capture_output=True).returncode:
            pytest.skip(
                f"Docker does not run or lacks the image {image[0]}: docker pull {image[0]}"
            )
    with log.open("wb") as file:
        process = subprocess.Popen(
            ["bash", str(SERVE), *arguments], env=environment, stdout=file, stderr=file
        )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            assert process.poll() is None, log.read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", ports[1])) == 0:
                    break
            time.sleep(0.2)
        yield ports
    finally:
        process.terminate()
        process.wait(30)


def _free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


@pytest.fixture(scope="module", params=["fake", "TensorFlow Serving"])
def ports(request, export_dir, tmp_path_factory):
    """Return the gRPC and the REST port of a server of "tiny", whose version 1 is "stable"."""
    if request.param == "fake":
        with fake_serving.Server(export_dir, "tiny", label="stable") as server:
            yield server.port, server.rest_port
    else:
        with _model_server(export_dir, tmp_path_factory.mktemp("server") / "log") as found:
            yield found


@pytest.fixture(params=["gRPC", "REST"])
def connect(ports, request):
    """Return a function that makes a Client of either kind."""
    rest = request.param == "REST"

    def make(name="tiny", **changes):
        return client.Client(
            f"127.0.0.1:{ports[rest]}", name, rest=rest, **{"retries": 9, **changes}
        )

    return make


# Clients


def test_answers_are_the_translators(connect, model, hostile):
    texts = [*tiny_run.SENTENCES, "", *hostile.values()]
    readable = [t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in texts]
    with connect(in_flight=4, batch_size=5) as translator:
        answers, streamed = translator.translate(texts), list(translator.stream(texts))
    assert [answer.text for answer in streamed] == [answer.text for answer in answers]
    for answer, expected in zip(answers, model.translate(readable), strict=True):
        assert answer.text == expected.text
        assert answer.score == pytest.approx(expected.score, abs=2e-5)
        assert answer.truncated == expected.truncated
        assert answer.finished == expected.finished


@pytest.mark.parametrize("in_flight", [8, 16])
def test_a_small_server_loses_no_line(export_dir, model, in_flight):
    """gRPC of TensorFlow Serving has 4 threads a core: on two cores as many as the client asks."""
    texts = [f"{i % 7} dogs" if i % 10 == 0 else " " for i in range(3000)]  # blank ones are quick
    expected = {text: model.translate([text])[0].text for text in set(texts)}
    with (
        fake_serving.Server(export_dir, "tiny", max_threads=in_flight // 2) as server,
        client.Client(f"127.0.0.1:{server.port}", "tiny", in_flight=in_flight) as translator,
    ):
        answers = list(translator.stream(texts))
    assert [answer.text for answer in answers] == [expected[text] for text in texts]


def test_nothing_sent_nothing_answered(connect):
    with connect() as translator:
        assert translator.translate([]) == []
        assert list(translator.stream([])) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "other"}, "serves no model 'other'"),
        ({"version_label": "canary"}, "Unrecognized servable version label"),
        ({"signature_name": "nobest"}, "has no signature 'nobest'"),
        ({"signature_name": "tokenize"}, "not outputs and scores"),
        ({"signature_name": "score"}, "targets"),
        ({"timeout": 0.001}, "in time"),
    ],
)
def test_errors_are_one_clear_line(connect, changes, says):
    with connect(**changes) as translator, pytest.raises(errors.UserError) as caught:
        translator.translate(["a dog"] * 50)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_rows_are_refused(connect):
    with connect() as translator:
        assert len(translator.translate([""] * 1024)) == 1024
        with pytest.raises(errors.UserError, match="give a smaller --batch_size"):
            translator.translate([""] * 1025)


def test_wrong_port_is_named(ports):
    for rest, port in ((True, ports[0]), (False, ports[1])):
        with (
            client.Client(f"127.0.0.1:{port}", "tiny", rest=rest) as translator,
            pytest.raises(errors.UserError, match="is it the"),
        ):
            translator.translate(["a"])


@pytest.mark.parametrize("rest", [False, True])
def test_a_client_waits_for_a_server_that_starts_later(export_dir, rest):
    port = _free_port()
    answers = []

    def ask():
        with client.Client(f"127.0.0.1:{port}", "tiny", rest=rest, retries=9) as translator:
            answers.extend(translator.translate(["a dog runs"]))

    thread = threading.Thread(target=ask)
    thread.start()
    with fake_serving.Server(export_dir, "tiny", **{"rest_port" if rest else "port": port}):
        thread.join()
    assert len(answers) == 1


def test_ids_of_all_widths_share_batches_and_get_their_own_answers(ports, model):
    """Requests at the same time; the malformed among them fail alone."""
    texts = [*tiny_run.SENTENCES, "two dogs run " * 4, "the park"] * 6
    tokens = [" ".join(map(str, model.vocabulary.encode(text))) for text in texts]
    # The end may be marked, and more may follow.
    rows = [row + ("", " 1", " 1 0 0", " 1 9 1")[i % 4] for i, row in enumerate(tokens)]
    expected = {text: model.translate([text])[0] for text in set(texts)}

    def ask(request):
        place, row = request
        rest = place % 3 == 0
        address = f"127.0.0.1:{ports[rest]}"
        settings = {"signature_name": "from_ids", "rest": rest}
        with client.Client(address, "tiny", **settings) as ids:
            return ids.predict({"ids": ["x", row]})

    def ask_badly(_):
        with (
            client.Client(f"127.0.0.1:{ports[0]}", "tiny", signature_name="score") as score,
            pytest.raises(errors.UserError, match="0th-dimension"),
        ):
            score.predict({"inputs": ["a"], "targets": ["b", "c"]})

    with futures.ThreadPoolExecutor(len(rows) + 5) as pool:
        refused, answers = pool.map(ask_badly, range(5)), list(pool.map(ask, enumerate(rows)))
    assert len(list(refused)) == 5
    for text, answer in zip(texts, answers, strict=True):
        translation = expected[text]
        bad, ids = answer["ids"]
        assert bad == ""
        assert model.vocabulary.decode(list(map(int, ids.split()))) == translation.text
        assert answer["truncated"] == [True, False]
        assert answer["finished"] == [True, translation.finished]
        np.testing.assert_allclose(answer["scores"], [0, translation.score], atol=2e-5)


def test_wrong_requests_of_others_cost_the_client_no_line(ports, connect):
    """A batch with one of them fails as a whole, before the model sees it."""
    stopped = threading.Event()

    def ask_badly():
        while not stopped.wait(0.01):
            assert _ask(ports, PREDICT, {"instances": [["a"]]})[0] == 400

    texts = ["a dog", " "] * 60
    with futures.ThreadPoolExecutor(1) as pool, connect() as translator:
        bad = pool.submit(ask_badly)
        try:
            answers = list(translator.stream(texts))
        finally:
            stopped.set()
        bad.result()
    assert len(answers) == len(texts)
    assert not any(answer.text for answer in answers[1::2])


# Documented requests by REST


def _ask(ports, path, body) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    address = f"http://127.0.0.1:{ports[1]}{path}"
    try:
        with urllib.request.urlopen(address, json.dumps(body).encode()) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize(
    ("path", "body", "count"),
    [
        (PREDICT, {"instances": ["a dog runs", "he sleeps"]}, 2),
        (PREDICT, {"instances": [{"inputs": "a dog"}]}, 1),
        (PREDICT, {"instances": [{"b64": DOG}, "a"]}, 2),
        (f"{TINY}/versions/1:predict", {"instances": ["a"]}, 1),
        (f"{TINY}/labels/stable:predict", {"instances": ["a"]}, 1),
        (PREDICT, {"signature_name": "nbest", "instances": ["a dog"]}, 1),
        (PREDICT, {"signature_name": "from_ids", "instances": IDS}, 2),
        (PREDICT, {"signature_name": "score", "instances": [{"inputs": "a", "targets": "b"}]}, 1),
        (PREDICT, {"inputs": {"inputs": ["a dog runs"]}}, None),
        (PREDICT, {"signature_name": "score", "inputs": {"inputs": ["a"], "targets": ["a"]}}, None),
    ],
)
def test_what_is_answered(ports, path, body, count):
    status, answer = _ask(ports, path, body)
    assert status == 200, answer
    assert list(answer) == (["outputs"] if count is None else ["predictions"])
    assert count in (None, len(answer.get("predictions", [])))


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/V1/Models/tiny:Predict", {"instances": ["a"]}, "Malformed request"),
        (f"{PREDICT}?x=1", {"instances": ["a"]}, "Malformed request"),
        (PREDICT, {"instances": [["a"]]}, "not compatible with expected shape [?]"),
        (PREDICT, {"instances": [5]}, "expected type"),
        (PREDICT, {"signature_name": "from_ids", "instances": [[5, 1]]}, "expected type"),
    ],
)
def test_what_is_refused(ports, path, body, says):
    status, answer = _ask(ports, path, body)
    assert status == 400
    assert says in answer["error"]


def test_the_status_of_a_model(ports):
    with urllib.request.urlopen(f"http://127.0.0.1:{ports[1]}{TINY}") as response:
        (status,) = json.loads(response.read())["model_version_status"]
    assert (status["version"], status["state"]) == ("1", "AVAILABLE")
