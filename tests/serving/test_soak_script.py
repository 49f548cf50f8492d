"""scripts/soak.py: few requests pass, and a wrong answer would be seen."""

import pytest

from scripts import soak
from t2t_lite.serving import exported


@pytest.mark.slow
def test_few_requests_pass_and_wrong_answers_are_seen(export_dir, monkeypatch, capsys):
    flags = [f"--export_dir={export_dir}", "--requests=60"]
    assert soak.main(flags) == 0
    assert capsys.readouterr().out == "0 problems\n"
    translate = exported.Translator.translate
    monkeypatch.setattr(
        exported.Translator, "translate", lambda self, texts: translate(self, [f"{texts[0]} a"])
    )
    monkeypatch.setattr(soak, "_GROWTH", -1_000_000)
    assert soak.main(flags) == 1
    said = capsys.readouterr()
    assert int(said.out.split()[0]) > 10
    assert "memory grew" in soak.through_graph(export_dir, ["a"], [0] * 40)[-1]
