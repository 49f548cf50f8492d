import io
import subprocess
import sys
import time

import pytest
import tiny_run

from t2t_lite.bin import query_server
from t2t_lite.decode import translator
from t2t_lite.serving import export, loopback

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return tiny_run.write(tmp_path_factory.mktemp("queried"))


@pytest.fixture(scope="module")
def server(run_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp("export")
    export.export(run_dir, path)
    with loopback.Server(loopback.Model(path, warm_up=False), "tiny") as server:
        yield server


@pytest.fixture(scope="module")
def translations(run_dir):
    """Return the translations of the sentences and of a blank line."""
    model = translator.Translator.from_output_dir(run_dir)
    return model.translate([*tiny_run.SENTENCES, ""])


@pytest.fixture(scope="module")
def expected(translations):
    """Return their lines."""
    return [translation.text.replace("\n", " ") for translation in translations]


def _query(server, *flags, rest=False):
    port = server.rest_port if rest else server.port
    flags = [f"--server=127.0.0.1:{port}", "--servable_name=tiny", f"--rest={rest}", *flags]
    return query_server.main(["t2t-lite-query-server", *flags])


@pytest.mark.parametrize("rest", [False, True])
def test_file_to_file(server, expected, tmp_path, capsys, rest):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("\n".join([*tiny_run.SENTENCES, "", ""]), "utf-8")
    flags = [f"--decode_from_file={source}", f"--decode_to_file={target}", "--batch_size=2"]
    assert _query(server, *flags, rest=rest) == 0
    assert target.read_text("utf-8").split("\n")[:-1] == expected
    assert "6 lines" in capsys.readouterr().out


def test_failure_leaves_no_file(server, tmp_path, capsys):
    source = tmp_path / "in"
    source.write_text("a dog\n")
    flags = [f"--decode_from_file={source}", f"--decode_to_file={tmp_path / 'out'}"]
    assert _query(server, *flags, "--servable_name=other") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "serves no model 'other'" in line
    assert list(tmp_path.iterdir()) == [source]


def test_pipe_in_a_process_of_its_own_starts_at_once(server, expected):
    command = [sys.executable, "-m", "t2t_lite.bin.query_server", "--servable_name=tiny"]
    command.append(f"--server=127.0.0.1:{server.port}")
    start = time.monotonic()
    done = subprocess.run(
        command,
        input="\n".join([*tiny_run.SENTENCES, ""]).encode() + b"\n",
        capture_output=True,
        check=True,
    )
    seconds = time.monotonic() - start
    assert done.stdout.decode().split("\n")[:-1] == expected
    assert done.stderr == b""
    assert seconds < 10  # a loaded machine; tests/serving/test_protocol.py sees no TensorFlow


def test_prompt_survives_errors(server, translations, expected, monkeypatch, capsys):
    typed = iter([tiny_run.SENTENCES[1], "", KeyboardInterrupt(), tiny_run.SENTENCES[4]])

    def read(prompt):
        item = next(typed, EOFError())
        if isinstance(item, BaseException):
            raise item
        return item

    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert _query(server) == 0
    one, two = (
        expected[place] + ("" if translations[place].finished else " (cut off)") for place in (1, 4)
    )
    assert capsys.readouterr().out == f"Type a sentence; Ctrl-D leaves.\n{one}\n\n{two}\n\n"


def test_nbest_lines_alternate_text_and_score(server, monkeypatch, capsysbinary):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a dog runs\n")))
    assert _query(server, "--signature_name=nbest") == 0
    fields = capsysbinary.readouterr().out.decode().rstrip("\n").split("\t")
    assert len(fields) == 8
    scores = [float(score) for score in fields[1::2]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("flags", "status", "says"),
    [
        (["--server=localhost"], 1, "host:port"),
        (["--server="], 2, "--server must be given"),
        (["--version=1", "--version_label=stable"], 1, "not both"),
        (["--decode_from_file=nowhere"], 1, "no file nowhere"),
        (["--timeout_secs=0"], 2, "timeout_secs"),
    ],
)
def test_mistakes_are_one_line(server, capsys, flags, status, says):
    assert _query(server, *flags) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
