"""Silence for libraries that print what no user of a command wants to read."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

from t2t_lite import errors


def silence(descriptor: int) -> None:
    """Write no more to a file descriptor that nobody reads, so that nothing fails by it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


@contextlib.contextmanager
def hidden_stderr() -> Iterator[None]:
    """Hide what libraries and processes that they start print on the standard error.

    It is shown where something fails that is no UserError.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            yield
        except errors.UserError:
            raise
        except BaseException:
            hidden.seek(0)
            os.write(saved, hidden.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
