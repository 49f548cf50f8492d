"""Our client over real sockets, against a server that speaks TensorFlow Serving's protocol."""

import json
import socket
import threading
import urllib.request

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors
from t2t_lite.serving import client

loopback = pytest.importorskip("t2t_lite.serving.loopback", reason="needs tensorflow-serving-api")
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def server(export_dir):
    model = loopback.Model(export_dir, max_batch_size=8, warm_up=False)
    with loopback.Server(model, "tiny") as server:
        yield server


@pytest.fixture(params=["gRPC", "REST"])
def connect(server, request):
    """Return a function that makes a Client of either kind."""
    rest = request.param == "REST"
    port = server.rest_port if rest else server.port

    def make(name="tiny", **changes):
        return client.Client(f"127.0.0.1:{port}", name, rest=rest, **changes)

    return make


def test_answers_are_the_translators(connect, model, hostile):
    texts = [*tiny_run.SENTENCES, "", *hostile.values()]
    readable = [t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in texts]
    with connect() as translator:
        answers = translator.translate(texts)
    for answer, expected in zip(answers, model.translate(readable)):
        assert answer.text == expected.text
        assert answer.scores[0] == pytest.approx(expected.score, abs=2e-5)
        assert answer.truncated == (expected.truncated or not expected.finished)


def test_stream_equals_one_request(connect):
    texts = (tiny_run.SENTENCES * 8)[:37]
    with connect() as translator:
        together = translator.translate(texts)
        for in_flight, batch_size in ((1, 1), (8, 1), (4, 5)):
            with connect(in_flight=in_flight, batch_size=batch_size) as other:
                streamed = list(other.stream(texts))
            assert [a.text for a in streamed] == [a.text for a in together]
            np.testing.assert_allclose(
                [a.scores for a in streamed], [a.scores for a in together], atol=2e-5
            )


def test_nbest(connect, signatures):
    with connect(signature_name="nbest") as translator:
        answers = translator.translate(tiny_run.SENTENCES)
    expected = signatures["nbest"](inputs=tf.constant(tiny_run.SENTENCES))["outputs"].numpy()
    assert [[text.encode() for text in answer.outputs] for answer in answers] == expected.tolist()


def test_nothing_sent_nothing_answered(connect):
    with connect() as translator:
        assert translator.translate([]) == []
        assert list(translator.stream([])) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "other"}, "serves no model 'other'"),
        ({"version": 77}, "serves no model 'tiny' version 77"),
        ({"signature_name": "nobest"}, "has no signature 'nobest'"),
        ({"signature_name": "tokenize"}, "not outputs and scores"),
        ({"signature_name": "score"}, "expected inputs"),
        ({"timeout": 0.001}, "in time"),
    ],
)
def test_errors_are_one_clear_line(connect, changes, says):
    with connect(**changes) as translator, pytest.raises(errors.UserError) as caught:
        translator.translate(["a dog"] * 50)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rest", [False, True])
def test_waits_for_a_server_that_starts_later(export_dir, rest):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    answers = []

    def ask():
        with client.Client(f"127.0.0.1:{port}", "tiny", rest=rest, retries=9) as translator:
            answers.extend(translator.translate(["a dog runs"]))

    thread = threading.Thread(target=ask)
    thread.start()
    model = loopback.Model(export_dir, warm_up=False)
    with loopback.Server(model, "tiny", **{"rest_port" if rest else "port": port}):
        thread.join()
    assert len(answers) == 1


@pytest.mark.parametrize("rest", [False, True])
def test_wrong_port_is_named(server, rest):
    port = server.port if rest else server.rest_port
    with (
        client.Client(f"127.0.0.1:{port}", "tiny", rest=rest) as translator,
        pytest.raises(errors.UserError, match="is it the"),
    ):
        translator.translate(["a"])


def test_rows_of_json_as_curl_sends_them(server, model):
    body = json.dumps({"instances": ["a dog runs", "he sleeps"]}).encode()
    url = f"http://127.0.0.1:{server.rest_port}/v1/models/tiny:predict"
    with urllib.request.urlopen(url, body) as response:
        rows = json.loads(response.read())["predictions"]
    expected = model.translate(["a dog runs", "he sleeps"])
    assert [row["outputs"] for row in rows] == [translation.text for translation in expected]
    assert rows[0].keys() == {"outputs", "scores", "truncated"}


def test_requests_of_many_clients_share_batches(export_dir):
    model = loopback.Model(export_dir, max_batch_size=8, batch_timeout=0.2, warm_up=False)
    sizes = []
    run = model._run
    model._run = lambda name, batch: (sizes.append(len(batch)), run(name, batch))
    with (
        loopback.Server(model, "tiny") as server,
        client.Client(f"127.0.0.1:{server.port}", "tiny", in_flight=16) as translator,
    ):
        list(translator.stream(tiny_run.SENTENCES * 8))
    assert sum(sizes) == 8 * len(tiny_run.SENTENCES)
    assert 4 <= max(sizes) <= 8


def test_a_batch_holds_one_width_of_ids(export_dir):
    model = loopback.Model(export_dir, batch_timeout=0.1, warm_up=False)
    results = {}

    def ask(width):
        results[width] = model.predict("from_ids", {"ids": np.full([1, width], 5, np.int32)})

    threads = [threading.Thread(target=ask, args=(width,)) for width in (2, 3, 2, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    model.close()
    assert sorted(results) == [2, 3, 4]
