"""Inputs that are nearly right, and what an answer to them may be.

Arbitrary bytes are refused at their first byte nearly always; what gets further is a valid file
with a few faults: bits turned over, chunks cut out, doubled or put in, the end missing, JSON with a
value of another kind.
"""

import contextlib
import json
import signal
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from t2t_lite import errors

MAX_SECONDS = 20  # of the processor, for one input: other work does not count
MAX_BYTES = 1 << 16  # of an input

# Python refuses to read a number of more than 4,300 digits, and with an error of its own.
DIGITS = "9" * 5_000
_NUMBER = "<a number of 5,000 digits>"
# What breaks a reader of JSON whatever it expects.
HOSTILE_JSON = [b"", b"null", b"[]", b"{}", b"NaN", b"1e999", b'"\\ud800"', b"\xff\xfe{\x00}\x00"]
HOSTILE_JSON += [b"[" * 50_000, b'{"a":' * 50_000, DIGITS.encode(), b"\xef\xbb\xbf{}"]

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([_NUMBER, "", "..", "/", "a\0b", "\ud800", -1, 0, 10**400, 1 << 63, 1e308])
)
json_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


@contextlib.contextmanager
def answered() -> Iterator[None]:
    """Check that an input is taken or refused by a UserError that says something, and soon."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"no answer in {MAX_SECONDS} s of the processor")

    earlier = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
    try:
        yield
    except errors.UserError as error:
        if not str(error).strip():
            raise AssertionError("the refusal says nothing") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)


@st.composite
def damaged(draw: st.DrawFn, valid: Sequence[bytes], *, chunks: Sequence[bytes] = ()) -> bytes:
    """Draw one of some valid files with up to four faults, or arbitrary bytes.

    Args:
      draw: Hypothesis's.
      valid: what to damage.
      chunks: what the format gives a meaning to, put in at times.
    """
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    data = bytearray(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(0, 4))):
        # Beginnings and ends hold what matters in most formats.
        start = draw(st.integers(0, len(data)) | st.sampled_from([0, len(data)]))
        end = start + draw(st.integers(1, 64))
        fault = draw(st.sampled_from(["flip", "cut off", "cut out", "double", "put in", "write"]))
        if fault == "flip" and data:
            data[start % len(data)] ^= 1 << draw(st.integers(0, 7))
        elif fault == "cut off":
            del data[start:]
        elif fault == "cut out":
            del data[start:end]
        elif fault == "double":
            data[start:start] = data[start:end] * draw(st.sampled_from([1, 2, 30]))
        elif fault == "put in":
            data[start:start] = draw(st.sampled_from([*chunks, b"\0", b"\n", b"\xff", b" "]))
        elif fault == "write":
            new = draw(st.binary(min_size=1, max_size=12))
            data[start : start + len(new)] = new
    return bytes(data[:MAX_BYTES])


@st.composite
def damaged_json(draw: st.DrawFn, valid: Any) -> bytes:
    """Draw a JSON document with values of another kind, names left out and names put in."""
    kind = draw(st.sampled_from(["hostile", "bytes", "other", "near", "near", "near", "near"]))
    if kind == "hostile":
        return draw(st.sampled_from(HOSTILE_JSON))
    if kind == "bytes":
        return draw(damaged([_dump(valid)], chunks=[b"{", b"}", b'"', b"null", b"1e999"]))
    if kind == "other":
        return _dump(draw(json_values))
    value = json.loads(json.dumps(valid))
    for _ in range(draw(st.integers(1, 2))):
        value = _with_fault(draw, value)
    return _dump(value)


def _with_fault(draw: st.DrawFn, value: Any) -> Any:
    """Return a JSON value that is different at one place."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 5)) == 0:
        return draw(json_values)
    key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
    fault = draw(st.sampled_from(["inside", "inside", "inside", "leave out", "put in"]))
    if fault == "inside":
        value[key] = _with_fault(draw, value[key])
    elif fault == "leave out":
        del value[key]
    elif isinstance(value, dict):
        value[draw(st.text(max_size=8) | st.sampled_from(["name", "format"]))] = draw(json_values)
    else:
        value.insert(key, draw(json_values))
    return value


def _dump(value: Any) -> bytes:
    # Python does not write such a number either.
    text = json.dumps(value).replace(json.dumps(_NUMBER), DIGITS)
    return text.encode()
