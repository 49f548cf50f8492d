"""Lines of text in plain or compressed files, and files that appear only when they are complete.

A line ends at "\\n" and nowhere else: a lone carriage return, a form feed or U+2028 stays inside
its line, so two sides of a corpus never drift apart.
"""

import bz2
import codecs
import contextlib
import fcntl
import functools
import glob
import gzip
import hashlib
import io
import itertools
import json
import lzma
import os
import pathlib
import re
import secrets
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, TypeVar, cast

import numpy as np
from backports import zstd

from t2t_lite import errors

REPLACEMENT = "\ufffd"  # stands for bytes that are not UTF-8
Path = str | os.PathLike[str]
_Item = TypeVar("_Item")
_MAX_LINE = 1 << 26  # bytes; a small compressed file can hold a line of any length
_OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".zst": zstd.open,
    ".bz2": bz2.open,
}
SUFFIXES = ("", *_OPENERS)

_BLOCK = 1 << 22  # bytes
_INCOMPLETE = ".incomplete"
_DAMAGE = (
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zstd.ZstdError,
    EOFError,
)


def below(folder: pathlib.Path, above: tuple[str, ...] = ()) -> Iterator[pathlib.Path]:
    """Yield the files below a folder in the order of their names, without hidden ones.

    Links to folders are followed, but for one to a folder above it.
    """
    real = os.path.realpath(folder)
    if real in above:
        return
    for path in sorted(folder.iterdir()):
        if not path.name.startswith("."):
            yield from below(path, (*above, real)) if path.is_dir() else [path]


def plain_name(name: str) -> str:
    """Return a file's name without the suffix of its compression: "x.mrg" for "x.mrg.gz"."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot + suffix.lower() in SUFFIXES[1:] else name


def printable(path: Path) -> str:
    """Return a path as text that any file can hold: bytes of it that are not UTF-8 are replaced."""
    return os.fsencode(path).decode("utf-8", errors="replace")


def open_binary(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed as its suffix says."""
    suffix = pathlib.Path(path).suffix.lower().replace(".tgz", ".gz")
    return _OPENERS.get(suffix, open)(path, "rb")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, decompressed; see `decode_lines`."""
    with explain_damage(path), open_binary(path) as file:
        yield from open_lines(file, path)


def open_lines(file: IO[bytes], path: Path) -> Iterator[str]:
    """Yield the lines of an open file, which errors call `path`."""
    return decode_lines(_bounded_lines(file, path), name=path)


def _bounded_lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield the lines of an open file; raise UserError for a line that is too long for memory."""
    lines = iter(functools.partial(file.readline, _MAX_LINE), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) == _MAX_LINE and not line.endswith(b"\n"):
            raise errors.UserError(
                f"{path}: line {number} has more than {_MAX_LINE >> 20} MB: expected text, "
                "one sentence a line"
            )
        yield line


def windows(
    items: Iterable[_Item],
    size: int,
    *,
    length: Callable[[_Item], int] = lambda item: 0,
    max_length: int = 1,
) -> Iterator[list[_Item]]:
    """Yield lists of `size` lines or other items, fewer where their lengths reach `max_length`.

    >>> list(windows("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    window, total = [], 0
    for item in items:
        window.append(item)
        total += length(item)
        if len(window) == size or total >= max_length:
            yield window
            window, total = [], 0
    if window:
        yield window


def decode_lines(
    lines: Iterable[bytes], *, name: object = "the text", at_start: bool = True
) -> Iterator[str]:
    """Yield the lines of an open file as text, without their "\\n" (or "\\r\\n").

    A byte order mark `at_start` is skipped. Bytes that are not UTF-8 become REPLACEMENT, so that
    such a line is kept and can be counted. Raises UserError, with the file's name, for UTF-16.
    """
    for line in lines:
        if at_start:
            if _is_utf16(line):
                raise errors.UserError(
                    f"{name} is UTF-16, expected UTF-8: convert it (iconv -f UTF-16 -t UTF-8)"
                )
            line, at_start = line.removeprefix(codecs.BOM_UTF8), False
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        yield line.decode("utf-8", errors="replace")


def _is_utf16(first_line: bytes) -> bool:
    """Return whether a file that begins so has a mark of UTF-16, or NUL for every other byte."""
    if first_line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    even, odd = first_line[:2000:2], first_line[1:2000:2]
    return len(even) > 3 and any(
        2 * high.count(0) > len(high) and 0 not in low for high, low in ((even, odd), (odd, even))
    )


def one_line(text: str) -> str:
    """Return a text without line breaks; the blanks around each, as of indentation, go with it.

    >>> one_line("\\n  A dog\\n  runs.\\n")
    'A dog runs.'
    """
    return re.sub(r"\s*\n\s*", " ", text).strip() if "\n" in text else text


def read_pairs(
    source: Path, target: Path, *, read: Callable[[Path], Iterator[str]] = read_lines
) -> Iterator[tuple[str, str]]:
    """Yield the lines of two files side by side; UserError if one has more than the other."""
    sources, targets = read(source), read(target)
    pairs = itertools.zip_longest(sources, targets)
    for number, (source_line, target_line) in enumerate(pairs, start=1):
        if source_line is None or target_line is None:
            longer = number + sum(1 for _ in (targets if source_line is None else sources))
            counts = (number - 1, longer) if source_line is None else (longer, number - 1)
            raise unequal(source, target, *counts)
        yield source_line, target_line


def unequal(source: Path, target: Path, num_sources: int, num_targets: int) -> errors.UserError:
    """Return the error for two sides with different numbers of lines."""
    return errors.UserError(
        f"the two sides differ in length: {source} has {errors.counted(num_sources, 'line')}, "
        f"{target} has {num_targets:,}"
    )


def line_offsets(path: Path, every: int) -> tuple[list[int], int]:
    """Return where lines 0, every, 2 * every, ... of a plain file begin, its size, and its lines.

    b"a\\nb\\nc\\n", every 2 --> [0, 4, 6], 3
    """
    offsets, count, size, block = [0], 0, 0, b""
    with open(path, "rb") as file:
        while more := file.read(_BLOCK):
            block = more
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            offsets += (size + 1 + ends[every - 1 - count % every :: every]).tolist()
            count, size = count + len(ends), size + len(block)
    count += not block.endswith(b"\n") and size > 0
    return [*(offset for offset in offsets if offset < size), size], count


def read_range(path: Path, start: int, end: int) -> Iterator[str]:
    """Yield the lines between two offsets of a plain file, as `read_lines` does those of all."""
    with open(path, "rb") as file:
        file.seek(start)
        lines = io.BytesIO(file.read(end - start))
    yield from decode_lines(_bounded_lines(lines, path), name=path, at_start=start == 0)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write one line for each string, where a "\\n" inside one becomes a space.

    The file is compressed as its suffix says, the same lines to the same bytes every time.
    """
    with replacing(path) as file, _compressing(file, pathlib.Path(path).suffix.lower()) as stream:
        for line in lines:
            stream.write(line.replace("\n", " ").encode("utf-8") + b"\n")


def _compressing(file: IO[bytes], suffix: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Return a compressor into an open file; closing it leaves the file open."""
    if suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile("", "wb", fileobj=file, mtime=0))
    opener = _OPENERS.get(suffix)
    return opener(file, "wb") if opener else contextlib.nullcontext(file)


def write_json(path: Path, content: Any) -> None:
    """Write a small JSON file at once or not at all."""
    with replacing(path) as file:
        file.write(json.dumps(content).encode("utf-8"))


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_special(path: Path) -> bool:
    """Return whether a path is a device or a pipe."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def refuse_target(target: Path, source: Path | None = None) -> None:
    """Raise UserError where an output would take the place of a folder or of its own input."""
    if os.path.isdir(target):
        raise errors.UserError(f"{target} is a folder: give a file to write to")
    if source is None or not os.path.isfile(source) or not os.path.exists(target):
        return
    if os.path.samefile(source, target):
        raise errors.UserError(f"{target} is what is read: give another file to write to")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file for writing that appears under `path` when it is complete.

    A link stays a link, and its target is replaced. A device or a pipe is written to directly. Of
    several writers at once the last to finish wins.
    """
    if is_special(path):
        with open(path, "wb") as file:
            yield file
        return
    path = pathlib.Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    name = f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}{_INCOMPLETE}"
    temporary = path.with_name(name)
    try:
        with _locked(temporary) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync(path: Path) -> None:
    """Wait until a file that was written is on the disk, so that a power cut cannot empty it."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """Open a new file with a lock that shows that its writer is alive, where there are locks."""
    with contextlib.ExitStack() as stack:
        while True:
            file = stack.enter_context(open(path, "xb"))
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists():  # else it was removed as a leftover before it was locked
                break
        yield file


def _remove_leftovers(path: pathlib.Path) -> None:
    """Remove the files that killed writers of `path` left behind."""
    for leftover in path.parent.glob(f"{glob.escape(path.name)}.*{_INCOMPLETE}"):
        # Not a file, removed meanwhile, or locked: its writer is alive.
        with contextlib.suppress(OSError), open(leftover, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover.unlink()


@contextlib.contextmanager
def explain_damage(source: object) -> Iterator[None]:
    """Turn the many errors of a missing or damaged file into one UserError that names `source`."""
    try:
        yield
    except FileNotFoundError as error:
        raise errors.UserError(
            f"there is no file {source}{errors.missing_folder(source)}"
        ) from error
    except Exception as error:
        # bz2 raises an OSError that no system call made
        is_of_bz2 = type(error) is OSError and error.errno is None
        if not (isinstance(error, _DAMAGE) or is_of_bz2):
            raise
        if isinstance(error, zstd.ZstdError) and "too much memory" in str(error):
            raise errors.UserError(
                f"{source} needs a window of more than 128 MB, as zstd --long=28 to 31 writes it: "
                "unpack it (zstd -d --long=31) and compress it again with --long=27 or without"
            ) from error
        raise errors.UserError(
            f"{source} is damaged or not what its suffix says: {error}"
        ) from error
