"""A lock file: of several processes at work on the same files one goes on, the others are told, or
wait."""

import contextlib
import fcntl
import os
import pathlib
import socket
from collections.abc import Iterator
from typing import IO

from t2t_lite import errors


@contextlib.contextmanager
def only_one(
    path: pathlib.Path,
    *,
    otherwise: str = "wait for it",
    keep_folder: bool = True,
    wait: bool = False,
) -> Iterator[None]:
    """Hold the lock file `path`; if another process does, UserError with what to do `otherwise`, or
    `wait`.

    A process that dies leaves the file behind, but not the lock. When the work is over the file
    goes, and its folder too if that is not to be kept and nothing came into it. On a file system
    without locks nobody is kept out.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_locked(path, otherwise, wait))
        while not _is_still_there(path, file):  # who held it before has just removed it
            file = stack.enter_context(_locked(path, otherwise, wait))
        file.truncate(0)
        print(f"process {os.getpid()} on {socket.gethostname()}", file=file, flush=True)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            if not keep_folder:
                with contextlib.suppress(OSError):
                    path.parent.rmdir()


def _locked(path: pathlib.Path, otherwise: str, wait: bool) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 (the lock lasts as long as it is open)
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise errors.UserError(
            f"another process is at work in {path.parent} ({holder}); {otherwise}"
        ) from error
    except OSError:
        pass  # a file system without locks
    return file


def _is_still_there(path: pathlib.Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
