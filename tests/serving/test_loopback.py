"""Our client over real sockets, against a server that speaks TensorFlow Serving's protocol."""

import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors
from t2t_lite.serving import client, loopback, served_model

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def server(export_dir):
    model = served_model.Model(export_dir, warm_up=False)
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
        ({"signature_name": "score"}, "targets"),
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
    model = served_model.Model(export_dir, warm_up=False)
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


def test_a_port_in_use_is_one_line(server, export_dir):
    model = served_model.Model(export_dir, warm_up=False)
    for name, port in (("port", server.port), ("rest_port", server.rest_port)):
        with pytest.raises(errors.UserError, match=f"port {port} cannot be had"):
            loopback.Server(model, "tiny", **{name: port})
    model.close()


def test_warm_up_requests_run_before_it_serves(export_dir, monkeypatch):
    sizes = []
    run = served_model.Version.run

    def counting(self, name, inputs):
        sizes.append((name, len(next(iter(inputs.values())))))
        return run(self, name, inputs)

    monkeypatch.setattr(served_model.Version, "run", counting)
    served_model.Model(export_dir, max_batch_size=8).close()
    assert [size for name, size in sizes if name == "serving_default"] == [1, 8]
    sizes.clear()
    served_model.Model(export_dir).close()
    assert [size for name, size in sizes if name == "serving_default"] == [1, 8, 32]
    assert {name for name, _ in sizes} == {
        *("serving_default", "nbest", "score", "tokenize", "from_ids")
    }


def _wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_new_version_takes_the_place_of_the_old_and_no_request_fails(export_dir, tmp_path):
    shutil.copytree(export_dir / "1", tmp_path / "export" / "1")
    model = served_model.Model(tmp_path / "export", warm_up=False)
    stop = threading.Event()
    with (
        loopback.Server(model, "tiny", poll_wait=0.1) as server,
        client.Client(f"127.0.0.1:{server.port}", "tiny", retries=0) as translator,
    ):
        (expected,) = translator.translate(["a dog runs"])
        answers = []

        def ask():
            while not stop.is_set():
                answers.extend(translator.translate(["a dog runs"]))

        thread = threading.Thread(target=ask)
        thread.start()
        shutil.copytree(export_dir / "1", tmp_path / "new")
        (tmp_path / "new").rename(tmp_path / "export" / "2")
        _wait_for(lambda: model.newest.number == 2)
        count = len(answers)
        _wait_for(lambda: len(answers) > count)
        stop.set()
        thread.join()
        states = {number: status["state"] for number, status in model.status().items()}
        assert states == {2: "AVAILABLE", 1: "END"}
    assert {answer.text for answer in answers} == {expected.text}


def test_a_damaged_version_is_reported_and_the_old_one_serves_on(export_dir, tmp_path):
    shutil.copytree(export_dir / "1", tmp_path / "1")
    lines = []
    model = served_model.Model(tmp_path, warm_up=False, report=lines.append)
    (tmp_path / "2").mkdir()
    for _ in range(7):
        model.refresh()
    assert model.newest.number == 1
    assert len(lines) == 5  # then it gives up
    assert all(line.startswith("cannot load version 2: ") for line in lines)
    assert "\n" not in lines[0]
    assert model.status()[2]["state"] == "END"
    model.close()


def test_a_version_that_is_copied_slowly_is_served_when_it_is_whole(export_dir, tmp_path):
    shutil.copytree(export_dir / "1", tmp_path / "1")
    model = served_model.Model(tmp_path, warm_up=False)
    (tmp_path / "2").mkdir()
    for number in range(8):
        (tmp_path / "2" / f"part{number}").touch()
        time.sleep(0.02)  # more than a file system's clock needs to go on
        model.refresh()
    assert model.newest.number == 1
    shutil.copytree(export_dir / "1", tmp_path / "2", dirs_exist_ok=True)
    model.refresh()
    model.refresh()
    assert model.newest.number == 2
    model.close()


def test_labels_choose_what_is_served(export_dir, tmp_path):
    for number in ("1", "0002", "3"):
        shutil.copytree(export_dir / "1", tmp_path / number)
    model = served_model.Model(tmp_path, labels={"stable": 1, "canary": 2}, warm_up=False)
    assert model.version("m", served_model.Choice(label="stable")).number == 1
    assert model.version("m", served_model.Choice(label="canary")).number == 2
    assert model.newest.number == 2
    with pytest.raises(loopback.protocol.Refused, match=r"Specific\(m, 3\)"):
        model.version("m", served_model.Choice(number=3))
    model.close()
    with pytest.raises(errors.UserError, match=r"label best is of version 7, but .* has 1, 2, 3"):
        served_model.Model(tmp_path, labels={"best": 7}, warm_up=False)
    with pytest.raises(errors.UserError, match="no folder"):
        served_model.Model(tmp_path / "nowhere")


def test_a_client_killed_in_the_middle_harms_nobody(server, model, capfd):
    head = b"POST /v1/models/tiny:predict HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"
    for sent in (b"", b"POST /v1", head, head + b'{"instances": ["a'):
        with socket.create_connection(("127.0.0.1", server.rest_port)) as gone:
            gone.sendall(sent)
    code = (
        "import sys; from t2t_lite.serving import client;"
        f"one = client.Client('127.0.0.1:{server.port}', 'tiny');"
        "print('there', flush=True);"
        "[one.translate(['two dogs run ' * 8] * 200) for _ in range(1000)]"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout
    process.stdout.readline()
    time.sleep(0.3)
    process.kill()
    process.wait()
    (expected,) = model.translate(["a dog runs"])
    for rest, port in enumerate((server.port, server.rest_port)):
        with client.Client(f"127.0.0.1:{port}", "tiny", rest=bool(rest)) as other:
            assert other.translate(["a dog runs"])[0].text == expected.text
    assert "Traceback" not in capfd.readouterr().err


def test_a_request_of_60_megabytes_costs_little(signatures):
    """TensorFlow Serving's own memory is not ours; this is what the graph takes."""
    status = pathlib.Path("/proc/self/status")

    def memory(name):
        (line,) = (x for x in status.read_text().splitlines() if x.startswith(f"{name}:"))
        return int(line.split()[1]) / 1024

    serve = signatures["serving_default"]
    short = serve(inputs=tf.constant(["a dog runs " * 60]))  # longer than max_source_length
    text = tf.constant([b"a dog runs " * 5_700_000])
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    except OSError as error:
        pytest.skip(f"needs /proc/self/clear_refs: {error}")
    before = memory("VmRSS")
    found = serve(inputs=text)
    assert memory("VmHWM") - before < 100  # MB; tokenizing all of it takes 1,500
    assert found["input_truncated"].numpy().tolist() == [True]
    assert found["outputs"].numpy().tolist() == short["outputs"].numpy().tolist()
