"""A loaded model belongs to the process that loaded it.

TensorFlow's threads do not come along into a forked process, where the first operation would wait
for them for ever.
"""

import os
from typing import NoReturn

from t2t_lite import errors

_REMEDY = "load it in each process, with multiprocessing's start method 'spawn'"


class OneProcess:
    """What refuses to be pickled, and to be used after a fork."""

    def __init__(self) -> None:
        self._process = os.getpid()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a loaded model cannot be pickled: {_REMEDY}")

    def require_process(self) -> None:
        """Raise UserError where this process is not the one that loaded the model."""
        if os.getpid() != self._process:
            raise errors.UserError(f"TensorFlow hangs after a fork with a loaded model: {_REMEDY}")
