"""t2t-lite-evalb: its report is that of the original EVALB."""

import json
import re

import pytest

from t2t_lite.bin import evalb as evalb_command
from t2t_lite.parsing import evalb, trees

GOLD = ["(S (NP (NN a)) (VP (VB b)))", "(S (NP (NN c)) (. .))", "(S (NN d))", "(S (NN e))"]
PREDICTED = ["(S (NP (NN a)) (X (VB b)))", "(S (NP (NN c)) (. .))", "", "(S (NN e)"]


@pytest.fixture
def files(tmp_path):
    for name, lines in (("gold", GOLD), ("predicted", PREDICTED)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def _run(capsys, folder, *args):
    sides = [f"--gold={folder / 'gold'}", f"--predicted={folder / 'predicted'}"]
    status = evalb_command.main(["t2t-lite-evalb", *sides, *args])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def _score(parameters=evalb.COLLINS):
    gold = [tuple(trees.read([line])) for line in GOLD]
    return evalb.score(gold, [*(tuple(trees.read([p])) for p in PREDICTED[:3]), None], parameters)


def test_prints_the_report_and_the_errors(capsys, files):
    status, out, err = _run(capsys, files)
    assert (status, out) == (0, evalb.report(_score()) + "\n")
    assert "Bracketing FMeasure       =  80.00" in out  # 4 of 5 brackets on both sides
    assert err.startswith(f"sentence 4 is an error: {files / 'predicted'}, line 4: the tree that")
    assert err.count("\n") == 1


def test_per_sentence_adds_the_table(capsys, files):
    _, out, _ = _run(capsys, files, "--per_sentence")
    assert out == evalb.report(_score(), per_sentence=True) + "\n"
    assert "   1    2    0   66.67  66.67     2      3    3      0      2     2   100.00" in out


def test_json_holds_the_same_figures(capsys, files):
    _, out, _ = _run(capsys, files, "--json")
    found = json.loads(out)
    assert found.keys() == {"all", "up_to_cutoff", "cutoff_length"}
    assert found["all"]["f1"] == pytest.approx(80)
    assert found["all"]["num_errors"] == found["all"]["num_skipped"] == 1
    _, out, _ = _run(capsys, files, "--json", "--per_sentence")
    statuses = [sentence["status"] for sentence in json.loads(out)["sentences"]]
    assert statuses == ["valid", "valid", "skipped", "error"]


def test_params_names_a_parameter_file(capsys, files):
    (files / "my.prm").write_text("LABELED 0\nCUTOFF_LEN 1\nDELETE_LABEL .\n")
    _, out, _ = _run(capsys, files, f"--params={files / 'my.prm'}")
    assert "Bracketing FMeasure       = 100.00" in out
    assert "-- len<=1 --" in out


def test_brackets_without_words_are_none(capsys, files):
    lines = ["(S (NP (NN a)) (VP (VB b)) (NP))", "(())", "(TOP)", "(S (() (NN e)))"]
    (files / "predicted").write_text("".join(line + "\n" for line in lines))
    status, out, err = _run(capsys, files, "--json", "--per_sentence")
    found = [(s["status"], s["matched"]) for s in json.loads(out)["sentences"]]
    assert found == [("valid", 3), ("skipped", 0), ("skipped", 0), ("error", 0)]
    assert status == 0
    assert err.endswith("a bracket inside another needs a label\n")


@pytest.mark.parametrize(
    ("contents", "flags", "message"),
    [
        (
            {"gold": "(S (NP (NN a)\n(VP (VB b))))\n"},
            [],
            "gold, line 1: .*expected one gold tree a line",
        ),
        ({"predicted": "\n" * 5}, [], "sentence 5 has no gold one"),
        ({"gold": "", "predicted": ""}, [], "are empty; expected trees"),
        ({}, ["--params=nowhere.prm"], "nowhere.prm"),
        (
            {"my.prm": "DELETE TOP\n"},
            ["--params=my.prm"],
            "my.prm, line 1: unknown keyword 'DELETE'",
        ),
    ],
)
def test_mistakes_are_one_line(capsys, files, monkeypatch, contents, flags, message):
    monkeypatch.chdir(files)
    for name, content in contents.items():
        (files / name).write_text(content)
    status, out, err = _run(capsys, files, *flags)
    assert (status, out) == (1, "")
    assert re.fullmatch(f"t2t-lite-evalb: .*{message}.*\n", err)


def test_missing_flags_are_a_usage_error(capsys):
    assert evalb_command.main(["t2t-lite-evalb"]) == 2
    assert "--gold and --predicted must be given" in capsys.readouterr().err
