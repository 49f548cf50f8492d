"""The client's own logic; over the wire in test_loopback.py."""

import threading

import pytest

from t2t_lite import errors
from t2t_lite.serving import client


class _Clock:
    """Time that passes only in sleep."""

    def __init__(self):
        self.seconds = 0.0
        self.delays = []

    def __call__(self):
        return self.seconds

    def sleep(self, delay):
        self.delays.append(delay)
        self.seconds += delay


def _retry(send, clock, **changes):
    settings = {"timeout": 60.0, "retries": 5, **changes}
    return client.retry(send, clock=clock, sleep=clock.sleep, **settings)


def _fails(times, clock, cost=0.0):
    calls = []

    def send(left):
        calls.append(left)
        clock.seconds += cost
        if len(calls) <= times:
            raise client.Unavailable("down")
        return "answer"

    return send, calls


def test_delays_double_and_vary():
    clock = _Clock()
    send, calls = _fails(4, clock)
    assert _retry(send, clock) == "answer"
    assert len(calls) == 5
    for delay, longest in zip(clock.delays, (0.1, 0.2, 0.4, 0.8)):
        assert longest / 2 <= delay <= longest


def test_gives_up_after_the_retries_with_one_line():
    clock = _Clock()
    send, calls = _fails(9, clock)
    with pytest.raises(errors.UserError, match=r"^down \(after 3 tries\)$"):
        _retry(send, clock, retries=2)
    assert len(calls) == 3


def test_deadline_holds_for_all_tries_together():
    clock = _Clock()
    send, calls = _fails(99, clock, cost=0.4)
    with pytest.raises(errors.UserError, match="down"):
        _retry(send, clock, timeout=1.0, retries=99)
    assert clock.seconds <= 1.0 + 0.4
    assert calls[0] == 1.0
    assert calls[1] < 0.6


def test_other_errors_are_not_retried():
    def send(left):
        clock.seconds += 1
        raise errors.UserError("no such model")

    clock = _Clock()
    with pytest.raises(errors.UserError, match="no such model"):
        _retry(send, clock)
    assert clock.seconds == 1


@pytest.mark.parametrize("server", ["localhost:8500", "http://localhost:8500/", "[::1]:8500"])
def test_addresses(server):
    assert client.parse_address(server).endswith(":8500")


@pytest.mark.parametrize(
    "server", ["", "localhost", ":8500", "localhost:", "a:b", "a:0", "a:70000"]
)
def test_what_is_no_address(server):
    with pytest.raises(errors.UserError, match="host:port"):
        client.parse_address(server)


class _Echo:
    """A transport that answers in reverse order and notes how many requests wait at a time."""

    def __init__(self, wait_for):
        self._barrier = threading.Barrier(wait_for, timeout=10)
        self.sizes = []

    def predict(self, target, inputs, timeout):
        self._barrier.wait()
        texts = inputs["inputs"]
        self.sizes.append(len(texts))
        return {"outputs": [f"<{text}>" for text in texts], "scores": [0.0] * len(texts)}

    def close(self):
        pass


def test_stream_keeps_the_order_with_several_in_flight(monkeypatch):
    with client.Client("localhost:1", "m", in_flight=4, batch_size=3) as translator:
        echo = _Echo(wait_for=4)  # passes only if four requests are there at the same time
        monkeypatch.setattr(translator, "_transport", echo)
        answers = list(translator.stream(str(i) for i in range(35)))
    assert [answer.text for answer in answers] == [f"<{i}>" for i in range(35)]
    assert sorted(echo.sizes) == [2, *[3] * 11]


@pytest.mark.parametrize(
    ("status", "details", "says"),
    [
        ("NOT_FOUND", "Servable not found", "serves no model 'm'"),
        ("DEADLINE_EXCEEDED", "", "--timeout_secs"),
        ("RESOURCE_EXHAUSTED", "larger than max", "--batch_size"),
        ("INVALID_ARGUMENT", 'Serving signature name: "x" not found', "has no signature 'x'"),
        ("INTERNAL", "two\n lines", "answers INTERNAL: two lines"),
    ],
)
def test_errors_say_what_to_do(status, details, says):
    target = client.Target(name="m", signature_name="x")
    error = client._error(status, details, "host:1", target)
    assert says in str(error)
    assert "\n" not in str(error)
    assert not isinstance(error, client.Unavailable)
