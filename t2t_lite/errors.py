"""The one error type that a command answers with a single line, and words of such lines."""

import pathlib


def counted(number: int, noun: str) -> str:
    """Return "1 line" or "2,000 lines"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


class UserError(ValueError):
    """A user's mistake: the message says what was expected, what came and what to do."""


def missing_folder(path: object) -> str:
    """Return what to add to "there is no file a/b/c": ": the folder a/b is missing", or ""."""
    missing = [folder for folder in pathlib.Path(str(path)).parents if not folder.exists()]
    return f": the folder {missing[-1]} is missing" if missing else ""
