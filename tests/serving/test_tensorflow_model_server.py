"""The export in a real TensorFlow Serving, where there is one.

TF_SERVING_BINARY names it, or tensorflow_model_server is on the PATH, or Docker runs and has the
image tensorflow/serving.
"""

import os
import shutil
import socket
import subprocess
import time

import pytest
import tiny_run

from t2t_lite.serving import client

pytestmark = pytest.mark.integration
IMAGE = os.environ.get("TF_SERVING_IMAGE", "tensorflow/serving")


def _free_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def _command(export_dir, port, rest_port):
    """Return the command that serves the export as "tiny"; skip where nothing can."""
    binary = os.environ.get("TF_SERVING_BINARY") or shutil.which("tensorflow_model_server")
    if binary:
        return [
            *(binary, f"--port={port}", f"--rest_api_port={rest_port}"),
            *("--model_name=tiny", f"--model_base_path={export_dir}"),
        ]
    docker = shutil.which("docker")
    if docker is None:
        pytest.skip("needs tensorflow_model_server, TF_SERVING_BINARY or Docker")
    image = subprocess.run([docker, "image", "inspect", IMAGE], capture_output=True, check=False)
    if image.returncode:
        pytest.skip(f"Docker does not run or lacks the image {IMAGE} (docker pull {IMAGE})")
    return [
        *(docker, "run", "--rm", "-p", f"127.0.0.1:{port}:8500"),
        *("-p", f"127.0.0.1:{rest_port}:8501", "-v", f"{export_dir}:/models/tiny:ro"),
        *("-e", "MODEL_NAME=tiny", IMAGE),
    ]


@pytest.fixture(scope="module")
def ports(export_dir, tmp_path_factory):
    """Start the server; return its gRPC and REST ports."""
    found = _free_port(), _free_port()
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(_command(export_dir, *found), stdout=file, stderr=file)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            assert process.poll() is None, log.read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", found[1])) == 0:
                    break
            time.sleep(0.2)
        yield found
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize("rest", [False, True])
def test_answers_are_the_translators(ports, rest, model, hostile):
    texts = [*map(str.encode, tiny_run.SENTENCES), *hostile.values()]
    with client.Client(f"127.0.0.1:{ports[rest]}", "tiny", rest=rest, retries=9) as translator:
        answers = translator.translate(texts)
    expected = model.translate([text.decode("utf-8", "replace") for text in texts])
    for answer, translation in zip(answers, expected):
        assert answer.text == translation.text
        assert answer.scores[0] == pytest.approx(translation.score, abs=2e-5)
