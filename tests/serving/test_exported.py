"""An export used from Python: mistakes, and the Translator's outputs also for what is not text."""

import pickle

import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.serving import exported


@pytest.fixture(scope="module")
def loaded(export_dir):
    return exported.load(export_dir)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda export: export.nbest("a dog"), "expected a list of texts, got one text"),
        (lambda export: export.score(["a"], "b"), "expected a list of targets, got one text"),
        (lambda export: export.score(["a"], ["b", "c"]), "expected 1 targets, .* got 2"),
        (lambda export: export.translate([["a dog"]]), r"expected a text, got \['a dog'\]"),
        (lambda export: pickle.dumps(export), "cannot be pickled"),
    ],
)
def test_mistakes_are_one_clear_error(call, says, loaded):
    with pytest.raises((TypeError, errors.UserError), match=says):
        call(loaded)


def test_lone_surrogates_read_as_the_translator_reads_them(loaded, model):
    texts = ["a \ud800 dog", "\udc00\ud83d", *tiny_run.SENTENCES[:1]]
    for own, expected in zip(loaded.translate(texts), model.translate(texts), strict=True):
        assert (own.text, own.truncated) == (expected.text, expected.truncated)
        assert own.score == pytest.approx(expected.score, abs=1e-5)
