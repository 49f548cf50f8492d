"""Names for problems and hyperparameter sets (standard library only).

Content registers itself when it is imported:

    @registry.register_problem
    class Wmt14Ende(problem.TranslationProblem): ...     # "wmt14_ende" (and "wmt14_ende_rev")

    @registry.register_hparams
    def transformer_big() -> config.HParams: ...         # "transformer_big"

and is found by name: `registry.problem("wmt14_ende")`, `registry.hparams("transformer_big")`.
"""

import difflib
import importlib
import importlib.util
import inspect
import os
import pathlib
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from t2t_lite import errors

_PROBLEMS: dict[str, Callable[[], Any]] = {}
_HPARAMS: dict[str, Callable[[], Any]] = {}
_USER_DIRS: list[pathlib.Path] = []
_CONTENT = ("t2t_lite.problems", "t2t_lite.hparams")

_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound=Callable[[], Any])


def snake_case(name: str) -> str:
    """Return the registry's form of a class name: "Wmt14Ende" -> "wmt14_ende"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def register_problem(cls: _Class) -> _Class:
    """Register a problem class under its snake case name, and its `_rev` if it has one."""
    name = snake_case(cls.__name__)
    _register(_PROBLEMS, "problem", name, cls)
    if hasattr(cls, "reversed_problem"):
        _register(_PROBLEMS, "problem", f"{name}_rev", lambda: cls().reversed_problem())
    return cls


def register_hparams(function: _Function) -> _Function:
    """Register a function that returns HParams under its own name."""
    _register(_HPARAMS, "hparams set", function.__name__, function)
    return function


def problem(name: str) -> Any:
    """Return an instance of the problem called `name`; raise UserError with the close matches."""
    return _find(_PROBLEMS, "problem", name)()


def hparams(name: str) -> Any:
    """Return the hyperparameter set called `name`; raise UserError with the close matches."""
    return _find(_HPARAMS, "hparams set", name)()


def problems() -> Mapping[str, str]:
    """Return every problem's name with one line about it."""
    return _summaries(_PROBLEMS)


def hparams_sets() -> Mapping[str, str]:
    """Return every hyperparameter set's name with one line about it."""
    return _summaries(_HPARAMS)


def load(package: str) -> None:
    """Import every module of `package` so that its content registers itself."""
    try:
        imported = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise errors.UserError(f"{package} is not installed: run `pip install -e .`") from error
    for module in pkgutil.iter_modules(imported.__path__):
        importlib.import_module(f"{package}.{module.name}")


def load_user_dir(directory: str) -> None:
    """Import a user's own folder of problems and hyperparameter sets (`--t2t_usr_dir`).

    The folder is imported as a package under its own name, with or without an `__init__.py`, so
    its modules may import each other relatively. Raises UserError if it is not a folder, or for a
    mistake in its code.
    """
    path = pathlib.Path(os.path.abspath(pathlib.Path(directory).expanduser()))
    if not path.is_dir():
        raise errors.UserError(f"--t2t_usr_dir={directory} is not a folder")
    name = path.name  # of the link, if it is one
    if not name.isidentifier():
        raise errors.UserError(f"--t2t_usr_dir={directory}: its name must be a Python identifier")
    spec = importlib.util.find_spec(name)  # of the loaded module, where it is loaded
    folders = (spec.submodule_search_locations or []) if spec else [path]
    if not any(path.samefile(folder) for folder in folders if os.path.exists(folder)):
        raise errors.UserError(
            f"--t2t_usr_dir={directory}: there is another Python module {name}; rename the folder"
        )
    if name in sys.modules:
        return
    sys.path.insert(0, str(path.parent))
    _USER_DIRS.append(path)
    try:
        load(name)
    except Exception as error:
        for module in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
            del sys.modules[module]  # so that the next call loads it again
        _forget(name)
        raise errors.UserError(
            f"--t2t_usr_dir={directory}: {user_mistake(error) or error}"
        ) from error
    finally:
        sys.path.remove(str(path.parent))


def _forget(package: str) -> None:
    """Remove everything that a package has registered."""
    for registered in (_PROBLEMS, _HPARAMS):
        for name, entry in list(registered.items()):
            if f"{entry.__module__}.".startswith(f"{package}."):
                del registered[name]
                registered.pop(f"{name}_rev", None)


def user_mistake(error: BaseException) -> str | None:
    """Return an error and its place in a user's own folder; None if it is elsewhere.

    "problems/mine.py, line 3: NameError: name 'x' is not defined"
    """
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno))
        text = f"{type(error).__name__}: {error.msg}"
    elif isinstance(error, errors.UserError):
        text = str(error)
    for filename, line in reversed(places):
        if any(pathlib.Path(filename).is_relative_to(folder) for folder in _USER_DIRS):
            return f"{filename}, line {line}: {text}"
    return None


def _register(table: dict[str, Callable[[], Any]], kind: str, name: str, entry: Any) -> None:
    if name in table:
        raise errors.UserError(f"{kind} {name!r} is registered twice; rename one of the two")
    table[name] = entry


def _find(table: Mapping[str, Callable[[], Any]], kind: str, name: str) -> Callable[[], Any]:
    for package in _CONTENT:
        load(package)
    if name not in table:
        close = difflib.get_close_matches(name, table, n=3)
        meant = f"; did you mean {' or '.join(close)}?" if close else ":"
        raise errors.UserError(
            f"unknown {kind} {name!r}{meant} --registry_help lists all, and --t2t_usr_dir=FOLDER "
            "adds your own"
        )
    return table[name]


def _summaries(table: Mapping[str, Callable[[], Any]]) -> Mapping[str, str]:
    for package in _CONTENT:
        load(package)
    return {name: _summary(name, table) for name in sorted(table)}


def _summary(name: str, table: Mapping[str, Callable[[], Any]]) -> str:
    if name.endswith("_rev") and name.removesuffix("_rev") in table:
        return f"{name.removesuffix('_rev')} with source and target swapped."
    return (inspect.getdoc(table[name]) or "").partition("\n")[0]
