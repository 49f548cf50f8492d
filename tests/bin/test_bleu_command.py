"""t2t-lite-bleu: its figures are those of evaluate/bleu, its lines those of the files."""

import gzip
import json

import pytest

from t2t_lite.bin import bleu as bleu_command
from t2t_lite.evaluate import bleu

HYPOTHESES = ["Das ist ein kleines Haus .", "Sie kam gestern an .", "Er sieht es nicht ."]
REFERENCES = ["Das ist ein kleines Haus .", "Sie kam heute an .", "Er sieht es nicht ."]


@pytest.fixture
def files(tmp_path):
    paths = {}
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES)):
        paths[name] = tmp_path / f"{name}.de"
        paths[name].write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return paths


def _run(capsys, *args):
    status = bleu_command.main(["t2t-lite-bleu", *args])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def _sides(files):
    return [f"--translation={files['hyp']}", f"--reference={files['ref']}"]


def test_prints_a_line_for_each_score_or_json(capsys, files):
    status, out, err = _run(capsys, *_sides(files), "--target_language=de")
    expected = bleu.scores(HYPOTHESES, REFERENCES, target_language="de")
    assert (status, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert rows == [[f"{s.value:.2f}", s.name, s.signature] for s in expected]
    _, out, _ = _run(capsys, *_sides(files), "--target_language=de", "--json")
    figures = {s.name: {"value": s.value, "signature": s.signature} for s in expected}
    assert json.loads(out) == {"lines": 3, "scores": figures}


def test_several_references_count_together_and_one_is_needed(capsys, files):
    second = f"--reference={files['hyp']}"
    status, out, _ = _run(capsys, *_sides(files), second, "--target_language=de")
    assert status == 0
    assert out.startswith("100.00  bleu_13a             nrefs:2|")
    status, _, err = _run(capsys, *_sides(files)[:1])
    assert status == 2
    assert "--reference must be given" in err


def test_only_line_feeds_end_a_line(capsys, files):
    for name, end in (("hyp", "\u2028"), ("ref", " ")):
        text = f"a b{end}c d\x0ce\n\nlast".encode()
        files[name] = files[name].with_suffix(".gz")
        files[name].write_bytes(gzip.compress(text))
    status, out, _ = _run(capsys, *_sides(files), "--json")
    assert status == 0
    result = json.loads(out)
    assert result["lines"] == 3
    assert result["scores"]["bleu_moses"]["value"] == pytest.approx(100)


def test_lossy_lines_and_an_unknown_language_are_told(capsys, files):
    files["hyp"].write_bytes(b"caf\xe9\nb\nc\n")
    status, out, err = _run(capsys, *_sides(files))
    remark = "(English rules: no --target_language was given)"
    assert status == 0
    assert [remark in line for line in out.splitlines()] == [False] * 4 + [True] * 2
    assert err.count("\n") == 2
    assert "hyp.de: 1 of 3 lines not valid UTF-8" in err
    assert "give --target_language" in err
