"""Options as dataclasses: each field has its default, help and bounds in one place.

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class SearchOptions:
        beam_size: int = fields.option(4, "Beams; 1 is greedy decoding.", at_least=1)
        precision: Literal["float32", "bfloat16"] = fields.option("float32", "Type of weights.")

        def __post_init__(self) -> None:
            fields.check(self)

SearchOptions(beam_size=0) raises "beam_size is a whole number, at least 1; got 0". bin/command.py
makes flags and help from such a class, `parse_changes` reads "beam_size=8,precision=bfloat16".
A field is a bool, int, float, str or Literal of strings, or one of these or None.
"""

import contextlib
import dataclasses
import difflib
import math
import numbers
import shlex
import typing
from collections.abc import Iterable, Sequence
from typing import Any

from t2t_lite import errors

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_TOO_LARGE = 1 << 31  # whole numbers become int32 tensors
_KINDS = {
    bool: ("true or false", bool),
    int: ("a whole number", numbers.Integral),
    float: ("a number", numbers.Real),
    str: ("text", str),
}


def option(
    default: Any,
    help: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    **metadata: Any,
) -> Any:
    """Return a dataclass field with help, bounds and further metadata."""
    bounds = {"above": above, "at least": at_least, "below": below, "at most": at_most}
    metadata = {"help": help, "bounds": bounds, **metadata}
    return dataclasses.field(default=default, metadata=metadata)


def same_as(options_class: type, name: str, *, help: str) -> Any:
    """Return a field with the default and bounds of another class's field."""
    original = by_name(options_class)[name]
    metadata = {**original.metadata, "help": help}
    return dataclasses.field(default=original.default, metadata=metadata)


def help_of(options_class: type, name: str) -> str:
    """Return the help of the field called `name`."""
    return by_name(options_class)[name].metadata["help"]


def kind(field: dataclasses.Field) -> type:
    """Return bool, int, float or str, the type of a field's values: int for `int | None`."""
    if choices(field):
        return str
    kinds = [each for each in typing.get_args(field.type) if each is not type(None)]
    return kinds[0] if kinds else typing.cast(type, field.type)


def choices(field: dataclasses.Field) -> Sequence[str]:
    """Return the values of a Literal field; nothing for other types."""
    is_literal = typing.get_origin(field.type) is typing.Literal
    return typing.get_args(field.type) if is_literal else ()


def expectation(field: dataclasses.Field) -> str:
    """Return a field's allowed values: "one of auto, on, off" or "a number, above 0"."""
    if choices(field):
        return f"one of {', '.join(choices(field))}"
    bounds = [f"{words} {bound}" for words, bound in _bounds(field).items()]
    return ", ".join(filter(None, [_KINDS[kind(field)][0], " and ".join(bounds)]))


def check(options: Any) -> None:
    """Raise UserError for the first field whose value is not allowed."""
    for name, field in by_name(type(options)).items():
        _check(field, getattr(options, name))


def parse(field: dataclasses.Field, text: str) -> Any:
    """Return the value written as `text`; raise UserError as `check` does."""
    value: Any = text
    with contextlib.suppress(ValueError, KeyError):  # then the text itself is refused
        value = _TRUTHS[text.strip().lower()] if kind(field) is bool else kind(field)(text)
    _check(field, value)
    return value


def parse_changes(options_class: type, text: str, *, flag: str) -> dict[str, Any]:
    """Return {name: value} for `name=value,name=value`, each value with its field's type.

    'beam_size=8, prefix="Ja, das"' --> {"beam_size": 8, "prefix": "Ja, das"}

    Raises UserError that begins with `flag` for an unknown name (with close matches) or a value
    that is not allowed.
    """
    known = by_name(options_class)
    changes: dict[str, Any] = {}
    for item in _items(text, flag):
        name, equals, value = item.partition("=")
        name = name.strip()
        if not equals:
            raise errors.UserError(f"{flag}: expected name=value, got {item!r}")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known)}"
            raise errors.UserError(f"{flag}: unknown name {name!r}; {hint}")
        try:
            changes[name] = parse(known[name], value)
        except errors.UserError as error:
            raise errors.UserError(f"{flag}: {error}") from None
    return changes


def _items(text: str, flag: str) -> list[str]:
    """Split at commas that are not within double quotes."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split = ",", True
    lexer.quotes, lexer.escape, lexer.commenters = '"', "", ""
    try:
        return [item for item in lexer if item]
    except ValueError:
        raise errors.UserError(f"{flag}: a double quote is opened and not closed") from None


def refuse_unknown(options_class: type, values: Iterable[str], path: object) -> None:
    """Raise UserError if the file at `path` has fields that the class does not have."""
    names = {field.name for field in dataclasses.fields(options_class)}
    if unknown := sorted(set(values) - names):
        raise errors.UserError(
            f"{path} has {', '.join(unknown)}, which this version of t2t-lite does not know: it is "
            "of a later version"
        )


def by_name(options_class: type) -> dict[str, dataclasses.Field]:
    """Return the fields made by `option`; others, as a nested dataclass, check themselves."""
    fields = dataclasses.fields(options_class)
    return {field.name: field for field in fields if "bounds" in field.metadata}


def _bounds(field: dataclasses.Field) -> dict[str, float]:
    return {words: bound for words, bound in field.metadata["bounds"].items() if bound is not None}


def _check(field: dataclasses.Field, value: Any) -> None:
    if not _accepts(field, value):
        limit = " and below 2^31" if kind(field) is int and len(str(value)) > 9 else ""
        raise errors.UserError(f"{field.name} is {expectation(field)}{limit}; got {value!r}")


def _accepts(field: dataclasses.Field, value: Any) -> bool:
    if value is None:
        return type(None) in typing.get_args(field.type)
    if choices(field):
        return value in choices(field)
    is_flag = isinstance(value, bool)  # a bool is an int in Python
    if not isinstance(value, _KINDS[kind(field)][1]) or is_flag != (kind(field) is bool):
        return False
    if kind(field) is float and not _is_finite(value):
        return False
    if kind(field) is int and abs(value) >= _TOO_LARGE:
        return False
    holds = {
        "above": lambda bound: value > bound,
        "at least": lambda bound: value >= bound,
        "below": lambda bound: value < bound,
        "at most": lambda bound: value <= bound,
    }
    return all(holds[words](bound) for words, bound in _bounds(field).items())


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int too large for a float
        return False
