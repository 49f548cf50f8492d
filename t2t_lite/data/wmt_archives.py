"""The WMT archives as TensorFlow Datasets knows them: names, checksums, contents.

From TFDS come the addresses, the checksums and the names of the files inside. The archives are
fetched, checked and read here, streaming: TFDS itself holds whole members in memory, gives archives
names of its own, and writes all text twice more, which for 41 million pairs is no small thing.
"""

import dataclasses
import functools
import gzip
import http.client
import io
import os
import pathlib
import shutil
import socket
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import IO, Any, cast
from urllib import parse

from t2t_lite import errors, locks, progress
from t2t_lite.text import bitexts, text_files

_TIMEOUT = 5  # seconds in which a host must answer
_STALL = 60  # seconds after which a download that brings nothing is given up
_BLOCK = 1 << 20


class Archives:
    """The archives of one TFDS configuration, e.g. "wmt14_translate/de-en"."""

    def __init__(self, config: str):
        self.config = config
        self._checked: dict[tuple[str, str], dict[str, pathlib.Path]] = {}
        self._members: dict[tuple[pathlib.Path, str], IO[bytes]] = {}

    def placed(self, raw_dir: str | os.PathLike[str]) -> list[pathlib.Path]:
        """Return the archives in raw_dir; raise UserError with what to download."""
        paths = self._paths(raw_dir)
        missing = [url for url, path in paths.items() if not path.is_file()]
        if missing:
            raise errors.UserError(
                f"{raw_dir} lacks {', '.join(paths[url].name for url in missing)}: "
                f"download {' and '.join(missing)} into it"
            )
        return list(paths.values())

    def read(
        self,
        split: str,
        *,
        languages: tuple[str, str],
        raw_dir: str | os.PathLike[str] | None,
        tmp_dir: str | os.PathLike[str],
    ) -> Iterator[tuple[str, str]]:
        """Yield a split's pairs ("train", "validation" or "test").

        The archives are taken from raw_dir, or else downloaded into tmp_dir/downloads, where they
        stay. Each is compared with its checksum once. Raises UserError at once where there is no
        network.
        """
        places = str(raw_dir), str(tmp_dir)
        if places not in self._checked:
            paths = self._fetch(pathlib.Path(tmp_dir)) if raw_dir is None else self._paths(raw_dir)
            for url, path in paths.items():
                self._check(url, path)
            self._checked[places] = paths
        subsets = {str(name): subsets for name, subsets in self._builder.subsets.items()}
        for subset in subsets[split]:
            members = self._unpack(subset, self._checked[places], pathlib.Path(tmp_dir))
            # TFDS gives the source language first, and English second.
            sides = members if languages[0] == self._source else members[::-1]
            yield from text_files.read_pairs(*sides, read=_lines)

    @functools.cached_property
    def _builder(self) -> Any:
        import tensorflow_datasets as tfds

        return tfds.builder(self.config, try_gcs=False)

    @property
    def _source(self) -> str:
        """The language beside English by which TFDS names everything."""
        return self._builder.builder_config.language_pair[0]

    def _paths(self, folder: str | os.PathLike[str]) -> dict[str, pathlib.Path]:
        """Return every archive's URL and its path in a folder."""
        from tensorflow_datasets.translate import wmt

        subsets = [name for names in self._builder.subsets.values() for name in names]
        urls = [url for name in subsets for url in wmt.DATASET_MAP[name].get_url(self._source)]
        names = {url: pathlib.PurePosixPath(parse.urlsplit(url).path).name for url in urls}
        return {url: pathlib.Path(folder) / name for url, name in names.items()}

    def _fetch(self, tmp_dir: pathlib.Path) -> dict[str, pathlib.Path]:
        """Download what is not there yet, and return every archive's path."""
        paths = self._paths(tmp_dir / "downloads")
        missing = [url for url, path in paths.items() if not path.is_file()]
        _require_network(missing)
        for url in missing:
            with locks.only_one(paths[url].with_suffix(".lock")):
                if not paths[url].is_file():
                    _download(url, paths[url])
        return paths

    def _check(self, url: str, path: pathlib.Path) -> None:
        """Raise UserError where an archive is not the one that TFDS knows.

        One that TFDS has no checksum of is believed the first time, and its checksum is written
        beside it, as `sha256sum` writes it.
        """
        digest = text_files.sha256(path)
        beside = path.with_name(path.name + ".sha256")
        known = self._builder.url_infos.get(url)
        if known is None and not beside.is_file():
            try:
                text_files.write_lines(beside, [f"{digest}  {path.name}"])
            except OSError:  # a folder that is only read: the manifest has the checksum too
                return
        expected = known.checksum if known else beside.read_text().partition(" ")[0].strip()
        if digest != expected:
            which = "that WMT published" if known else f"whose checksum is in {beside.name}"
            raise errors.UserError(
                f"{path} is not the one {which}: expected SHA-256 {expected}, got {digest}; "
                f"remove it and get it again from {url}"
            )

    def _unpack(
        self, subset: str, paths: dict[str, pathlib.Path], tmp_dir: pathlib.Path
    ) -> list["_Member"]:
        """Return a subset's two files, copied out of their archives in one pass over each.

        The copies have no name, so that nothing of them stays however this process ends.
        """
        from tensorflow_datasets.translate import wmt

        described = wmt.DATASET_MAP[subset]
        names, urls = described.get_path(self._source), described.get_url(self._source)
        archives = [paths[url] for url in urls] * (len(names) // len(urls))
        for archive in dict.fromkeys(archives):
            wanted = {name for name, place in zip(names, archives) if place == archive}
            missing = wanted - {name for place, name in self._members if place == archive}
            for name, file in _copied(archive, missing, tmp_dir).items():
                self._members[archive, name] = file
        return [
            _Member(archive, name, self._members[archive, name])
            for archive, name in zip(archives, names)
        ]


@dataclasses.dataclass(frozen=True)
class _Member:
    """A file of an archive, and its copy."""

    archive: pathlib.Path
    name: str
    file: IO[bytes]

    def __str__(self) -> str:
        return f"{self.archive}: {self.name}"

    def __fspath__(self) -> str:  # for a message
        return str(self)


class _FromStart(io.RawIOBase):
    """Reads an open file from its start, whoever else is reading it."""

    def __init__(self, file: IO[bytes]):
        self._file, self._position = file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = os.pread(self._file.fileno(), len(buffer), self._position)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _lines(member: Any) -> Iterator[str]:
    with text_files.explain_damage(member):
        file: Any = io.BufferedReader(_FromStart(member.file), _BLOCK)
        if member.name.endswith(".gz"):
            file = gzip.GzipFile(fileobj=file)
        lines = text_files.decode_lines(file, name=member)
        is_sgml = text_files.plain_name(member.name).endswith(".sgm")
        yield from bitexts.segments(lines, member) if is_sgml else lines


def _copied(archive: pathlib.Path, names: set[str], tmp_dir: pathlib.Path) -> dict[str, IO[bytes]]:
    """Return nameless copies of some members of an archive; UserError where it lacks one."""
    copies: dict[str, IO[bytes]] = {}
    tmp_dir.mkdir(parents=True, exist_ok=True)
    with (
        text_files.explain_damage(archive),
        text_files.open_binary(archive) as file,
        tarfile.open(fileobj=file, mode="r|", bufsize=_BLOCK) as tar,
    ):
        for entry in tar:
            name = os.path.normpath(entry.name)
            if name in names and entry.isfile():
                copies[name] = tempfile.TemporaryFile(dir=tmp_dir)  # noqa: SIM115 (it is returned)
                shutil.copyfileobj(cast(IO[bytes], tar.extractfile(entry)), copies[name], _BLOCK)
                copies[name].flush()
            if copies.keys() == names:
                break
    if copies.keys() != names:
        raise errors.UserError(f"{archive} lacks {', '.join(sorted(names - copies.keys()))}")
    return copies


def _require_network(urls: Sequence[str]) -> None:
    """Raise UserError within seconds where a host of what is to be downloaded does not answer."""
    if urllib.request.getproxies():
        return  # the hosts are asked by way of another
    for host in sorted({parse.urlsplit(url).netloc for url in urls}):
        try:
            socket.create_connection((host, 80), timeout=_TIMEOUT).close()
        except OSError as error:
            raise errors.UserError(
                f"cannot reach {host} ({error}): download {' and '.join(urls)} "
                "by other means and give their folder as --raw_dir"
            ) from error


def _download(url: str, path: pathlib.Path) -> None:
    """Download a file, from where an earlier download of it stopped.

    It appears under its name when it is complete.
    """
    part = path.with_name(path.name + ".incomplete")
    try:
        _download_rest(url, part)
    except (OSError, http.client.HTTPException) as error:
        if part.exists() and isinstance(error, urllib.error.HTTPError) and error.code == 416:
            part.unlink()  # there is no rest: an earlier one was killed just before the renaming
            return _download(url, path)
        raise errors.UserError(
            f"cannot download {url} ({error}): the same command goes on from here; or download it "
            "by other means and give the folder of all archives as --raw_dir"
        ) from error
    part.replace(path)


def _download_rest(url: str, part: pathlib.Path) -> None:
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    with urllib.request.urlopen(request, timeout=_STALL) as answer:
        done = done if answer.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        total = done + int(answer.headers.get("Content-Length", 0))
        part.parent.mkdir(parents=True, exist_ok=True)
        with (
            open(part, "ab" if done else "wb") as file,
            progress.Progress(f"download {part.stem} (MiB)", stream=sys.stderr) as shown,
        ):
            while block := answer.read(_BLOCK):
                file.write(block)
                done += len(block)
                shown.update(done >> 20, total >> 20)
            os.fsync(file.fileno())
    if done < total:
        raise ConnectionError(f"it ended after {done:,} of {total:,} bytes")
