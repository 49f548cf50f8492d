"""The page's answers for an export: which texts are blank, and the score of a user's output."""

import dataclasses
import pathlib

import pytest

from t2t_lite.decode import forced, options
from t2t_lite.decode.translation import Hypothesis, Translation
from t2t_lite.explore import export_explorer


class _Export:
    """Answers every text with a blank output."""

    def __init__(self):
        self.path = pathlib.Path("export/1")
        self.record = {
            "checkpoint": "run/ckpt-1",
            "task": "translation",
            "options": dataclasses.asdict(options.DecodeOptions(alpha=1.0)),
        }

    def nbest(self, texts):
        hypothesis = Hypothesis(text="", score=-1.0, finished=True)
        return [Translation(hypotheses=(hypothesis,)) for _ in texts]

    def score(self, texts, targets):
        score = forced.PairScore(
            log_probability=-2.0, num_tokens=7, truncated=False, target_truncated=False
        )
        return [score for _ in texts]


def test_a_text_is_blank_by_itself_and_not_by_its_output():
    explorer = export_explorer.ExportExplorer(_Export())
    shown = explorer.translation("a dog", "ein Hund")
    assert not shown["is_blank"]
    assert shown["given"]["text"] == "ein Hund"
    assert shown["given"]["score"] == pytest.approx(-1.0)  # the penalty is (5 + 7) / 6
    assert explorer.translation(" \t")["is_blank"]
