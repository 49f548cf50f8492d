"""Options: what a field takes, from Python and as text; every field has a reader."""

import dataclasses
import math
import pathlib
import re
from typing import Literal

import numpy as np
import pytest

from t2t_lite import config, errors, fields
from t2t_lite.data import options as data_options
from t2t_lite.decode import options as decode_options
from t2t_lite.text import cleaning
from t2t_lite.train import options as train_options

ROOT = pathlib.Path(__file__).parents[1]
CODE = ("t2t_lite", "problems", "hparams")
OPTIONS = [
    config.HParams,
    config.ImportedModel,
    decode_options.DecodeOptions,
    train_options.TrainerOptions,
    data_options.GeneratorOptions,
    cleaning.Cleaning,
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dinner:
    guests: int = fields.option(2, "At the table.", at_least=1)
    salt: float = fields.option(0.5, "Of a spoon.", above=0, at_most=1)
    wine: Literal["red", "white"] = fields.option("red", "Poured.")
    dessert: bool = fields.option(True, "Served.")
    toast: str = fields.option("", "Spoken.")
    courses: int | None = fields.option(None, "The house's unless given.", below=9)

    def __post_init__(self):
        fields.check(self)


GOOD = [
    ("guests", "7", 7),
    ("salt", "1", 1.0),
    ("salt", "1e-3", 0.001),
    ("wine", "white", "white"),
    ("dessert", "False", False),
    ("dessert", "1", True),
    ("toast", "to us", "to us"),
    ("courses", "8", 8),
]
BAD = [
    ("guests", "0", 0, "guests is a whole number, at least 1; got "),
    ("guests", "two", "two", "guests is a whole number, at least 1; got "),
    ("guests", "1.5", 1.5, "guests is a whole number, at least 1; got "),
    ("guests", "true", True, "guests is a whole number, at least 1; got "),
    ("salt", "0", 0, "salt is a number, above 0 and at most 1; got "),
    ("salt", "1.01", 1.01, "salt is a number, above 0 and at most 1; got "),
    ("salt", "nan", math.nan, "salt is a number, above 0 and at most 1; got "),
    ("wine", "rose", "rose", "wine is one of red, white; got "),
    ("dessert", "maybe", 2, "dessert is true or false; got "),
    ("courses", "9", 9, "courses is a whole number, below 9; got "),
]


def _field(name):
    return {field.name: field for field in dataclasses.fields(Dinner)}[name]


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_a_text_and_its_value_are_taken(name, text, value):
    parsed = fields.parse(_field(name), text)
    assert (parsed, type(parsed)) == (value, type(value))
    Dinner(**{name: value})


@pytest.mark.parametrize(("name", "text", "value", "message"), BAD)
def test_a_wrong_text_and_a_wrong_value_get_the_same_line(name, text, value, message):
    with pytest.raises(errors.UserError, match=re.escape(message)):
        fields.parse(_field(name), text)
    with pytest.raises(errors.UserError, match=re.escape(message)):
        Dinner(**{name: value})


def test_numbers_of_numpy_and_whole_numbers_for_others_are_taken():
    Dinner(guests=np.int64(3), salt=np.float32(0.5))  # pyright: ignore[reportArgumentType]
    Dinner(salt=1, courses=None)


def test_changes_begin_with_the_flag():
    assert fields.parse_changes(Dinner, "guests=3, toast= x", flag="--menu") == {
        "guests": 3,
        "toast": " x",
    }
    for text, message in [
        ("guest=3", "--menu: unknown name 'guest'; did you mean guests?"),
        ("zzz=3", "--menu: unknown name 'zzz'; known: guests, salt, wine"),
        ("guests", "--menu: expected name=value, got 'guests'"),
        ("guests=0", "--menu: guests is a whole number, at least 1; got 0"),
    ]:
        with pytest.raises(errors.UserError, match=re.escape(message)):
            fields.parse_changes(Dinner, text, flag="--menu")


@pytest.mark.parametrize("options_class", OPTIONS)
def test_defaults_are_taken_and_every_field_has_help(options_class):
    options_class()
    for field in dataclasses.fields(options_class):
        assert field.metadata["help"].endswith("."), field.name


def test_every_field_has_a_reader():
    """What a class checks of its own fields, and flags, do not count: `FLAGS.beam_size` is none."""
    reads = set()
    for path in (path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text("utf-8")
        text = re.sub(r"    def __post_init__.*?\n(?=\n|    \S|\S)", "", text, flags=re.DOTALL)
        reads |= set(re.findall(r"(?<!FLAGS)\.(\w+)\b(?! = )", text))
        reads |= set(re.findall(r'getattr\(\w+, "(\w+)"', text))
    for options_class in OPTIONS:
        for field in dataclasses.fields(options_class):
            assert field.name in reads, f"{options_class.__name__}.{field.name}"
