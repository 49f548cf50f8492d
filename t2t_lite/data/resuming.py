"""Whether generation begins, goes on or is done: a data_dir is made for one request only.

A request says what the bytes follow from, {"options": {...}, "raw_files": [...]}. The folder of the
unfinished work holds it, with the versions, in request.json, and the manifest when all is finished;
data of another request are refused with what differs.
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
from t2t_lite.text import text_files


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
    made_from = {"options": finished.options, "raw_files": finished.raw_files}
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
    path, plan = work_dir / "request.json", work_dir / "plan.json"
    request = {**request, "versions": versions()}
    if path.exists() and plan.exists() and not finished.exists():
        old = json.loads(path.read_text("utf-8"))
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
    text_files.write_json(path, request)


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
    old_order, new_order = (
        ", ".join(file["name"] for file in request["raw_files"]) for request in (old, new)
    )
    old, new = (
        {
            **request["options"],
            **request.get("versions", {}),
            **{f"file {f['name']}": f"{f['bytes']} bytes {f['sha256'][:8]}" for f in files},
        }
        for request in (old, new)
        for files in [request["raw_files"]]
    )
    differences = [
        f"{key} {old.get(key, 'absent')} -> {new.get(key, 'absent')}"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]
    if not differences and old_order != new_order:
        differences = [f"files {old_order} -> {new_order}"]
    if differences:
        raise errors.UserError(
            f"{where} made otherwise: {', '.join(differences)}; give another --data_dir, "
            "the same flags and files as then, or --overwrite"
        )


def versions() -> dict[str, str]:
    """Return what may change the bytes: of the format and of SentencePiece."""
    return {
        "t2t_lite_data": str(manifest.FORMAT),
        "sentencepiece": importlib.metadata.version("sentencepiece"),
    }
