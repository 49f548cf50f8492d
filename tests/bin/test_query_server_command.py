"""t2t-lite-query-server against a running server: files, pipes, the prompt."""

import io
import socket
import sys
import time
from concurrent import futures

import fake_serving
import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.bin import query_server
from t2t_lite.decode import translation, translator
from t2t_lite.serving import client

TEXTS = [*reversed(tiny_run.SENTENCES), ""]  # the output of the first is cut off


@pytest.fixture(scope="module")
def server(export_dir):
    with fake_serving.Server(export_dir, "tiny") as server:
        yield server


@pytest.fixture(scope="module")
def translations(run_dir):
    """Return the translations of `TEXTS`."""
    return translator.Translator.from_output_dir(run_dir).translate(TEXTS)


@pytest.fixture(scope="module")
def expected(translations):
    """Return their lines."""
    return [translation.text.replace("\n", " ") for translation in translations]


@pytest.fixture
def job(tmp_path):
    """Return the flags that translate a file of `TEXTS`, and the file to be."""
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    return [f"--decode_from_file={source}", f"--decode_to_file={target}"], target


@pytest.fixture(autouse=True)
def _history(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp()))


def _remarks(translations):
    """Return what is said of lines whose output is cut off."""
    numbers = [str(n) for n, translation in enumerate(translations, 1) if not translation.finished]
    assert numbers
    start = f"{errors.counted(len(numbers), 'line')} with an output cut off at the length limit: "
    return [start + ", ".join(numbers)]


def _query(server, *flags, rest=False):
    port = server.rest_port if rest else server.port
    where = [f"--server=127.0.0.1:{port}", "--servable_name=tiny", f"--rest={rest}"]
    return query_server.main(["t2t-lite-query-server", *where, "--wait_secs=0", *flags])


@pytest.mark.parametrize("rest", [False, True])
def test_file_to_file(server, expected, translations, job, capsys, rest):
    flags, target = job
    assert _query(server, *flags, "--batch_size=2", rest=rest) == 0
    assert target.read_text("utf-8").split("\n")[:-1] == expected
    said = capsys.readouterr()
    assert "6 lines" in said.out
    assert said.err.splitlines()[-1:] == _remarks(translations)
    assert sorted(path.name for path in target.parent.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("rest", [False, True])
def test_waits_for_a_server_that_is_starting_and_says_so(export_dir, expected, job, capsys, rest):
    flags, target = job
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    where = [f"--server=127.0.0.1:{port}", "--servable_name=tiny", f"--rest={rest}"]
    command = ["t2t-lite-query-server", *where, *flags, "--retries=0"]
    assert query_server.main([*command, "--wait_secs=0.5"]) == 1
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith("; waiting up to 0.5 s")
    assert "is not available" in last
    with futures.ThreadPoolExecutor(1) as pool:
        status = pool.submit(query_server.main, command)
        time.sleep(2)
        assert not status.done()
        with fake_serving.Server(export_dir, "tiny", **{"rest_port" if rest else "port": port}):
            assert status.result() == 0
    assert target.read_text("utf-8").split("\n")[:-1] == expected


@pytest.fixture
def failing(monkeypatch):
    """Return a function that lets requests of a text fail from then on, and notes all texts."""
    predict = client.Grpc.predict

    def fail(text, error):
        asked = []

        def predict_or_fail(transport, target, inputs, timeout):
            asked.extend(inputs["inputs"])
            if text in inputs["inputs"]:
                raise error
            return predict(transport, target, inputs, timeout)

        monkeypatch.setattr(client.Grpc, "predict", predict_or_fail)
        return asked

    return fail


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (
            errors.UserError("the server is gone"),
            1,
            "the server is gone; 3 lines done: the sam",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_is_done_is_kept_and_not_asked_again(
    server, expected, translations, failing, job, capsys, error, status, says
):
    flags, target = job
    failing(TEXTS[3], error)
    assert _query(server, *flags, "--in_flight=1") == status
    assert says in capsys.readouterr().err.splitlines()[-1]
    assert not target.exists()
    assert _query(server, f"{flags[0]}s", flags[1]) == 1  # there is no such file
    asked = failing(None, None)
    assert _query(server, *flags, "--in_flight=4", "--batch_size=2") == 0
    assert asked == TEXTS[3:]
    assert target.read_text("utf-8").split("\n")[:-1] == expected
    said = capsys.readouterr().err.splitlines()
    assert "3 lines came from the interrupted run before" in said
    assert said[-1:] == _remarks(translations)
    assert sorted(path.name for path in target.parent.iterdir()) == ["in", "out"]


def test_another_models_answers_are_not_gone_on_with(server, failing, expected, job, capsys):
    flags, target = job
    failing(TEXTS[3], errors.UserError("gone"))
    assert _query(server, *flags, "--in_flight=1", "--version=1") == 1
    asked = failing(None, None)
    assert _query(server, *flags) == 0
    assert sorted(asked) == sorted(TEXTS)
    assert target.read_text("utf-8").split("\n")[:-1] == expected
    assert f"is in {target}.partial.1" in capsys.readouterr().err


def test_pipe(server, expected, translations, monkeypatch, capfdbinary):
    text = "\ufeff" + "".join(f"{text}\n" for text in TEXTS)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert _query(server) == 0
    out, err = capfdbinary.readouterr()
    assert out.decode().split("\n")[:-1] == expected
    assert err.decode().splitlines() == _remarks(translations)


@pytest.fixture
def typed(monkeypatch):
    """Return a list of what will be typed at a terminal: lines, or keys as exceptions."""
    items = []

    def read(prompt):
        item = items.pop(0) if items else EOFError()
        if isinstance(item, BaseException):
            raise item
        return item

    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    return items


def test_prompt_survives_errors(server, translations, typed, capsys):
    typed += [TEXTS[1], "", KeyboardInterrupt(), TEXTS[0]]
    assert _query(server) == 0
    one, two = (each.text + ("" if each.finished else " (cut off)") for each in translations[1::-1])
    assert capsys.readouterr().out == f"Type a sentence; Ctrl-D leaves.\n{one}\n\n{two}\n\n"


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_that_lacks_letters_gets_others(server, typed, monkeypatch, encoding):
    typed.append("two dogs \u2603 run")
    screen = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(screen, encoding=encoding))
    hypothesis = translation.Hypothesis(text="\u2603 \u0434\u043e\u043c", score=0.0, finished=True)
    answer = translation.Translation(hypotheses=(hypothesis,))
    monkeypatch.setattr(client.Client, "translate", lambda self, texts: [answer])
    assert _query(server) == 0
    sys.stdout.flush()
    assert b"? ???" in screen.getvalue()


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
