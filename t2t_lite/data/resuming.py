"""Decides whether generation begins, resumes or is done. A data_dir belongs to one request.

A request is all that the bytes depend on: {"options": {...}, "raw_files": [...], "versions":
{...}}. plan.json in the folder of unfinished work records it, and so does the manifest of finished
data. A different request is refused with a list of the differences.
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
    """Return the finished data of this request, None if there are none.

    Raises UserError for data of another request. Files are checked by size, with `hashes` by
    content.
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
    """Make sure that work_dir holds unfinished work of this request or nothing.

    Raises UserError if it holds work of another request or if data_dir holds shards without a
    manifest. With `overwrite` the other work is removed here, finished data by `clear`.
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
    """Remove finished data. Called when the new request has passed all checks."""
    # The manifest goes first, so that it never lists files that are gone.
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
    """Return the versions that the bytes depend on: of the format and of SentencePiece."""
    return {
        "t2t_lite_data": str(manifest.FORMAT),
        "sentencepiece": importlib.metadata.version("sentencepiece"),
    }
