"""Figures of the dev split: the best weights are chosen by the first score, the task's own."""

import pytest
import tiny_run

from t2t_lite.train import evaluator


@pytest.mark.parametrize(
    ("reference", "output", "language", "names"),
    [
        ("Ein alter Hund läuft hier .", "Ein alter Hund läuft dort .", "de", ["BLEU", "chrF2"]),
        ("alter Hund .", "alter Mund .", "de", ["chrF2", "BLEU"]),  # without 4-grams BLEU is 0
        ("两个年轻人在街上走着。", "两个年轻人在街上。", "zh", ["BLEU-zh", "chrF2"]),
        ("两个年轻人在街上走着。", "两个年轻人在街上。", "", ["BLEU-char", "chrF2"]),
    ],
)
def test_the_first_score_compares_checkpoints_and_the_next_decides_between_equal_ones(
    reference, output, language, names
):
    metrics = tiny_run.task().metrics([reference], language)
    scores = {name: metric([output]) for name, metric in metrics.items()}
    figures = evaluator.Figures(2.0, 0.5, scores)
    assert list(scores) == names
    assert figures.best_by == (scores[names[0]], scores[names[1]], -2.0)
    assert 0 < scores[names[0]] < 100
    assert metrics[names[0]]([reference]) == pytest.approx(100)
    assert figures.scalars()["chrf2"] == scores["chrF2"]
    assert str(figures).endswith("  ".join(f"{name} {scores[name]:.2f}" for name in names))


def test_without_decoding_the_lower_loss_is_better():
    figures = evaluator.Figures(2.0, 0.5, {})
    assert figures.best_by == (-2.0,)
    assert str(figures).endswith("accuracy 0.5000")
