"""The manifest, `<problem>.manifest.json`: the file that the generator writes last.

A folder without it is unfinished. It records what the data were made from (problem, options,
versions, raw files with their hashes), what was kept and what was dropped and why, every file with
its size and hash, and the histogram of lengths from which the pipeline chooses its buckets.
"""

import collections
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from t2t_lite import errors
from t2t_lite.text import text_files

FORMAT = 2


def file_name(base_name: str) -> str:
    """Return the manifest's file name, e.g. "toy_ende.manifest.json"."""
    return f"{base_name}.manifest.json"


def text_names(base_name: str, split: str) -> tuple[str, str]:
    """Return the names of a split's raw text files, e.g. "toy_ende-dev.inputs.txt"."""
    return f"{base_name}-{split}.inputs.txt", f"{base_name}-{split}.targets.txt"


def read(path: pathlib.Path) -> dict[str, Any]:
    """Return what was written; UserError where the file was damaged or edited since."""
    try:
        fields = json.loads(path.read_bytes())
        version, checksum = fields.pop("format"), fields.pop("sha256", None)
        is_intact = checksum == _checksum(fields)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise errors.UserError(f"{path} is not a manifest: {error}") from error
    if version != FORMAT:
        raise errors.UserError(
            f"{path} was written by another version of t2t-lite; generate the data again"
        )
    if not is_intact:
        raise errors.UserError(
            f"{path} was changed after it was written: its checksum differs; generate the data "
            "again with --overwrite"
        )
    return fields


def write(path: pathlib.Path, fields: dict[str, Any]) -> None:
    """Write a manifest with its checksum, one line for each small thing."""
    head = {"format": FORMAT, "sha256": _checksum(fields)}
    text = json.dumps({**head, **fields}, indent=1, ensure_ascii=False)
    # numbers of one list, e.g. a row of the histogram, on one line
    # (a string has no line break, so no list in a string begins so)
    text = re.sub(r"\[\n[\s\d,]+\]", lambda row: re.sub(r"\s+", "", row.group()), text)
    with text_files.replacing(path) as file:
        file.write(text.encode("utf-8") + b"\n")


def _checksum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def file_entries(paths: Sequence[pathlib.Path]) -> list[dict[str, Any]]:
    """Return the entries of files, each under a name of its own.

    Files that share a name have their path below the folder that all files have in common:
    02/a.mrg and 03/a.mrg, but b.mrg.
    """
    if not paths:
        return []
    times = collections.Counter(path.name for path in set(paths))
    folder = os.path.commonpath([path.parent for path in paths])
    return [
        file_entry(path, None if times[path.name] == 1 else path.relative_to(folder).as_posix())
        for path in paths
    ]


def file_entry(path: pathlib.Path, name: str | None = None) -> dict[str, Any]:
    """Return a file's name, size and SHA-256."""
    digest = text_files.sha256(path)
    name = text_files.printable(name or path.name)
    return {"name": name, "bytes": path.stat().st_size, "sha256": digest}


def difference(folder: pathlib.Path, entry: dict[str, Any], *, hashes: bool) -> str:
    """Return how a file differs from its entry, "" if it does not; T2T's files have no hash."""
    path = folder / entry["name"]
    if not path.is_file():
        return f"lacks {path.name}"
    size = path.stat().st_size
    if size != entry["bytes"]:
        return f"has {size} bytes in {path.name}, not {entry['bytes']}"
    if hashes and "sha256" in entry and text_files.sha256(path) != entry["sha256"]:
        return f"has other contents in {path.name}"
    return ""
