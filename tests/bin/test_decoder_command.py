"""t2t-lite-decoder: files, pipes, splits, scores, what goes on after an interruption."""

import concurrent.futures
import io
import os
import pty
import select
import subprocess
import sys
import time

import pytest
import tiny_run

from t2t_lite import registry
from t2t_lite.bin import decoder as decoder_command
from t2t_lite.data import generate
from t2t_lite.decode import options, translation, translator

NAME = "t2t-lite-decoder"
FAST = "--decode_hparams=beam_size=2"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny_run.write(tmp_path_factory.mktemp("decoder"))


@pytest.fixture(scope="module")
def expected():
    """Return a function that gives the output lines for some texts."""
    decode_options = options.for_model(tiny_run.HPARAMS, beam_size=2)
    model = translator.Translator(tiny_run.model(), tiny_run.task(), decode_options)
    return lambda texts: [translation.line(output) for output in model.translate(texts)]


@pytest.fixture
def pipe(run, tmp_path, monkeypatch, capfdbinary):
    """Return a function that decodes a text from standard input to standard output."""
    stdin = os.dup(0)

    def pipe(*flags, text):
        (tmp_path / "stdin").write_text(text, "utf-8")
        with open(tmp_path / "stdin", "rb") as file:
            os.dup2(file.fileno(), 0)
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
            flags = ["--decode_from_file=-", "--decode_to_file=-", *flags]
            status = decoder_command.main([NAME, f"--output_dir={run}", *flags])
        out, err = capfdbinary.readouterr()
        return status, out.decode(), err.decode()

    yield pipe
    os.dup2(stdin, 0)
    os.close(stdin)


def test_file_to_file(run, tmp_path, expected, capsys):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("".join(text + "\n" for text in [*tiny_run.SENTENCES, "", "x"]))
    flags = [f"--decode_from_file={source}", f"--decode_to_file={target}", FAST]
    status = decoder_command.main([NAME, f"--output_dir={run}", *flags])
    err = capsys.readouterr().err
    assert status == 0, err
    assert target.read_text().split("\n")[:-1] == expected([*tiny_run.SENTENCES, "", "x"])
    assert "7 lines, " in err
    assert "cut off at the length limit" in err


@pytest.mark.parametrize("extra", [[], ["--stream"]], ids=["batches", "stream"])
def test_pipe(pipe, expected, extra):
    status, out, err = pipe(FAST, *extra, text="a dog runs\n\nhe sleeps")
    assert status == 0, err
    assert out.split("\n")[:-1] == expected(["a dog runs", "", "he sleeps"])


def test_to_a_pipe_of_another_name(run, tmp_path, expected):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("a dog runs\n")
    os.mkfifo(target)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        read = pool.submit(target.read_text)
        flags = [f"--output_dir={run}", f"--decode_from_file={source}", FAST]
        assert decoder_command.main([NAME, *flags, f"--decode_to_file={target}"]) == 0
        assert read.result(timeout=60).split("\n")[:-1] == expected(["a dog runs"])
    assert target.is_fifo()


def test_a_stream_is_sampled_as_a_file_is_and_may_begin_with_a_mark(pipe):
    flag = "--decode_hparams=sampling=true,seed=5,max_source_length=8"
    text = "\ufeff" + "a dog runs\n" * 3 + "a dog runs in the park\n" * 2
    status, streamed, said = pipe(flag, "--stream", text=text)
    assert (status, streamed) == (0, pipe(flag, text=text)[1])
    assert len(set(streamed.splitlines()[:3])) > 1
    assert "2 lines longer than max_source_length, cut: 4, 5\n" in said


def test_who_reads_may_leave(run):
    command = [sys.executable, "-m", "t2t_lite.bin.decoder", f"--output_dir={run}", FAST]
    command += ["--decode_from_file=-", "--decode_to_file=-", "--stream"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdout
    process.stdout.close()
    _, err = process.communicate(b"a dog runs\n" * 3, timeout=120)
    assert (process.returncode, err) == (141, b"")


def test_scores_of_given_outputs(run, tmp_path, capsysbinary):
    pairs = tmp_path / "pairs"
    pairs.write_text("a dog\tzwei\nhe sleeps\tso\n")
    args = [NAME, f"--output_dir={run}", f"--score_file={pairs}", "--decode_to_file=-"]
    assert decoder_command.main([*args, "--decode_hparams=max_source_length=4"]) == 0
    captured = capsysbinary.readouterr()
    assert b"1 line longer than max_source_length, cut" in captured.err
    rows = [row.split(b"\t") for row in captured.out.splitlines()]
    assert [len(row) for row in rows] == [3, 3]
    assert all(float(row[0]) < 0 < float(row[1]) for row in rows)


@pytest.mark.parametrize(("search", "num_outputs"), [("beam_size=3", 3), ("sampling=true", 1)])
def test_a_prompt_shows_the_best_of_a_beam_but_one_draw(run, monkeypatch, search, num_outputs):
    models = []
    monkeypatch.setattr(decoder_command.prompt, "converse", models.append)
    flags = ["--decode_interactive", f"--decode_hparams={search}"]
    assert decoder_command.main([NAME, f"--output_dir={run}", *flags]) == 0
    (model,) = models
    assert model.options.return_beams == num_outputs


def test_a_prompt_answers_and_survives_odd_input(run, expected, tmp_path):
    # A terminal of its own: Ctrl-C (\x03) drops a line, Ctrl-D (\x04) ends.
    main_end, child_end = pty.openpty()
    code = (
        "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "from t2t_lite.bin import decoder; sys.exit(decoder.main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, FAST, f"--output_dir={run}", "--decode_interactive"],
        stdin=child_end,
        stdout=child_end,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(child_end)
    _read_until(main_end, b"> ")
    os.write(main_end, b"he sl\x03")
    time.sleep(0.5)  # Ctrl-C may also drop what is typed right after it
    for typed in (b"caf\xe9 \x07\n", b"\n", b":n\n", b"a dog runs\n"):
        os.write(main_end, typed)
    answer = b"dog runs\r\n" + expected(["a dog runs"])[0].encode()[:4]
    rest = _read_until(main_end, answer)
    _read_until(main_end, b"\n> ", rest)  # before the prompt is back, Ctrl-D would be lost
    os.write(main_end, b"\x04")
    assert process.wait(timeout=60) == 0
    assert "a dog runs" in (tmp_path / "t2t-lite" / "history").read_text()


def _read_until(descriptor, wanted, seen=b""):
    """Read on from `seen` until `wanted` came; return what came after it."""
    while wanted not in seen:
        assert select.select([descriptor], [], [], 60)[0], f"no {wanted!r} in {seen!r}"
        seen += os.read(descriptor, 1024)
    return seen.partition(wanted)[2]


def test_a_splits_unknown_language_is_told_in_the_figures_own_lines(tmp_path, capsys):
    run = tiny_run.write(tmp_path, problem="parallel_text")
    for name in ("train.source", "train.target", "dev.source", "dev.target"):
        (tmp_path / name).write_text("\n".join(tiny_run.SENTENCES))
    problem = registry.problem("parallel_text")
    generate.generate(problem, data_dir=tmp_path / "data", raw_dir=tmp_path, vocab_size=300)
    flags = [NAME, f"--output_dir={run}", "--split=dev", FAST]
    target = tmp_path / "out.gz"
    assert decoder_command.main([*flags, f"--decode_to_file={target}"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "(English" in line]
    assert [line.split()[1] for line in lines] == ["bleu_moses", "bleu_compound_split"]
    assert target.read_bytes().startswith(b"\x1f\x8b")  # gzip's own mark
    assert decoder_command.main([*flags, "--target_language=cs"]) == 0
    out = capsys.readouterr().out
    assert "English" not in out
    assert "tok:moses-cs" in out


def test_a_corpus_whose_names_tell_the_language_is_scored_by_it(tmp_path, capsys):
    run = tiny_run.write(tmp_path, problem="parallel_text")
    for name in ("train.en-fr/a.en", "train.en-fr/a.fr", "dev.en-fr/b.en", "dev.en-fr/b.fr"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(tiny_run.SENTENCES))
    (tmp_path / "dev.en-fr" / "b.fr").write_bytes(b"caf\xe9\n" + b"a\n" * 4)
    problem = registry.problem("parallel_text")
    generate.generate(problem, data_dir=tmp_path / "data", raw_dir=tmp_path, vocab_size=300)
    flags = [NAME, f"--output_dir={run}", "--split=dev", FAST]
    assert decoder_command.main(flags) == 0
    done = capsys.readouterr()
    assert "tok:moses-fr" in done.out
    assert "1 of 5 references of dev have U+FFFD" in done.err
    assert decoder_command.main([*flags, "--target_language=de"]) == 0
    done = capsys.readouterr()
    assert "tok:moses-de" in done.out
    assert "--target_language=de: the data's targets are fr" in done.err
