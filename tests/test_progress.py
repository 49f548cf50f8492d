"""Progress: plain lines now and then, a bar on a terminal, nothing where nobody looks."""

import io

import pytest

from t2t_lite import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that stands still until a test moves it."""
    seconds = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds[0])
    return seconds


def test_plain_lines_come_now_and_then(clock):
    stream = io.StringIO()
    with progress.Progress("sentences", stream=stream) as shown:
        for done in (10, 20, 40, 60):
            clock[0] += 20
            shown.update(done, 100, figures="7 tokens/s")
    # After 40 seconds 20 are done, 80 are left: 160 s; after 80 seconds 60, 40 left: 53 s. The
    # time that is left is not guessed in the first 30 seconds. After 60 seconds the last line is 20
    # seconds old, of the 30 that are between two.
    assert stream.getvalue().splitlines() == [
        "sentences 10/100  7 tokens/s",
        "sentences 20/100  7 tokens/s  2:40 left",
        "sentences 60/100  7 tokens/s  0:53 left",
    ]


def test_the_first_plain_lines_come_soon(clock):
    stream = io.StringIO()
    shown = progress.Progress("step", stream=stream)
    for second in range(1, 71):
        clock[0] += 1
        shown.update(second)
    seconds = [int(line.split()[1]) for line in stream.getvalue().splitlines()]
    assert seconds == [1, 2, 4, 8, 16, 32, 62]


def test_the_time_left_is_without_what_was_done_before_or_of_the_seconds_that_each_takes(clock):
    stream = io.StringIO()
    shown = progress.Progress("step", stream=stream, first=900)
    clock[0] += 36
    shown.update(910, 2000)
    clock[0] += 40
    shown.update(920, 1040, seconds_each=0.5)
    lines = stream.getvalue().splitlines()
    assert lines == ["step 910/2000  1:05:24 left", "step 920/1040  1:00 left"]


def test_the_last_line_is_not_left_out_and_a_total_may_be_unknown(clock):
    stream = io.StringIO()
    shown = progress.Progress("read text", stream=stream, announce=True)
    shown.update(5)
    shown.update(6, is_last=True)
    assert stream.getvalue() == "read text\nread text 6\n"


def test_a_terminal_has_a_bar_that_lines_do_not_tear():
    stream = Terminal()
    with progress.Progress("encode", stream=stream, announce=True) as shown:
        shown.update(50, 200, figures="7 tokens/s")
        shown.line("dev: good")
        shown.update(200, 200)
    text = stream.getvalue()
    assert "encode:  25%" in text
    assert "50/200" in text
    assert "7 tokens/s" in text
    assert "dev: good\n" in text
    assert "encode\n" not in text


def test_nothing_is_shown_where_there_is_no_stream(capsys):
    with progress.Progress("step", stream=None, announce=True) as shown:
        shown.update(1, 1, is_last=True)
        shown.line("text")
    assert capsys.readouterr() == ("", "")
