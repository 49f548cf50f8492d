"""The loopback server's command: it serves until it is asked to stop."""

import re
import signal
import socket
import subprocess
import sys

import pytest
import tiny_run

from t2t_lite.bin import loopback_server

pytestmark = pytest.mark.integration


def test_it_answers_on_the_ports_it_names_until_sigterm(tmp_path):
    from t2t_lite.decode import translator
    from t2t_lite.serving import client, export

    run_dir = tiny_run.write(tmp_path)
    export.export(run_dir, tmp_path / "export")
    command = [sys.executable, "-m", "t2t_lite.bin.loopback_server"]
    command += [f"--export_dir={tmp_path / 'export'}", "--servable_name=tiny"]
    command += ["--port=0", "--rest_port=0", "--nowarm_up"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        line = process.stdout.readline()
        ports = re.search(r"as 'tiny': gRPC port (\d+), REST port (\d+); ready after", line)
        assert ports, line
        model = translator.Translator.from_output_dir(run_dir)
        for port, rest in ((ports[1], False), (ports[2], True)):
            with client.Client(f"127.0.0.1:{port}", "tiny", rest=rest) as server:
                answer = server.translate(["a dog runs"])[0]
            assert answer.text == model.translate(["a dog runs"])[0].text
    finally:
        process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize("flag", ["port", "rest_port"])
def test_a_port_in_use_is_said_at_once(capsys, flag):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        free = {"port": "--rest_port=0", "rest_port": "--port=0"}[flag]
        flags = ["--export_dir=x", "--servable_name=x", f"--{flag}={port}", free]
        assert loopback_server.main(["loopback_server", *flags]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"port {port} cannot be had" in line
    assert f"--{flag}" in line


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        ([], 2, "--export_dir and --servable_name must be given"),
        (["--export_dir=x", "--servable_name=x", "--batch_timeout_secs=nan"], 2, "a number"),
        (["--export_dir=x", "--servable_name=x", "--num_threads=0"], 2, "num_threads"),
        (["--export_dir=x", "--servable_name=x", "--labels=stable"], 1, "stable=1 canary=2"),
    ],
)
def test_mistakes_get_one_line(capsys, flags, status, message):
    assert loopback_server.main(["loopback_server", *flags]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
