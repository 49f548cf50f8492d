"""Hyperparameters: typed overrides, one-line errors, a file that reads back."""

import dataclasses
import json
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
        ("alpha=inf", "alpha is a number; got inf"),
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
    hparams = config.HParams(dropout=0.25, position_encoding="learned")
    path = tmp_path / "hparams.json"
    path.write_text(config.to_json(hparams))
    assert config.from_json(path) == hparams


def test_a_file_with_a_retired_field_is_read(tmp_path):
    path = tmp_path / "hparams.json"
    path.write_text(json.dumps({"d_ff": 64, "accumulation_steps": 1}))
    assert config.from_json(path) == config.HParams(d_ff=64)


@pytest.mark.parametrize("content", ["[1]", "1", '{"d_gg": 1}', '{"d_ff": "big"}', "{"])
def test_another_file_is_no_hyperparameter_file(tmp_path, content):
    path = tmp_path / "hparams.json"
    path.write_text(content)
    with pytest.raises(errors.UserError, match=r"hparams\.json is not a hyperparameter file: "):
        config.from_json(path)


def test_a_missing_file_is_no_output_dir(tmp_path):
    with pytest.raises(errors.UserError, match="is no output_dir"):
        config.from_json(tmp_path / "hparams.json")


def test_difference_names_both_values():
    other = config.HParams(dropout=0.3)
    assert config.difference(config.HParams(), other) == "dropout 0.1 -> 0.3"
    assert config.difference(other, other) == ""
