"""Journals of interrupted jobs: a damaged one costs what it held, never a wrong output."""

from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite.decode import journal

_JOB = {"model": "m", "options": {"beam_size": 4}}
_LINES = [f"line {i}" for i in range(7)]
_LINES_OF_JSON = ["[0, 1]", "[0, 1, 2]", '[0, 1, "x", 2, []]', '[true, "x"]', '[-1, "x"]', "[]"]
_LINES_OF_JSON += ["[" * 9_000, inputs.DIGITS, '{"lines": 3.0, "sha256": ""}']
_LINES_OF_JSON += ['{"lines": -1, "sha256": null}', '{"lines": 1e999, "sha256": ""}']
_CHUNKS = [b"\n", b"\xff", *(f"\n{line}\n".encode() for line in _LINES_OF_JSON)]


def _run(target, lines, size, *, stop_after=None):
    """Do the job "line in capitals" by a journal; return its outputs, None where it is stopped."""
    windows = [lines[start : start + size] for start in range(0, len(lines), size)]
    with journal.Journal(target, _JOB) as kept:
        for number, window in enumerate(windows):
            results = kept.begin(window)
            missing = [place for place in range(len(window)) if place not in results]
            for done, place in enumerate(missing):
                if stop_after == (number, done):
                    return None
                kept.add([(place, journal.Result(window[place].upper()))])
        outputs = list(kept.outputs())
        kept.delete()
    return outputs


def _partial(folder, stop_after=(2, 0)):
    """Return the bytes of an interrupted job's journal."""
    target = _clear(folder / "interrupted")
    _run(target, _LINES, 3, stop_after=stop_after)
    return target.with_name("interrupted.partial").read_bytes()


def _resumed(folder, content):
    """Return the outputs of a job that resumes from a journal of these bytes."""
    target = _clear(folder / "damaged")
    target.with_name("damaged.partial").write_bytes(content)
    return _run(target, _LINES, 3)


def _clear(target):
    for path in target.parent.glob(f"{target.name}.partial*"):
        path.unlink()
    return target


@given(st.data())
def test_a_damaged_journal_has_an_output_for_every_line(folder, data):
    valid = [_partial(folder), _partial(folder, stop_after=(1, 1))]
    valid += [valid[0].replace(b'"lines": 3,', b'"lines": %s,' % n) for n in (b"3.0", b"3e0", b"4")]
    valid += [valid[0].replace(b'"lines": 1,', b'"lines": true,') + b"[true, 1]\n[false, 0]\n"]
    content = data.draw(inputs.damaged(valid, chunks=_CHUNKS))
    with inputs.answered():
        outputs = _resumed(folder, content)
        assert outputs and len(outputs) == len(_LINES)  # noqa: PT018


@given(st.data())
def test_a_cut_anywhere_and_a_block_of_zeros_cost_no_output(folder, data):
    content = _partial(folder)
    start, end = sorted(data.draw(st.integers(0, len(content))) for _ in range(2))
    tail = data.draw(st.sampled_from([b"", b"\0" * 50, b"\xff\xfe", b"\n", b"[1, "]))
    zeros = content[:start] + b"\0" * (end - start) + content[end:]
    for damaged in (content[:start] + tail, zeros):
        with inputs.answered():
            assert _resumed(folder, damaged) == [line.upper() for line in _LINES]


_some_lines = st.lists(st.text(max_size=3), max_size=8)


@given(_some_lines, _some_lines, st.integers(0, 8), st.integers(1, 3), st.integers(0, 3))
def test_other_lines_have_their_own_outputs(folder, old, new, kept, size, stop):
    target = _clear(folder / "changed")
    _run(target, old, size, stop_after=(stop, 0))
    new = old[:kept] + new
    with inputs.answered():
        assert _run(target, new, size) == [line.upper() for line in new]
