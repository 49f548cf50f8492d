"""t2t-lite-query-server against a running server: text, files, errors."""

import io
import subprocess
import sys
import time

import fake_serving
import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.bin import query_server
from t2t_lite.decode import translation, translator
from t2t_lite.serving import client


@pytest.fixture(scope="module")
def server(export_dir):
    with fake_serving.Server(export_dir, "tiny") as server:
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


@pytest.fixture(autouse=True)
def _history(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp()))


def _remarks(translations):
    """Return what is said of lines whose output is cut off."""
    numbers = [str(n) for n, translation in enumerate(translations, 1) if not translation.finished]
    assert numbers
    start = f"{len(numbers)} lines have an output cut off at the length limit: "
    return [start + ", ".join(numbers)]


def _query(server, *flags, rest=False):
    port = server.rest_port if rest else server.port
    flags = [f"--server=127.0.0.1:{port}", "--servable_name=tiny", f"--rest={rest}", *flags]
    return query_server.main(["t2t-lite-query-server", *flags])


@pytest.mark.parametrize("rest", [False, True])
def test_file_to_file(server, expected, translations, tmp_path, capsys, rest):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("\n".join([*tiny_run.SENTENCES, "", ""]), "utf-8")
    flags = [f"--decode_from_file={source}", f"--decode_to_file={target}", "--batch_size=2"]
    assert _query(server, *flags, rest=rest) == 0
    assert target.read_text("utf-8").split("\n")[:-1] == expected
    said = capsys.readouterr()
    assert "6 lines" in said.out
    assert said.err.splitlines()[-1:] == _remarks(translations)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


class _Failing:
    """A transport that fails of one text, and notes what it was asked."""

    def __init__(self, transport, text, error):
        self._transport = transport
        self._text = text
        self._error = error
        self.asked = []

    def predict(self, target, inputs, timeout):
        self.asked += inputs["inputs"]
        if self._text in inputs["inputs"]:
            raise self._error
        return self._transport.predict(target, inputs, timeout)

    def close(self):
        self._transport.close()


@pytest.fixture
def failing(monkeypatch):
    """Return a function that lets the next connections fail of a text."""
    made = []
    transport = client.Grpc

    def fail(text, error):
        def connect(*arguments, **changes):
            made.append(_Failing(transport(*arguments, **changes), text, error))
            return made[-1]

        monkeypatch.setattr(client, "Grpc", connect)
        return made

    return fail


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (
            errors.UserError("the server is gone"),
            1,
            "the server is gone; 3 lines are done: the sam",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_is_done_is_kept_and_not_asked_again(
    server, expected, failing, tmp_path, capsys, error, status, says
):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"{text}\n" for text in [*tiny_run.SENTENCES, ""]), "utf-8")
    flags = [f"--decode_from_file={source}", f"--decode_to_file={target}", "--in_flight=1"]
    failing(tiny_run.SENTENCES[3], error)
    assert _query(server, *flags) == status
    assert says in capsys.readouterr().err.splitlines()[-1]
    assert not target.exists()
    assert _query(server, f"--decode_from_file={source}s", flags[1]) == 1  # there is no such file
    again = failing(None, None)
    assert _query(server, *flags, "--in_flight=4", "--batch_size=2") == 0
    assert again[-1].asked == [*tiny_run.SENTENCES[3:], ""]
    assert target.read_text("utf-8").split("\n")[:-1] == expected
    assert "3 lines came from the interrupted run before" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_what_was_cut_before_an_interruption_is_told(
    server, translations, failing, tmp_path, capsys
):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text(f"{tiny_run.SENTENCES[4]}\n{tiny_run.SENTENCES[3]}\n", "utf-8")
    flags = [f"--decode_from_file={source}", f"--decode_to_file={target}", "--in_flight=1"]
    failing(tiny_run.SENTENCES[3], errors.UserError("gone"))
    assert _query(server, *flags) == 1
    failing(None, None)
    assert _query(server, *flags) == 0
    assert capsys.readouterr().err.splitlines()[-1:] == _remarks([translations[4]])


def test_another_models_answers_are_not_gone_on_with(server, failing, expected, tmp_path, capsys):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"{text}\n" for text in [*tiny_run.SENTENCES, ""]), "utf-8")
    flags = [f"--decode_from_file={source}", f"--decode_to_file={target}", "--in_flight=1"]
    made = failing(tiny_run.SENTENCES[3], errors.UserError("gone"))
    assert _query(server, *flags, "--version=1") == 1
    failing(None, None)
    assert _query(server, *flags) == 0
    assert made[-1].asked == [*tiny_run.SENTENCES, ""]
    assert target.read_text("utf-8").split("\n")[:-1] == expected
    assert f"is in {target}.partial.1" in capsys.readouterr().err


def test_the_input_is_not_overwritten(server, tmp_path, capsys):
    source = tmp_path / "in"
    source.write_text("a dog\n")
    assert _query(server, f"--decode_from_file={source}", f"--decode_to_file={source}") == 1
    assert "is what is translated" in capsys.readouterr().err
    assert source.read_text() == "a dog\n"


def test_failure_leaves_no_file(server, tmp_path, capsys):
    source = tmp_path / "in"
    source.write_text("a dog\n")
    flags = [f"--decode_from_file={source}", f"--decode_to_file={tmp_path / 'out'}"]
    assert _query(server, *flags, "--servable_name=other") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "serves no model 'other'" in line
    assert list(tmp_path.iterdir()) == [source]


def test_pipe_in_a_process_of_its_own_starts_at_once(server, expected, translations):
    command = [sys.executable, "-m", "t2t_lite.bin.query_server", "--servable_name=tiny"]
    command.append(f"--server=127.0.0.1:{server.port}")
    start = time.monotonic()
    done = subprocess.run(
        command,
        input="\ufeff".encode() + "\n".join([*tiny_run.SENTENCES, ""]).encode() + b"\n",
        capture_output=True,
        check=True,
    )
    seconds = time.monotonic() - start
    assert done.stdout.decode().split("\n")[:-1] == expected
    assert done.stderr.decode().splitlines() == _remarks(translations)
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


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_that_lacks_letters_gets_others(server, monkeypatch, encoding):
    typed = iter(["two dogs \u2603 run", EOFError()])

    def read(prompt):
        item = next(typed)
        if isinstance(item, BaseException):
            raise item
        return item

    screen = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", screen)
    answer = client.Answer(outputs=("\u2603 \u0434\u043e\u043c",), scores=(0.0,))
    monkeypatch.setattr(client.Client, "translate", lambda self, texts: [answer])
    assert _query(server) == 0
    screen.flush()
    assert b"? ???" in screen.buffer.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


def test_nbest_lines_are_the_decoders(server, run_dir, tmp_path):
    """Blank lines too, and where there are fewer outputs than were asked for."""
    texts = [*tiny_run.SENTENCES, "", " \t", "a"]
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    flags = [f"--decode_from_file={source}", f"--decode_to_file={target}"]
    assert _query(server, *flags, "--signature_name=nbest") == 0
    model = translator.Translator.from_output_dir(run_dir, return_beams=4)
    lines = target.read_text("utf-8").split("\n")[:-1]
    assert lines[5] == lines[6] == "\t0.000000"
    for line, output in zip(lines, model.translate(texts), strict=True):
        found = line.split("\t")
        wanted = translation.line(output, is_nbest=True).split("\t")
        assert found[::2] == wanted[::2]
        assert list(map(float, found[1::2])) == pytest.approx(
            list(map(float, wanted[1::2])), abs=3e-5
        )


@pytest.mark.parametrize(
    ("flags", "status", "says"),
    [
        (["--server=localhost"], 1, "host:port"),
        (["--server="], 2, "--server must be given"),
        (["--version=1", "--version_label=stable"], 1, "not both"),
        (["--decode_from_file=nowhere"], 1, "no file nowhere"),
        (["--timeout_secs=0"], 2, "timeout_secs"),
        (["--header=abc"], 1, "--header is name=value, got 'abc'"),
        (["--ca_file=nowhere"], 1, "--ca_file nowhere is no file of certificates"),
        (["--decode_from_file=/dev/null", "--decode_to_file=/tmp"], 1, "/tmp is a folder"),
    ],
)
def test_mistakes_are_one_line(server, capsys, flags, status, says):
    assert _query(server, *flags) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
