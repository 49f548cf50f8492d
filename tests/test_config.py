"""Hyperparameters: typed overrides, one-line errors, a file that reads back."""

import dataclasses
import re

import pytest

from t2t_lite import config, errors


def test_override_is_typed():
    changed = config.override(config.HParams(), "d_ff=4096, dropout=0.3,pre_norm=true")
    assert changed == dataclasses.replace(config.HParams(), d_ff=4096, dropout=0.3, pre_norm=True)


def test_override_of_nothing_changes_nothing():
    assert config.override(config.HParams(), "") == config.HParams()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("droput=0.3", "did you mean dropout"),
        ("d_ff=big", "--hparams: d_ff is a whole number, at least 1; got 'big'"),
        ("d_ff=1.5", "d_ff is a whole number, at least 1; got '1.5'"),
        ("pre_norm=maybe", "pre_norm is true or false; got 'maybe'"),
        ("d_ff", "expected name=value"),
        ("dropout=1.0", "dropout is a number, at least 0 and below 1; got 1.0"),
        ("dropout=nan", "dropout is a number, at least 0 and below 1; got nan"),
        ("alpha=inf", "alpha is a number, at least -10 and at most 10; got inf"),
        ("adam_beta1=2", "adam_beta1 is a number, above 0 and below 1; got 2.0"),
        ("learning_rate_scale=nan", "learning_rate_scale is a number, above 0; got nan"),
        ("max_tokens_per_device=-5", "max_tokens_per_device is a whole number, at least 0; got -5"),
        ("extra_length=-1000", "extra_length is a whole number, at least 0; got -1000"),
        ("d_ff=9999999999", "d_ff is a whole number, at least 1 and below 2^31; got 9999999999"),
        ("d_model=33", "d_model is even where positions are sinusoids, half of them sines; got 33"),
        ("next_word=2,attention_window=4", "next_word do not go with attention_window"),
        ("relative_bias=2,attention_window=4", "next_word do not go with attention_window"),
        ("num_heads=0", "num_heads is a whole number, at least 1; got 0"),
        (
            "position_encoding=rotary",
            "position_encoding is one of sinusoid, learned, sinusoid_t2t; got 'rotary'",
        ),
    ],
)
def test_wrong_overrides_say_what_was_expected(text, expected):
    with pytest.raises(errors.UserError, match=re.escape(expected)):
        config.override(config.HParams(), text)


def test_json_reads_back(tmp_path):
    parts = config.ImportedModel(first_position=2, activation="swish")
    hparams = config.HParams(dropout=0.25, position_encoding="learned", imported=parts)
    path = tmp_path / "hparams.json"
    path.write_text(config.to_json(hparams))
    assert config.from_json(path) == hparams


@pytest.mark.parametrize(
    "content",
    [
        "[1]",
        "1",
        '{"d_gg": 1}',
        '{"imported": {"eos": 1}}',
        '{"imported": 1}',
        '{"d_ff": "big"}',
        "{",
    ],
)
def test_another_file_is_no_hyperparameter_file(tmp_path, content):
    path = tmp_path / "hparams.json"
    path.write_text(content)
    with pytest.raises(errors.UserError, match=r"hparams\.json is not a hyperparameter file: "):
        config.from_json(path)


def test_a_missing_file_is_no_output_dir(tmp_path):
    with pytest.raises(errors.UserError, match="is not an output_dir"):
        config.from_json(tmp_path / "hparams.json")


def test_an_odd_width_is_for_learned_positions():
    assert config.HParams(d_model=33, position_encoding="learned").d_model == 33


def test_what_changes_nothing_that_is_learnt_is_no_difference():
    other = config.HParams(max_tokens_per_device=99, beam_size=9, train_steps=9, alpha=0)
    assert config.difference(config.HParams(), other) == ""
    assert config.model(other) == config.model(config.HParams(dropout=0.5))
    assert config.model(other) != config.model(config.HParams(pre_norm=True))


def test_difference_names_both_values():
    other = config.HParams(dropout=0.3)
    assert config.difference(config.HParams(), other) == "dropout 0.1 -> 0.3"
    assert config.difference(other, other) == ""
