"""Whether generation begins, goes on or is done: a data_dir is made for one request only.

A request says what the bytes follow from, {"options": {...}, "raw_files": [...], "versions":
{...}}. plan.json in the folder of unfinished work holds it, and the manifest of finished data; data
of another request are refused with what differs.
"""

import importlib.metadata
import json
import pathlib
import shutil
from typing import Any

from t2t_lite import errors
from t2t_lite.data import data_dir as data_dirs
from t2t_lite.data import manifest, shards
from t2t_lite.data import problem as problems


def existing(
    problem: problems.Problem,
    data_dir: pathlib.Path,
    request: dict[str, Any],
    *,
    hashes: bool = False,
) -> data_dirs.Data | None:
    """Return the finished data if they are what is asked for; None if there are none.

    Their files are checked, with `hashes` whole and otherwise by their sizes.
    """
    if not (data_dir / manifest.file_name(problem.base_name)).exists():
        return None
    finished = data_dirs.read(data_dir, problem)
    made_from = {**request, "options": finished.options, "raw_files": finished.raw_files}
    _refuse_difference(f"{data_dir} holds {problem.base_name}", made_from, request)
    finished.check_files(hashes=hashes)
    return finished


def begin(
    problem: problems.Problem,
    data_dir: pathlib.Path,
    work_dir: pathlib.Path,
    request: dict[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Make sure that work_dir continues this request and no other.

    UserError where it was begun for another one or data_dir holds shards without a manifest; with
    `overwrite` the other work goes at once, what is finished with `clear`.
    """
    finished = data_dir / manifest.file_name(problem.base_name)
    plan = work_dir / "plan.json"
    if plan.exists() and not finished.exists():
        old = json.loads(plan.read_text("utf-8"))["request"]
        if old == request:
            return
        if not overwrite:
            where = f"{work_dir} holds an unfinished {problem.base_name}"
            _refuse_difference(where, old, request)
    for shard in shards.find(data_dir, problem.base_name, "*"):
        if not overwrite:
            raise errors.UserError(
                f"{data_dir} holds {shard.name}, which no manifest speaks for; "
                "give another --data_dir or remove it with --overwrite"
            )
    for entry in work_dir.iterdir():
        if entry.name != "lock":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def clear(problem: problems.Problem, data_dir: pathlib.Path) -> None:
    """Remove the data that others are to replace, now that nothing refuses these any more."""
    # The manifest goes first: what it speaks for is about to go.
    (data_dir / manifest.file_name(problem.base_name)).unlink(missing_ok=True)
    for shard in shards.find(data_dir, problem.base_name, "*"):
        shard.unlink()
    for half_written in data_dir.glob(f"{problem.base_name}-*.incomplete"):
        half_written.unlink()


def _refuse_difference(where: str, old: dict, new: dict) -> None:
    """Raise UserError that names what differs between two requests."""
    old, new = _flat(old), _flat(new)
    differences = [
        f"{key} {old.get(key, 'absent')} -> {new.get(key, 'absent')}"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]
    if differences:
        raise errors.UserError(
            f"{where} made otherwise: {', '.join(differences)}; give another --data_dir, "
            "the same flags and files as then, or --overwrite"
        )


def _flat(request: dict[str, Any]) -> dict[str, Any]:
    files = request["raw_files"]
    return {
        **request["options"],
        **request["versions"],
        **{f"file {file['name']}": f"{file['bytes']} bytes {file['sha256'][:8]}" for file in files},
        "files": ", ".join(file["name"] for file in files),
    }


def versions() -> dict[str, str]:
    """Return what may change the bytes: of the format and of SentencePiece."""
    return {
        "t2t_lite_data": str(manifest.FORMAT),
        "sentencepiece": importlib.metadata.version("sentencepiece"),
    }
