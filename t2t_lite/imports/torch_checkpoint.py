"""Checkpoints of PyTorch, which the extra `fairseq` installs."""

import argparse
import pathlib
import re
from typing import Any

import numpy as np

from t2t_lite import errors


def load(path: pathlib.Path) -> dict[str, Any]:
    """Return the content of a file of torch.save, the tensors of its entry "model" as arrays.

    A pickle can run any code when it is loaded: `weights_only` restricts it to tensors, containers,
    numbers and, here, the Namespace of a command's arguments.

    Raises UserError where PyTorch is not installed, and where the file is damaged or holds anything
    else.
    """
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise errors.UserError(
            f"PyTorch reads fairseq's checkpoints, and it cannot be imported ({_reason(error)}): "
            "run pip install 't2t-lite[fairseq]'"
        ) from error
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise errors.UserError(f"there is no file {path}{errors.missing_folder(path)}") from error
    except Exception as error:  # a damaged pickle may raise anything
        raise errors.UserError(f"cannot read {path}: {_reason(error)}") from error
    tensors = content.get("model") if isinstance(content, dict) else None
    if not isinstance(tensors, dict) or not tensors:
        raise errors.UserError(f"{path} is not a checkpoint of fairseq: it has no entry 'model'")
    return {**content, "model": {str(name): _array(name, t) for name, t in tensors.items()}}


def _array(name: str, tensor: Any) -> np.ndarray:
    """Return a tensor's values, those of bfloat16 as float32, which NumPy has not."""
    if not hasattr(tensor, "is_floating_point"):
        raise errors.UserError(f"the model cannot be imported: {name!s:.60} is not a tensor")
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def _reason(error: Exception) -> str:
    """Return one line; PyTorch's own message about a class or function has many."""
    if refused := re.search(r" GLOBAL (\S+) (?:was not an allowed|whose module)", str(error)):
        return (
            f"it asks for {refused[1]:.80}, which weights_only does not allow. If you trust the "
            "file, load it where fairseq is installed and save its 'model' and its settings "
            "(vars of 'args', or OmegaConf.to_container of 'cfg') as plain dicts again"
        )
    if "\n" in str(error):  # advice to load it without weights_only
        return "it is damaged, or not a file of torch.save"
    return str(error)[:200] or type(error).__name__
