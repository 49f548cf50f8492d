"""scripts/serve.sh: what it would run, and its answers to mistakes."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from t2t_lite.bin import query_server

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "serve.sh"
BASH = str(shutil.which("bash"))


@pytest.fixture
def exports(tmp_path):
    """Make folders that look like exports; work beside them."""
    for name, versions in {"one": [1, 2], "two": [3]}.items():
        for version in versions:
            folder = tmp_path / name / str(version)
            folder.mkdir(parents=True)
            (folder / "saved_model.pb").touch()
    return tmp_path


def _serve(folder, *arguments, **environment):
    # Docker as a program that is there; no server.
    docker = folder / "docker"
    docker.write_text("#!/bin/sh\n")
    docker.chmod(0o755)
    return subprocess.run(
        [BASH, str(SCRIPT), *arguments],
        cwd=folder,
        env={"PATH": f"{folder}:{os.defpath}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _command(folder, *arguments, **environment):
    done = _serve(folder, "--print", *arguments, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return shlex.split(done.stdout)


def test_one_model(exports):
    command = _command(exports, "one", "ende", TF_SERVING_BINARY="server", REST_PORT="7")
    batching = command.pop().removeprefix("--batching_parameters_file=")
    number = max((os.cpu_count() or 1) - 1, 1)
    assert pathlib.Path(batching).read_text() == f"num_batch_threads {{ value: {number} }}\n"
    assert command == [
        *("server", "--port=8500", "--rest_api_port=7", "--enable_batching"),
        *("--enable_per_model_batching_parameters", "--tensorflow_intra_op_parallelism=1"),
        *("--tensorflow_inter_op_parallelism=-1", "--grpc_max_threads=256"),
        *("--rest_api_timeout_in_ms=30000", "--model_name=ende"),
        f"--model_base_path={exports}/one",
    ]
    assert query_server.FLAGS["timeout_secs"].default == 30


def test_the_image_has_a_tag_that_can_be_changed(exports):
    command = _command(exports, "one", "ende")
    assert command[:3] == ["docker", "run", "--rm"]
    assert f"{exports}/one:/models/ende:ro" in command
    (image,) = (word for word in command if word.startswith("tensorflow/serving"))
    assert re.fullmatch(r"tensorflow/serving:\d+\.\d+\.\d+", image)
    assert "mine:1" in _command(exports, "one", "ende", TF_SERVING_IMAGE="mine:1")


def _config(command):
    (flag,) = (word for word in command if word.startswith("--model_config_file="))
    return pathlib.Path(flag.partition("=")[2]).read_text()


def test_several_models(exports):
    config = _config(_command(exports, "ende=one", "enfr=two", TF_SERVING_BINARY="server"))
    assert f"name: 'ende' base_path: '{exports}/one' model_platform: 'tensorflow' }}" in config
    assert f"name: 'enfr' base_path: '{exports}/two' model_platform: 'tensorflow' }}" in config
    command = _command(exports, "ende=one", "enfr=two")
    mounted = [word for word in command if word.endswith(":ro")]
    batching, config = (pathlib.Path(mounted[place].split(":")[0]) for place in (0, 3))
    assert mounted[1:3] == [f"{exports}/one:/models/ende:ro", f"{exports}/two:/models/enfr:ro"]
    assert "base_path: '/models/enfr'" in config.read_text()
    assert "num_batch_threads" in batching.read_text()
    assert "--batching_parameters_file=/models/batching.config" in command


def test_labels(exports):
    labels = ("--labels", "stable=1 canary=2")
    command = _command(exports, *labels, "one", "ende", TF_SERVING_BINARY="server")
    assert "--allow_version_labels_for_unavailable_models" in command
    config = _config(command)
    assert "specific { versions: 1 versions: 2 }" in config
    assert "version_labels { key: 'canary' value: 2 }" in config


def test_help(exports):
    done = _serve(exports, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Serve exports with TensorFlow Serving")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ([], 2, "expected EXPORT_DIR NAME"),
        (["--labels"], 2, "--labels is followed by labels"),
        (["--labels", "stable", "one", "m"], 2, "a label is LABEL=VERSION"),
        (["--labels", "stable=7", "one", "m"], 1, "no version 7 for the label stable"),
        (["--labels", "stable=1", "a=one", "b=two"], 2, "--labels are of one model"),
        (["--lables", "stable=1", "one", "m"], 2, "unknown flag --lables"),
        (["nowhere", "m"], 1, "nowhere holds no export"),
        (["one", "a b"], 2, "a model's name is"),
        (["one", "m", "two"], 2, "NAME=EXPORT_DIR of each model; got one"),
        (["m=one", "m=two"], 2, "two models are called m"),
    ],
)
def test_mistakes_are_one_line(exports, arguments, status, says):
    done = _serve(exports, *arguments)
    assert done.returncode == status
    (line,) = done.stderr.splitlines()
    assert line.startswith("serve.sh: ")
    assert says in line


def test_what_is_missing_is_one_line(exports):
    done = _serve(exports, "one", "m", PATH=str(exports / "nowhere"))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("serve.sh: needs Docker, tensorflow_model_server on the PATH, or $TF_S")
