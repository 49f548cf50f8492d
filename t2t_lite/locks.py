"""Lock files: one process works on a folder, others are told so or wait."""

import contextlib
import os
import pathlib
import socket
from collections.abc import Iterator

import filelock

from t2t_lite import errors

_PATIENCE = 1.0  # seconds: on a busy machine a killed process takes a moment to be gone


@contextlib.contextmanager
def only_one(
    path: pathlib.Path,
    *,
    otherwise: str = "wait for it",
    keep_folder: bool = True,
    wait: bool = False,
) -> Iterator[None]:
    """Hold the lock file `path`; raise UserError with what to do `otherwise`, or wait.

    A killed process leaves the file behind, but not the lock. When the work is over the file is
    removed, and with `keep_folder=False` its folder too if that is empty. A file system without
    locks keeps nobody out.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            patience = -1 if wait else _PATIENCE
            lock = filelock.FileLock(path, timeout=patience, fallback_to_soft=False)
            stack.enter_context(lock)
        except filelock.Timeout as error:
            raise errors.UserError(
                f"another process is at work in {path.parent} ({path.read_text().strip()}); "
                f"{otherwise}"
            ) from error
        except OSError:
            pass  # a file system without locks
        path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            if not keep_folder:
                with contextlib.suppress(OSError):
                    path.parent.rmdir()
