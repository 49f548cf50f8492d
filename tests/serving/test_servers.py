"""The same requests to the loopback server and, where there is one, to a real TensorFlow Serving.

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
from typing import Any

import numpy as np
import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.serving import client, loopback, served_model

pytestmark = pytest.mark.integration
SERVE = pathlib.Path(__file__).parents[2] / "scripts" / "serve.sh"
LABELS = "stable=1"


@contextlib.contextmanager
def _loopback(export_dir):
    model = served_model.Model(export_dir, labels={"stable": 1}, num_threads=2, warm_up=False)
    with loopback.Server(model, "tiny") as server:
        yield server.port, server.rest_port


@contextlib.contextmanager
def _model_server(export_dir, log):
    """Yield the ports of a TensorFlow Serving; skip where there is none."""
    ports = _free_port(), _free_port()
    environment = {**os.environ, "GRPC_PORT": str(ports[0]), "REST_PORT": str(ports[1])}
    binary = os.environ.get("TENSORFLOW_MODEL_SERVER")
    if binary:
        environment["TF_SERVING_BINARY"] = binary
    command = ["bash", str(SERVE), "--labels", LABELS, str(export_dir), "tiny"]
    if not binary and not shutil.which("tensorflow_model_server"):
        docker, image = shutil.which("docker"), _image(command, environment)
        if docker is None:
            pytest.skip("needs TENSORFLOW_MODEL_SERVER, tensorflow_model_server or Docker")
        there = subprocess.run(
            [docker, "image", "inspect", image], capture_output=True, check=False
        )
        if there.returncode:
            pytest.skip(f"Docker does not run or lacks the image {image} (docker pull {image})")
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
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


def _image(command, environment):
    """Return the image that serve.sh would take."""
    printed = subprocess.run(
        [*command[:2], "--print", *command[2:]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"\S*tensorflow/serving\S*", printed.stdout)
    return found[0] if found else "tensorflow/serving"


def _free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


@pytest.fixture(scope="module", params=["loopback", "TensorFlow Serving"])
def ports(request, export_dir, tmp_path_factory):
    """Return the gRPC and the REST port of a server of "tiny", whose version 1 is "stable"."""
    log = tmp_path_factory.mktemp("server") / "log"
    serving = _loopback(export_dir)
    if request.param != "loopback":
        serving = _model_server(export_dir, log)
    with serving as found:
        yield found


def _ask(ports, method, path, body=None) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{ports[1]}{path}", body, method=method)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        text = error.read()
        return error.code, json.loads(text) if text.startswith(b"{") else {"error": text.decode()}


TINY = "/v1/models/tiny"
PREDICT = f"{TINY}:predict"
DOG = base64.b64encode(b"a dog runs").decode()
IDS = [[5, 6, 1], [7, 1, 0]]
ANSWERED = {
    "rows": (PREDICT, {"instances": ["a dog runs", "he sleeps"]}, "predictions", 2),
    "a row": (PREDICT, {"instances": ["a dog runs"]}, "predictions", 1),
    "a column": (PREDICT, {"inputs": ["a dog runs", "he sleeps"]}, "outputs", None),
    "a named column": (PREDICT, {"inputs": {"inputs": ["a dog runs"]}}, "outputs", None),
    "rows with names": (PREDICT, {"instances": [{"inputs": "a dog"}]}, "predictions", 1),
    "base 64": (PREDICT, {"instances": [{"b64": DOG}, "a"]}, "predictions", 2),
    "base 64 with a name": (PREDICT, {"instances": [{"inputs": {"b64": DOG}}]}, "predictions", 1),
    "a blank row": (PREDICT, {"instances": [""]}, "predictions", 1),
    "by version": (f"{TINY}/versions/1:predict", {"instances": ["a"]}, "predictions", 1),
    "by label": (f"{TINY}/labels/stable:predict", {"instances": ["a"]}, "predictions", 1),
    "what follows": (PREDICT, b'{"instances": ["a"]} and more', "predictions", 1),
    "any case": ("/V1/Models/tiny:Predict", {"instances": ["a"]}, "predictions", 1),
    "score by rows": (
        PREDICT,
        {"signature_name": "score", "instances": [{"inputs": "a dog", "targets": "a"}]},
        "predictions",
        1,
    ),
    "score by columns": (
        PREDICT,
        {"signature_name": "score", "inputs": {"inputs": ["a dog"], "targets": ["a"]}},
        "outputs",
        None,
    ),
    "ids by rows": (PREDICT, {"signature_name": "from_ids", "instances": IDS}, "predictions", 2),
    "ids by columns": (PREDICT, {"signature_name": "from_ids", "inputs": IDS}, "outputs", None),
    "ids with a name": (
        PREDICT,
        {"signature_name": "from_ids", "instances": [{"ids": [5, 1]}]},
        "predictions",
        1,
    ),
    "nbest": (PREDICT, {"signature_name": "nbest", "instances": ["a dog"]}, "predictions", 1),
    "1,024 rows": (PREDICT, {"instances": [""] * 1024}, "predictions", 1024),
}


@pytest.mark.parametrize("case", ANSWERED)
def test_what_is_answered(ports, case):
    path, body, key, count = ANSWERED[case]
    status, answer = _ask(ports, "POST", path, body)
    assert status == 200, answer
    assert list(answer) == [key]
    assert count in (None, len(answer[key]))


PAIR = {"inputs": "a", "targets": "b"}
REFUSED = {
    "a string for rows": ({"instances": "A dog runs."}, "Expecting 'instances' to be an list"),
    "a string for a column": ({"inputs": "A dog runs."}, "at least one dimension"),
    "a number for a text": ({"instances": [5]}, "is not of expected type: string"),
    "null for a text": ({"inputs": [None]}, "Null is not of expected type: string"),
    "a text for an id": (
        {"signature_name": "from_ids", "inputs": [["5"]]},
        "is not of expected type: int32",
    ),
    "half an id": ({"signature_name": "from_ids", "inputs": [[5.5, 1]]}, "expected type: int32"),
    "an id too large": (
        {"signature_name": "from_ids", "inputs": [[2**31, 1]]},
        "expected type: int32",
    ),
    "ids of two widths": (
        {"signature_name": "from_ids", "instances": [[5, 1], [5, 6, 1]]},
        "Failed to process element: 1 of 'instances' list. Error: .*Expecting tensor size: 2 but",
    ),
    "columns of two widths": (
        {"signature_name": "from_ids", "inputs": [[5, 1], [5, 6, 1]]},
        "Encountered list at unexpected size: 3 at level: 1 expected size: 2",
    ),
    "lists too deep": ({"inputs": ["a", ["b"]]}, "Encountered list at unexpected level: 1"),
    "lists not deep enough": ({"inputs": [["a"], "b"]}, "found at incorrect level: 2"),
    "no rows": ({"instances": []}, "No values in 'instances' array"),
    "neither": ({}, "Missing 'inputs' or 'instances' key"),
    "both": ({"instances": ["a"], "inputs": ["a"]}, "expecting only one of"),
    "no JSON": (b"instances=a", "JSON Parse error"),
    "half JSON": (b'{"instances": ["a"', "JSON Parse error"),
    "no body": (b"", "JSON Parse error: The document is empty"),
    "no object": (b"[1]", "Is not object"),
    "half a surrogate pair": (b'{"instances": ["\\ud800"]}', "surrogate pair"),
    "no base 64": ({"instances": [{"b64": "?"}]}, "Unable to base64 decode"),
    "an object in a row": ({"inputs": [{"text": "a"}]}, "not formatted correctly for base64"),
    "an unknown input": ({"instances": [{"text": "a"}]}, "does not have named input: text"),
    "rows of two kinds": (
        {"instances": [{"inputs": "a"}, "b"]},
        "Expecting object but got list at item 1",
    ),
    "rows of two other kinds": (
        {"instances": ["b", {"inputs": "a"}]},
        "Expecting value/list but got object at item 1",
    ),
    "half a row": (
        {"signature_name": "score", "instances": [PAIR, {"inputs": "a"}]},
        "Failed to process element: 1 of 'instances' list. .* keys must be equal to: inputs,t",
    ),
    "plain rows of two inputs": (
        {"signature_name": "score", "instances": ["a"]},
        "instances is a plain list, but expecting list of objects",
    ),
    "a plain column of two inputs": (
        {"signature_name": "score", "inputs": ["a"]},
        "inputs is a plain value/list, but expecting an object",
    ),
    "a column missing": (
        {"signature_name": "score", "inputs": {"inputs": ["a"]}},
        "Missing named input: targets in 'inputs' object",
    ),
    "columns of two lengths": (
        {"signature_name": "score", "inputs": {"inputs": ["a"], "targets": ["b", "c"]}},
        "must have equal 0th-dimension size",
    ),
    "no signature": (
        {"signature_name": "nobest", "instances": ["a"]},
        'Serving signature name: "nobest" not found in signature def',
    ),
    "a signature of no name": (
        {"signature_name": 5, "instances": ["a"]},
        "'signature_name' key must be a string value",
    ),
    "1,025 rows": (
        {"instances": [""] * 1025},
        "Task size 1025 is larger than maximum input batch size 1024",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(ports, case):
    body, says = REFUSED[case]
    status, answer = _ask(ports, "POST", PREDICT, body)
    assert status == 400, answer
    assert list(answer) == ["error"]
    assert re.search(says, answer["error"])


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        (
            "POST",
            "/v1/models/other:predict",
            404,
            r"Servable not found for request: Latest\(other\)",
        ),
        ("POST", f"{TINY}/versions/7:predict", 404, r"request: Specific\(tiny, 7\)"),
        ("POST", f"{TINY}/labels/canary:predict", 400, "Unrecognized servable version label: can"),
        ("POST", f"{TINY}:translate", 400, f"Malformed request: POST {TINY}:translate"),
        ("POST", TINY, 400, f"Malformed request: POST {TINY}"),
        ("POST", f"{TINY}:classify", 400, ""),
        ("GET", PREDICT, 400, f"Malformed request: GET {PREDICT}"),
        ("PUT", PREDICT, 400, f"Malformed request: PUT {PREDICT}"),
        ("GET", "/v1/models/other", 404, "Could not find any versions of model other"),
        ("GET", f"{TINY}/versions/7", 404, "Could not find version 7 of model tiny"),
        ("GET", "/v1/models/other/metadata", 404, "Servable not found"),
        ("GET", f"{TINY}/versions/7/metadata", 404, "Servable not found"),
        ("GET", "/v1/models", 400, "Missing model name in request"),
        ("GET", "/v2/models/tiny", 404, ""),
    ],
)
def test_what_is_not_there(ports, method, path, status, says):
    body = {"instances": ["a"]} if method != "GET" else None
    found, answer = _ask(ports, method, path, body)
    assert found == status, answer
    assert re.search(says, answer["error"])


@pytest.mark.parametrize("path", [TINY, f"{TINY}/versions/1", f"{TINY}/labels/stable"])
def test_status(ports, path):
    fine = {"error_code": "OK", "error_message": ""}
    expected = [{"version": "1", "state": "AVAILABLE", "status": fine}]
    assert _ask(ports, "GET", path) == (200, {"model_version_status": expected})


@pytest.mark.parametrize("which", ["", "/versions/1", "/labels/stable"])
def test_metadata(ports, which):
    status, answer = _ask(ports, "GET", f"{TINY}{which}/metadata")
    assert status == 200
    assert answer["model_spec"] == {"name": "tiny", "signature_name": "", "version": "1"}
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    default = signatures["serving_default"]
    assert default["method_name"] == "tensorflow/serving/predict"
    inputs = default["inputs"]["inputs"]
    assert inputs["dtype"] == "DT_STRING"
    assert inputs["tensor_shape"] == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert signatures["score"]["inputs"].keys() == {"inputs", "targets"}


def test_a_rows_answer_has_the_signatures_names(ports):
    _, answer = _ask(ports, "POST", PREDICT, {"instances": ["a dog runs"]})
    (row,) = answer["predictions"]
    assert row.keys() == {"outputs", "scores", "truncated", "input_truncated", "finished"}
    assert isinstance(row["outputs"], str)
    assert isinstance(row["scores"], float)


def _connect(ports, *, rest=False, **changes):
    return client.Client(f"127.0.0.1:{ports[rest]}", "tiny", rest=rest, **changes)


@pytest.mark.parametrize("rest", [False, True])
def test_answers_are_the_translators(ports, rest, model, hostile):
    texts = [*map(str.encode, tiny_run.SENTENCES), *hostile.values()]
    with _connect(ports, rest=rest, retries=9) as translator:
        answers = translator.translate(texts)
    expected = model.translate([text.decode("utf-8", "replace") for text in texts])
    for answer, translation in zip(answers, expected):
        assert answer.text == translation.text
        assert answer.scores[0] == pytest.approx(translation.score, abs=2e-5)


@pytest.mark.parametrize(
    ("changes", "inputs", "says"),
    [
        ({"signature_name": "nobest"}, {"inputs": ["a"]}, 'signature key "nobest" not found'),
        ({"version": 7}, {"inputs": ["a"]}, r"Specific\(tiny, 7\)"),
        ({"version_label": "canary"}, {"inputs": ["a"]}, "Unrecognized servable version label"),
        ({"signature_name": "score"}, {"inputs": ["a"]}, "Missing but required: {targets}"),
        ({}, {"texts": ["a"]}, "texts"),
        (
            {"signature_name": "score"},
            {"inputs": ["a"], "targets": ["b", "c"]},
            "must have equal 0th-dimension size",
        ),
        ({}, {"inputs": [""] * 1025}, "Task size 1025 is larger than maximum"),
    ],
)
def test_what_grpc_refuses(ports, changes, inputs, says):
    with _connect(ports, **changes) as translator, pytest.raises(errors.UserError, match=says):
        translator.predict(inputs)


def test_a_label_is_a_version(ports):
    with _connect(ports, version_label="stable") as named, _connect(ports, version=1) as numbered:
        assert named.translate(["a dog runs"]) == numbered.translate(["a dog runs"])


def test_ids_of_all_widths_share_batches_and_get_their_own_answers(ports, model):
    """Requests at the same time; the malformed among them fail alone."""
    texts = [*tiny_run.SENTENCES, "two dogs run " * 4, "the park"] * 6
    tokens = [model.vocabulary.encode(text) for text in texts]
    # Padding or other tokens after EOS, none at all, and what a server would pad with.
    tails = [[1], [1, 0, 0], [1, 9, 1], [1, *[7] * 20]]
    rows = [row + tails[i % 4] for i, row in enumerate(tokens)]
    expected = {text: model.translate([text])[0] for text in set(texts)}
    found: dict[int, dict] = {}

    def ask(number):
        with _connect(ports, signature_name="from_ids", retries=9) as ids:
            found[number] = ids.predict({"ids": [rows[number]]})

    def ask_badly():
        bad = {"inputs": ["a"], "targets": ["b", "c"]}
        with (
            _connect(ports, signature_name="score") as score,
            pytest.raises(errors.UserError, match="0th-dimension"),
        ):
            score.predict(bad)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(len(rows))]
    threads += [threading.Thread(target=ask_badly) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(rows)
    for number, answer in found.items():
        translation = expected[texts[number]]
        assert model.vocabulary.decode(answer["ids"][0]) == translation.text
        assert answer["truncated"] == [not translation.finished]
        np.testing.assert_allclose(answer["scores"], [translation.score], atol=2e-5)
