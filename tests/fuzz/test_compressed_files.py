"""Files of text in every compression: damaged, cut off, several in one, and bombs."""

import bz2
import gzip
import lzma

import pytest
import zstandard
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite import errors
from t2t_lite.text import text_files

_COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    "txt": bytes,
}
_SUFFIXES = [suffix for suffix in _COMPRESS if suffix != "txt"]
_TEXT = "A dog runs.\nEs regnet.\r\n☃\u2028x\n".encode() * 3
_LINES = (b"x" * 99_999 + b"\n") * 200  # 20 MB, which compress to some 100 bytes to 20 KB


@pytest.mark.parametrize("suffix", _COMPRESS)
@given(data=st.data())
def test_a_file_is_read_or_refused(folder, suffix, data):
    compress = _COMPRESS[suffix]
    path = folder / f"fuzzed.{suffix}"
    valid = [compress(_TEXT), compress(_TEXT) * 2, compress(b""), compress(_TEXT * 500)]
    chunks = [compress(b"a\n"), compress(b"")]
    path.write_bytes(data.draw(inputs.damaged(valid, chunks=chunks)))
    with inputs.answered():
        assert all("\n" not in line for line in text_files.read_lines(path))


@pytest.mark.parametrize("suffix", _SUFFIXES)
@given(data=st.data())
def test_a_file_that_is_cut_off_is_never_taken_for_a_shorter_one(folder, suffix, data):
    compressed = _COMPRESS[suffix](_TEXT * 100)
    path = folder / f"cut.{suffix}"
    path.write_bytes(compressed[: data.draw(st.integers(1, len(compressed) - 1))])
    with pytest.raises(errors.UserError):
        list(text_files.read_lines(path))


@pytest.mark.parametrize("suffix", ["gz", "xz", "zst"])
def test_a_small_file_of_many_lines_takes_little_memory(folder, suffix):
    path = folder / f"bomb.{suffix}"
    path.write_bytes(_COMPRESS[suffix](_LINES) * 22)
    assert sum(1 for _ in text_files.read_lines(path)) == 22 * 200


def test_a_small_frame_of_many_lines_takes_little_memory(folder):
    path = folder / "bomb.zst"
    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as frame:
        for _ in range(30):
            frame.write(_LINES)
    assert sum(1 for _ in text_files.read_lines(path)) == 6_000


@pytest.mark.parametrize("suffix", _SUFFIXES)
def test_a_small_file_of_one_endless_line_takes_little_memory(folder, suffix):
    path = folder / f"endless.{suffix}"
    path.write_bytes(_COMPRESS[suffix](_LINES.replace(b"\n", b"x")) * 30)
    with pytest.raises(errors.UserError):
        sum(1 for _ in text_files.read_lines(path))
