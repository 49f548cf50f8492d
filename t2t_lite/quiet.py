"""Silence for libraries that print messages a user of a command does not need."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

from t2t_lite import errors


def silence(descriptor: int) -> None:
    """Send a file descriptor whose reader has gone to /dev/null, so that writing cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


@contextlib.contextmanager
def hidden_stderr() -> Iterator[None]:
    """Hide what libraries and their processes print to standard error.

    It is printed after all if an exception other than UserError is raised.
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
