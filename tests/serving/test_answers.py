"""Answers of signatures as translations."""

import pytest

from t2t_lite import errors
from t2t_lite.serving import answers

BEST = {
    "outputs": ["x", "y"],
    "scores": [-1.0, -2.0],
    "finished": [True, False],
    "truncated": [False, True],
}


def _nbest(outputs, scores):
    row = {"outputs": outputs, "scores": scores, "finished": [True] * len(outputs)}
    return {"truncated": [False], **{name: [values] for name, values in row.items()}}


def test_places_of_nbest_that_no_hypothesis_fills_are_left_out():
    (found,) = answers.translations(_nbest(["x", "y", ""], [-1.0, -2.0, answers.NO_SCORE]))
    assert [hypothesis.text for hypothesis in found.hypotheses] == ["x", "y"]


def test_a_blank_text_has_one_blank_output():
    (found,) = answers.translations(_nbest(["", "", ""], [0.0, 0.0, 0.0]))
    assert len(found.hypotheses) == 1


def test_a_text_without_an_output_is_a_users_mistake():
    with pytest.raises(errors.UserError, match="gives no output"):
        answers.translations(_nbest(["", ""], [answers.NO_SCORE] * 2))


@pytest.mark.parametrize(
    "changes",
    [{"outputs": [1, 2]}, {"scores": ["a", "b"]}, {"finished": None}, {"scores": [-1.0]}],
)
def test_other_answers_are_refused(changes):
    with pytest.raises((TypeError, ValueError)):
        answers.translations({**BEST, **changes})
