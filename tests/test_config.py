"""Hyperparameters: typed overrides, one-line errors, a file that reads back."""

import dataclasses
import re

import pytest

from t2t_lite import config, errors


def test_override_is_typed():
    changed = config.override(config.HParams(), "d_ff=4096, dropout=0.3,pre_norm=true")
    assert changed == dataclasses.replace(config.HParams(), d_ff=4096, dropout=0.3, pre_norm=True)
    assert config.override(config.HParams(), "") == config.HParams()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("droput=0.3", "did you mean dropout"),
        ("d_ff=big", "--hparams: d_ff is a whole number, at least 1; got 'big'"),
        ("dropout=1.0", "dropout is a number, at least 0 and below 1; got 1.0"),
        ("alpha=inf", "alpha is a number, at least -10 and at most 10; got inf"),
        ("d_ff=9999999999", "d_ff is a whole number, at least 1 and below 2^31; got 9999999999"),
        ("d_model=33", "d_model is even where positions are sinusoids, half of them sines; got 33"),
        ("next_word=2,attention_window=4", "next_word change attention in different ways"),
        ("attention_function=dot,attention_window=4", "change attention in different ways"),
    ],
)
def test_wrong_overrides_say_what_was_expected(text, expected):
    with pytest.raises(errors.UserError, match=re.escape(expected)):
        config.override(config.HParams(), text)


def test_json_reads_back(tmp_path):
    parts = config.ImportedModel(first_position=2, activation="swish")
    hparams = config.HParams(d_model=33, position_encoding="learned", imported=parts)
    path = tmp_path / "hparams.json"
    path.write_text(config.to_json(hparams))
    assert config.from_json(path) == hparams


CONTENTS = ["[1]", "1", '{"d_gg": 1}', '{"imported": {"eos": 1}}', '{"imported": 1}', "{", None]


@pytest.mark.parametrize("content", ['{"d_ff": "big"}', *CONTENTS])
def test_another_file_is_no_hyperparameter_file(tmp_path, content):
    path, message = tmp_path / "hparams.json", "is not an output_dir"
    if content:
        path.write_text(content)
        message = r"hparams\.json is not a hyperparameter file: "
    with pytest.raises(errors.UserError, match=message):
        config.from_json(path)


def test_what_changes_nothing_that_is_learnt_is_no_difference():
    other = config.HParams(max_tokens_per_device=99, beam_size=9, train_steps=9, alpha=0)
    assert config.difference(config.HParams(), other) == ""
    assert config.model(other) == config.model(config.HParams(dropout=0.5))
    assert config.model(other) != config.model(config.HParams(pre_norm=True))


def test_difference_names_both_values():
    other = config.HParams(dropout=0.3)
    assert config.difference(config.HParams(), other) == "dropout 0.1 -> 0.3"
    assert config.difference(other, other) == ""
