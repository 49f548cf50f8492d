"""Folders whose path TensorFlow cannot take as it is.

TensorFlow looks for a checkpoint's files, and for those of a SavedModel, by a pattern, so that it
never finds those in run[1]/; and it takes paths in UTF-8 only. Such a folder gets a link for the
time of the work.
"""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator

_PATTERN = frozenset("*?[]\\")


def is_plain(path: str | os.PathLike[str]) -> bool:
    """Return whether TensorFlow takes a path as it is."""
    text = os.fspath(path)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # bytes that are not UTF-8, as os.fsdecode stands for them
        return False
    return _PATTERN.isdisjoint(text)


@contextlib.contextmanager
def folder(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yield a path of the folder that TensorFlow can take: mostly the same."""
    if is_plain(path):
        yield pathlib.Path(path)
        return
    with tempfile.TemporaryDirectory() as temporary:
        link = pathlib.Path(temporary) / "folder"
        link.symlink_to(os.path.abspath(path))
        yield link
