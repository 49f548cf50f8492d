"""Shows the docstrings, which are plain text, on the API page.

Sphinx reads docstrings as reStructuredText, in which a star or a trailing underscore is markup and
an indented example is a quotation. Here they are made what they look like:

    Return `x` * 2 of x_.    -->    Return ``x`` \\* 2 of x\\_.

Indented text after a blank line becomes a literal block; sections such as "Args:" are Napoleon's.
"""

import re
from typing import Any

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):$")


def setup(app: Any) -> dict[str, bool]:
    """Register the extension; before Napoleon, which has priority 500."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_restructured_text(lines)
    if what in ("attribute", "data", "property"):
        # Napoleon takes what is before a colon in their first line for a type: give it another.
        lines.insert(0, "\\ ")


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out a NamedTuple's fields, whose docstrings are "Alias for field number 0"."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def to_restructured_text(lines: list[str]) -> list[str]:
    """Return a docstring's lines as reStructuredText."""
    made: list[str] = []
    in_section = in_literal = in_doctest = False
    for number, line in enumerate(lines):
        is_indented = line.startswith(" ")
        after_blank = number == 0 or not lines[number - 1].strip()
        if line.strip() and not is_indented:
            in_section = bool(_SECTION.match(line))
            in_literal = False
        in_doctest = line.startswith(">>>") or (in_doctest and bool(line.strip()))
        if is_indented and after_blank and not in_section and not in_literal:
            in_literal = True
            made += ["::", ""]
        made.append(line if in_literal or in_doctest else _escape(line))
    return made


def _escape(line: str) -> str:
    """Return a line of text without accidental markup; `code` becomes ``code``."""
    parts = re.split(r"`+([^`]+)`+", line)
    for place, part in enumerate(parts):
        is_code = place % 2
        parts[place] = f"``{part}``" if is_code else re.sub(r"(\*|\||_(?!\w))", r"\\\1", part)
    return "".join(parts)
