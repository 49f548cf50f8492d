"""Folders that are elsewhere: gs://, s3://, hdfs:// and all other addresses that fsspec knows.

Commands work on a copy of this machine, so nothing else knows of addresses. It lies in
~/.cache/t2t-lite/copies ($XDG_CACHE_HOME instead of ~/.cache, if that is set) and remembers what it
is a copy of: only what is new or has changed there is copied again. In both directions a file
appears when it is complete, and a manifest after all that it names.
"""

import contextlib
import hashlib
import json
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from t2t_lite import errors, locks, machine, progress
from t2t_lite.text import text_files

_RECORD = ".copied.json"
_MANIFEST = ".manifest.json"


def is_remote(path: str | None) -> bool:
    """Whether a path is an address, such as gs://bucket/folder."""
    return "://" in (path or "")


def local(path: str, copies: str | None = None, *, may_be_new: bool = False) -> str:
    """Return a folder of this machine as it is; of one that is elsewhere its copy, up to date.

    `copies` is where copies lie, if not as above. Raises UserError where the folder cannot be read,
    or holds nothing and is not one that `may_be_new`.
    """
    if not is_remote(path):
        return path
    copy = _Copy(path, copies)
    with copy.at_work():
        if not copy.fetch() and not may_be_new:
            raise errors.UserError(f"{path} holds no files")
    return str(copy.folder)


def send(path: str, names: Sequence[str], copies: str | None = None) -> None:
    """Write files of a folder's copy to where it is; UserError where that cannot be done.

    The last of the names is that of the file which says that all are there.
    """
    copy = _Copy(path, copies)
    with copy.at_work():
        copy.send(names)


class _Copy:
    """A copy, with a record of [what a file there is, size and time of its copy] by name."""

    def __init__(self, url: str, copies: str | None):
        self._url = url.rstrip("/")
        digest = hashlib.sha256(self._url.encode()).hexdigest()[:12]
        parent = pathlib.Path(copies) if copies else machine.cache_dir() / "copies"
        self.folder = parent / f"{self._url.rpartition('/')[2]}-{digest}"

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Reach the folder and have the copy for this process alone."""
        import fsspec  # takes a while

        try:
            with locks.only_one(self.folder / ".lock", wait=True):
                self._files, self._root = fsspec.url_to_fs(self._url)
                path = self.folder / _RECORD
                self._record: dict[str, list[Any]] = (
                    json.loads(path.read_text()) if path.exists() else {}
                )
                yield
        except errors.UserError:
            raise
        except Exception as error:  # each service has errors of its own
            raise errors.UserError(f"{self._url}: {error or type(error).__name__}") from error

    def fetch(self) -> int:
        """Copy what is new or has changed there, and remove what is there no more; return how many
        files there are."""
        there = self._there()
        for name in self._record.keys() - there.keys():
            if self._record[name][1] == self._here(name):  # otherwise it is work not yet sent
                (self.folder / name).unlink()
            self._remember(name, None)
        new = [
            name
            for name in sorted(there, key=lambda name: (name.endswith(_MANIFEST), name))
            if self._record.get(name, [None])[0] != there[name] or self._here(name) is None
        ]
        for name in self._shown(new, "from"):
            with text_files.replacing(self.folder / name) as file:
                self._files.get_file(f"{self._root}/{name}", file.name)
            self._remember(name, there[name])
        return len(there)

    def send(self, names: Sequence[str]) -> None:
        """Write what is new here; without the last of the names for as long as not all is there."""
        there, last = self._there(), names[-1]
        new = [
            name
            for name in names
            if name not in there or self._record.get(name) != [there[name], self._here(name)]
        ]
        if not new:
            return
        if last in there:
            self._files.rm_file(f"{self._root}/{last}")
            self._remember(last, None)
        self._files.makedirs(self._root, exist_ok=True)
        sent = []
        try:
            for name in self._shown([*(name for name in new if name != last), last], "to"):
                self._files.put_file(str(self.folder / name), f"{self._root}/{name}")
                sent.append(name)
        finally:  # what has arrived is not sent again
            there = self._there()
            for name in sent:
                self._remember(name, there[name])

    def _there(self) -> dict[str, str]:
        """Return what tells a state of a file from another, by the name of each file there is."""
        self._files.invalidate_cache()
        infos = self._files.find(self._root, detail=True)
        return {
            name.removeprefix(self._root).lstrip("/"): hashlib.sha256(
                repr(sorted(info.items(), key=str)).encode()
            ).hexdigest()
            for name, info in infos.items()
        }

    def _here(self, name: str) -> list[int] | None:
        """Return size and time of a file of the copy, None where it is not there."""
        try:
            status = (self.folder / name).stat()
        except FileNotFoundError:
            return None
        return [status.st_size, status.st_mtime_ns]

    def _remember(self, name: str, there: str | None) -> None:
        """Record that a file and its copy are the same, or with None forget the file."""
        if there is None:
            self._record.pop(name, None)
        else:
            self._record[name] = [there, self._here(name)]
        text_files.write_json(self.folder / _RECORD, self._record)

    def _shown(self, names: Sequence[str], way: str) -> Iterator[str]:
        """Yield the names, and show how many have been worked on."""
        if not names:
            return
        title = f"files {way} {self._url}"
        with progress.Progress(title, stream=sys.stderr, announce=True) as shown:
            for number, name in enumerate(names, 1):
                yield name
                shown.update(number, len(names))
