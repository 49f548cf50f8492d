"""Names of TensorFlow's checkpoints, whoever wrote them."""

import pathlib
import re

from t2t_lite import errors


def prefix(path: pathlib.Path) -> pathlib.Path:
    """Return the checkpoint's prefix that a path means; of a folder the newest one's.

    Raises UserError where there is none.
    """
    plain = re.sub(r"\.(index|meta|data-\d{5}-of-\d{5})$", "", path.name)
    if (path.parent / f"{plain}.index").is_file():
        return path.parent / plain
    if not path.is_dir():
        raise errors.UserError(f"there is no checkpoint {path}: it has no file {plain}.index")
    prefixes = [index.with_suffix("") for index in path.glob("*.index")]
    if not prefixes:
        raise errors.UserError(f"{path} holds no checkpoint: expected a file *ckpt-*.index")
    return max(prefixes, key=lambda prefix: (number(prefix), prefix.name))


def number(prefix: pathlib.Path) -> int:
    """Return the step in a checkpoint's name, 0 where there is none."""
    match = re.search(r"-(\d{1,15})$", prefix.name)
    return int(match[1]) if match else 0
