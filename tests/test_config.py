"""Hyperparameters: typed overrides, one-line errors, a file that reads back."""

import dataclasses

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
        ("d_ff=big", "d_ff is int, got 'big'"),
        ("d_ff=1.5", "d_ff is int"),
        ("pre_norm=maybe", "pre_norm is bool"),
        ("d_ff", "expected name=value"),
        ("dropout=1.0", "dropout is at least 0 and below 1"),
        ("num_heads=0", "num_heads is positive"),
        ("position_encoding=rotary", "position_encoding is one of"),
    ],
)
def test_wrong_overrides_say_what_was_expected(text, expected):
    with pytest.raises(errors.UserError, match=expected):
        config.override(config.HParams(), text)


def test_json_reads_back(tmp_path):
    hparams = config.HParams(dropout=0.25, position_encoding="learned")
    path = tmp_path / "hparams.json"
    path.write_text(config.to_json(hparams))
    assert config.from_json(path) == hparams


def test_a_missing_file_is_no_output_dir(tmp_path):
    with pytest.raises(errors.UserError, match="is no output_dir"):
        config.from_json(tmp_path / "hparams.json")


def test_difference_names_both_values():
    other = config.HParams(dropout=0.3)
    assert config.difference(config.HParams(), other) == "dropout 0.1 -> 0.3"
    assert config.difference(other, other) == ""
