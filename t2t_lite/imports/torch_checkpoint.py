"""Files of PyTorch, which the extra `fairseq` installs."""

import argparse
import pathlib
import re
from typing import Any

import numpy as np

from t2t_lite import errors


def load(path: pathlib.Path) -> dict[str, Any]:
    """Return the content of fairseq's file, the tensors of its entry "model" as arrays.

    Raises UserError where PyTorch is not installed, and where the file is damaged or holds anything
    else.
    """
    content = _content(path, otherwise="")
    tensors = content.get("model") if isinstance(content, dict) else None
    if not isinstance(tensors, dict) or not tensors:
        raise errors.UserError(f"{path} is not a checkpoint of fairseq: it has no entry 'model'")
    return {**content, "model": _arrays(tensors)}


def tensors(path: pathlib.Path, *, otherwise: str) -> dict[str, np.ndarray]:
    """Return the tensors of a state_dict as arrays; see `load`.

    `otherwise` is what else to do where PyTorch is not installed.
    """
    content = _content(path, otherwise=otherwise)
    if not isinstance(content, dict) or not content:
        raise errors.UserError(f"{path} is not the file of a model: expected tensors by their name")
    return _arrays(content)


def _content(path: pathlib.Path, *, otherwise: str) -> Any:
    """Return the content of a file of torch.save.

    A pickle can run any code when it is loaded: `weights_only` restricts it to tensors, containers,
    numbers and, here, the Namespace of a command's arguments.
    """
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise errors.UserError(
            f"PyTorch reads {path.name}, and it cannot be imported ({_reason(error)}): "
            f"run pip install 't2t-lite[fairseq]'{otherwise and ', '}{otherwise}"
        ) from error
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise errors.UserError(f"there is no file {path}{errors.missing_folder(path)}") from error
    except Exception as error:  # a damaged pickle may raise anything
        raise errors.UserError(f"cannot read {path}: {_reason(error)}") from error


def _arrays(tensors: Any) -> dict[str, np.ndarray]:
    return {str(name): _array(name, tensor) for name, tensor in tensors.items()}


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
