"""Figures of the dev split: the best weights are chosen by the first score, the task's own."""

import tiny_run

from t2t_lite.train import evaluator


def test_translations_are_compared_by_bleu_beside_which_chrf_is_watched():
    scores = tiny_run.task().scores(
        ["Ein alter Hund läuft dort ."], ["Ein alter Hund läuft hier ."]
    )
    figures = evaluator.Figures(2.0, 0.5, scores)
    assert list(scores) == ["BLEU", "chrF"]
    assert figures.best_by == scores["BLEU"] != scores["chrF"]
    assert figures.scalars()["chrf"] == scores["chrF"]
    assert str(figures).endswith(f"BLEU {scores['BLEU']:.2f}  chrF {scores['chrF']:.2f}")


def test_without_decoding_the_lower_loss_is_better():
    figures = evaluator.Figures(2.0, 0.5, {})
    assert figures.best_by == -2.0
    assert str(figures).endswith("accuracy 0.5000")
