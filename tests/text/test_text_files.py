"""Lines stay lines, and files appear complete or not at all."""

import concurrent.futures
import gzip
import json
import lzma
import os
import subprocess
import sys

import pytest
from backports import zstd

from t2t_lite import errors
from t2t_lite.text import text_files

COMPRESSIONS = [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstd.compress)]
ODD = ["a\u2028b", "c\x0cd\x85e", "f\rg", "", "h\x00\tj "]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("\n".join(ODD).encode(), ODD),  # only a newline ends a line
        (b"\xef\xbb\xbfone\r\ntwo\r\n", ["one", "two"]),
        (b"gr\xfcn\nred\n", ["gr\ufffdn", "red"]),  # Latin-1
        (b"\n", [""]),
        (b"\x00\x00\x00\x00\x00\x00\x00\x00\n", ["\x00" * 8]),  # stray NULs are text
    ],
)
def test_lines_are_read_as_they_are(tmp_path, content, lines):
    (tmp_path / "x").write_bytes(content)
    assert list(text_files.read_lines(tmp_path / "x")) == lines


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_utf16_is_refused_with_how_to_convert_it(tmp_path, encoding, suffix):
    path = tmp_path / f"x{suffix}"
    text = "Zwei Hunde über Ä.\nDrei.\n".encode(encoding)
    path.write_bytes(gzip.compress(text) if suffix else text)
    with pytest.raises(errors.UserError, match=rf"{path.name} is UTF-16.*iconv -f UTF-16 -t UTF-8"):
        list(text_files.read_lines(path))


@pytest.mark.parametrize(("suffix", "compress"), COMPRESSIONS)
def test_a_damaged_archive_is_named(tmp_path, suffix, compress):
    path = tmp_path / f"train.en{suffix}"
    text = "".join(f"line {i}\n" for i in range(5000)).encode()
    for content in (b"plain text", compress(text)[:-50]):
        path.write_bytes(content)
        with pytest.raises(errors.UserError, match=f"train.en{suffix} is damaged"):
            list(text_files.read_lines(path))


def test_a_window_that_is_too_large_is_told(tmp_path):
    with zstd.open(
        tmp_path / "x.zst", "w", options={zstd.CompressionParameter.window_log: 31}
    ) as file:
        file.write(b"one")
    with pytest.raises(
        errors.UserError, match=r"x.zst needs a window of more than 128 MB.*zstd -d"
    ):
        list(text_files.read_lines(tmp_path / "x.zst"))


def test_an_archive_of_several_frames_is_read_to_its_end(tmp_path):
    (tmp_path / "x.zst").write_bytes(zstd.compress(b"one\ntw") + zstd.compress(b"o\nthree\n"))
    assert list(text_files.read_lines(tmp_path / "x.zst")) == ["one", "two", "three"]


@pytest.mark.parametrize("suffix", text_files.SUFFIXES)
def test_written_lines_are_compressed_as_the_suffix_says(tmp_path, suffix):
    lines = ["", "two\u2028three", *(f"line {i}" for i in range(5_000))]
    for name in ("x", "y"):
        text_files.write_lines(tmp_path / f"{name}{suffix}", iter(lines))
    assert list(text_files.read_lines(tmp_path / f"x{suffix}")) == lines
    written = (tmp_path / f"x{suffix}").read_bytes()
    assert written == (tmp_path / f"y{suffix}").read_bytes()
    assert (len(written) < 25_000) == bool(suffix)  # 48,904 bytes
    assert len(list(tmp_path.iterdir())) == 2


def test_a_pipe_is_written_to_and_a_link_stays_one(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    (tmp_path / "real").write_text("old")
    link.symlink_to("real")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text)
        text_files.write_lines(pipe, ["one"])
        assert read.result(timeout=60) == "one\n"
    assert pipe.is_fifo()
    text_files.write_lines(link, ["new"])
    assert link.is_symlink()
    assert (tmp_path / "real").read_text() == "new\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "real"]


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def fail():
        with text_files.replacing(path) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_many_writers_at_once_write_whole_files_and_leave_nothing_else(tmp_path):
    path = tmp_path / "run.json"
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        list(pool.map(lambda n: text_files.write_json(path, [n] * 1000), range(200)))
    written = json.loads(path.read_text())
    assert written == [written[0]] * 1000
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from t2t_lite.text import text_files
with text_files.replacing(sys.argv[1]) as file:
    file.write(b"half")
    print("begun", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_left_goes_and_a_living_ones_stays(tmp_path):
    path = tmp_path / "x [1]"  # with what is special in a pattern
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    process.stdout.readline()
    text_files.write_lines(path, ["one"])
    assert len(list(tmp_path.iterdir())) == 2
    process.kill()
    process.communicate()
    text_files.write_lines(path, ["two"])
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "two\n"
