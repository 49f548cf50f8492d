"""How to decode: changes of the options are typed and checked."""

import re

import pytest

from t2t_lite import config, errors
from t2t_lite.decode import options


def test_changes_are_typed_by_their_fields():
    assert options.parse("beam_size=8,alpha=1") == {"beam_size": 8, "alpha": 1.0}
    assert options.parse("sampling=true") == {"sampling": True}
    assert options.parse("prefix=Das ist") == {"prefix": "Das ist"}
    assert options.parse('alpha=1,prefix="Ja, das"') == {"alpha": 1.0, "prefix": "Ja, das"}
    assert options.parse("prefix=J'ai ,beam_size=2") == {"prefix": "J'ai ", "beam_size": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beem_size=8", "did you mean beam_size"),
        ("beam_size=many", "beam_size is a whole number, at least 1; got 'many'"),
        ("beam_size", "expected name=value"),
        ('prefix="Ja, das', "a double quote is opened and not closed"),
        ("sampling=maybe", "sampling is true or false; got 'maybe'"),
    ],
)
def test_wrong_changes_say_what_was_expected(text, expected):
    with pytest.raises(errors.UserError, match=f"--decode_hparams: .*{expected}"):
        options.parse(text)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"return_beams": 5}, "return_beams is at most beam_size (4)"),
        ({"beam_size": 0}, "beam_size is a whole number, at least 1; got 0"),
        ({"temperature": 0.5}, "temperature is for sampling: add sampling=true"),
        ({"seed": 3}, "seed is for sampling"),
        ({"top_p": 0.0}, "top_p is a number, above 0 and at most 1; got 0.0"),
        ({"precision": "int3"}, "precision is one of float32, mixed, bfloat16, mixed_int8; got"),
        ({"alpha": float("nan")}, "alpha is a number, at least -10 and at most 10; got nan"),
    ],
)
def test_wrong_options_say_what_was_expected(changes, expected):
    with pytest.raises(errors.UserError, match=re.escape(expected)):
        options.DecodeOptions(**changes)


def test_a_models_hparams_come_before_the_defaults_and_changes_before_both():
    hparams = config.HParams(beam_size=21, alpha=0.3, extra_length=300)
    made = options.for_model(hparams, alpha=1.0)
    assert (made.beam_size, made.alpha, made.extra_length) == (21, 1.0, 300)
    assert options.DecodeOptions().beam_size == config.HParams().beam_size
    long = options.for_model(config.HParams(max_length=2000))
    assert (made.max_source_length, long.max_source_length) == (512, 2000)
