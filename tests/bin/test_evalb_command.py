"""t2t-lite-evalb: its report is that of the original EVALB."""

import json

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


def test_prints_the_report_and_the_errors(capsys, files):
    gold = [tuple(trees.read([line])) for line in GOLD]
    scored = evalb.score(gold, [*(tuple(trees.read([p])) for p in PREDICTED[:3]), None])
    status, out, err = _run(capsys, files)
    assert (status, out) == (0, evalb.report(scored) + "\n")
    assert "Bracketing FMeasure       =  80.00" in out  # 4 of 5 brackets on both sides
    assert err.startswith(f"sentence 4 is an error: {files / 'predicted'}, line 4: the tree that")
    assert err.count("\n") == 1
    _, out, _ = _run(capsys, files, "--per_sentence")
    assert out == evalb.report(scored, per_sentence=True) + "\n"
    assert "   1    2    0   66.67  66.67     2      3    3      0      2     2   100.00" in out


def test_json_holds_the_same_figures(capsys, files):
    _, out, _ = _run(capsys, files, "--json", "--per_sentence")
    found = json.loads(out)
    assert found.keys() == {"all", "up_to_cutoff", "cutoff_length", "sentences"}
    assert found["all"]["f1"] == pytest.approx(80)
    assert found["all"]["num_errors"] == found["all"]["num_skipped"] == 1
    statuses = [sentence["status"] for sentence in found["sentences"]]
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
