"""Files of a treebank: in folders, compressed, or inside tar archives.

`find` lists the files of trees below a folder and inside its archives, and `read` yields their
trees, cleaned. A file holds Penn-style trees, one a line or broken into lines:

    02/wsj_0201.mrg    wsj_0201.mrg.gz    penn.tgz: penn/11319941.tree
"""

import contextlib
import dataclasses
import functools
import gzip
import itertools
import os
import pathlib
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator

from t2t_lite import errors
from t2t_lite.parsing import trees
from t2t_lite.text import text_files

# of a file of trees, before .gz or the like
SUFFIXES = (".mrg", ".tree", ".trees", ".txt", ".ptb", ".clean")
ARCHIVES = (".tgz", ".tar.gz", ".tar")


@dataclasses.dataclass(frozen=True, order=True)
class File:
    """A file of trees: its `path`, or an archive's `path` and the `member` in it."""

    path: pathlib.Path
    member: str = ""

    @property
    def stem(self) -> str:
        """The name without folders and endings: "wsj_0201"."""
        name = pathlib.PurePosixPath(self.member or self.path.name).name
        return text_files.plain_name(name).rpartition(".")[0]

    @property
    def folder(self) -> str:
        """The name of the folder that the file is in."""
        return (pathlib.PurePosixPath(self.member) if self.member else self.path).parent.name

    def __str__(self) -> str:
        return f"{self.path}: {self.member}" if self.member else str(self.path)


def find(folder: str | os.PathLike[str]) -> list[File]:
    """Return all files of trees below a folder, sorted, without hidden and other files.

    Links to folders are followed. Raises UserError for a file that cannot be read in its archive.
    """
    return sorted(
        file for path in text_files.below(pathlib.Path(folder)) for file in files_of(path)
    )


def files_of(path: pathlib.Path) -> list[File]:
    """Return the files of trees in an archive, or a file of trees itself, or [] for other files."""
    if path.name.startswith("."):
        return []
    if path.name.lower().endswith(ARCHIVES):
        status = path.stat()
        return [File(path, name) for name in _members(path, status.st_size, status.st_mtime_ns)]
    return [File(path)] if _is_tree_file(path.name) else []


def read(
    files: Iterable[File], *, tmp_dir: str | os.PathLike[str] | None = None
) -> Iterator[trees.Tree | None]:
    """Yield the cleaned trees of the files, in the order given; None for a tree without words.

    An archive is decompressed into a temporary file in `tmp_dir`, so that its members can be read
    in any order. "▁" (U+2581), which the vocabulary keeps for the space, becomes "_". Raises
    UserError with the file (and the member) and the line where something is not a tree.
    """
    for path, group in itertools.groupby(files, key=lambda file: file.path):
        if not path.name.lower().endswith(ARCHIVES):
            for file in group:
                yield from _trees(file, text_files.read_lines(path))
            continue
        with text_files.explain_damage(path), _unpacked(path, tmp_dir) as archive:
            for file in group:
                yield from _trees(file, _member_lines(archive, file))


def _trees(file: File, lines: Iterable[str]) -> Iterator[trees.Tree | None]:
    lines = (line.replace("\u2581", "_") for line in lines)
    for tree in trees.read(lines, name=str(file)):
        yield trees.clean(tree)


def _is_tree_file(name: str) -> bool:
    return not name.startswith(".") and text_files.plain_name(name).lower().endswith(SUFFIXES)


@functools.lru_cache(maxsize=64)
def _members(path: pathlib.Path, size: int, modified: int) -> list[str]:
    """Return the archive's members that hold trees; size and time tell one state from another."""
    with (
        text_files.explain_damage(path),
        text_files.open_binary(path) as file,
        tarfile.open(fileobj=file, mode="r|") as archive,
    ):
        members = [
            (member.name, member.isfile())
            for member in archive
            if _is_tree_file(pathlib.PurePosixPath(member.name).name) and not member.isdir()
        ]
    for name, is_file in members:
        if not is_file or not name.lower().endswith((*SUFFIXES, ".gz")):
            what = (
                "compressed otherwise than by gzip" if is_file else "a link or the like, not a file"
            )
            raise errors.UserError(f"{path}: {name} is {what}: unpack the archive into a folder")
    return sorted(name for name, _ in members)


@contextlib.contextmanager
def _unpacked(
    path: pathlib.Path, tmp_dir: str | os.PathLike[str] | None
) -> Iterator[tarfile.TarFile]:
    if tmp_dir is not None:
        pathlib.Path(tmp_dir).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=tmp_dir) as plain:
        with text_files.open_binary(path) as file:
            shutil.copyfileobj(file, plain, 1 << 20)
        plain.seek(0)
        with tarfile.open(fileobj=plain, mode="r:") as archive:
            yield archive


def _member_lines(archive: tarfile.TarFile, file: File) -> Iterator[str]:
    member = archive.extractfile(file.member)
    assert member is not None  # `_members` lists plain files only
    with text_files.explain_damage(file), member:
        is_compressed = file.member.lower().endswith(".gz")
        lines = gzip.GzipFile(fileobj=member) if is_compressed else member
        yield from text_files.decode_lines(lines, name=file)
