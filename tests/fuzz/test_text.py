"""Files of text, parallel or not, in every format and compression: damaged, cut off, and bombs."""

import bz2
import functools
import gzip
import lzma
import re

import pytest
from backports import zstd
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite import errors
from t2t_lite.text import bitexts, corpora, text_files

_SGM = b"""\
<srcset setid="newstest" srclang="any"><doc docid="a" sysid="src">
<seg id="1">A dog &amp; a cat.</seg>
<p><seg id="2"> It rains. </seg></p> <seg id="3"></seg>
</doc></srcset>
"""
_TMX = b"""\
<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd" [ <!ENTITY dog "a dog"> ]>
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>A <b>dog</b> &amp; &dog;</seg></tuv>
<tuv xml:lang="DE-de"><seg>Ein Hund</seg></tuv></tu>
<tu><tuv lang="de"><seg/></tuv><tuv lang="en"/></tu>
</body></tmx>
"""
# Each entity is ten of the one before: a million words of 600 bytes.
_LAUGHS = b'<!DOCTYPE tmx [<!ENTITY a0 "word">' + b"".join(
    b'<!ENTITY a%d "%s">' % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 9)
)
_BOMB = _LAUGHS + b']><tmx><tu><tuv lang="en"><seg>&a8;</seg></tuv></tu></tmx>'
_ENCODED = [
    b'<?xml version="1.0" encoding="%s"?><tmx><tu/></tmx>' % name
    for name in (b"no-such", b"utf-7", b"shift_jis", b"utf-16", b"base64", b"idna", b"")
]
_TSV = b"A dog.\tEin Hund.\nIt rains.\tEs regnet.\n\t\n"
_CHUNKS = [b"<seg>", b"</seg>", b"&#1;", b"&#x110000;", b"&#" + inputs.DIGITS.encode() + b";"]
_CHUNKS += [b"<tu>", b"</tu>", b"<tuv xml:lang='en'>", b"\t", b"<!--", b"<![CDATA[", b"&a;"]
_PAIRS = {
    "en.sgm de.sgm": [_SGM],
    "tmx": [_TMX, _TMX, _TMX, _BOMB, *_ENCODED],
    "tmx.gz": [gzip.compress(_TMX), gzip.compress(_BOMB * 9)],
    "tsv": [_TSV],
    "csv": [b'de;en\n"Ein ""Hund"".";A dog.\nEs regnet.;It rains.\n'],
    "jsonl": [b'{"en": "A dog.", "de": "Ein Hund."}\n{"translation": {"en": "a", "de": ""}}\n'],
    "en de": [_TSV],
}


@pytest.mark.parametrize("suffixes", _PAIRS)
@given(data=st.data())
def test_files_of_pairs_are_read_or_refused(folder, suffixes, data):
    chunks = [gzip.compress(b"")] if suffixes == "tmx.gz" else _CHUNKS
    damaged = data.draw(inputs.damaged(_PAIRS[suffixes], chunks=chunks))
    stem = re.sub(r"\W", "_", suffixes)
    for suffix in suffixes.split():
        (folder / f"{stem}.{suffix}").write_bytes(damaged)
    (corpus,) = corpora.find(folder, stem, ("en", "de"))
    with inputs.answered():
        for pair in bitexts.read(corpus):
            assert [type(side) for side in pair] == [str, str]


# Compressed

_COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": functools.partial(zstd.compress, options={zstd.CompressionParameter.checksum_flag: 1}),
}
_TEXT = "A dog runs.\nEs regnet.\r\n☃\u2028x\n".encode() * 3
_LINES = (b"x" * 99_999 + b"\n") * 200  # 20 MB, which compress to some 100 bytes to 20 KB


@pytest.mark.parametrize("suffix", ["txt", *_COMPRESS])
@given(data=st.data())
def test_a_file_is_read_or_refused_and_never_taken_for_a_shorter_one(folder, suffix, data):
    compress = _COMPRESS.get(suffix, bytes)
    path = folder / f"fuzzed.{suffix}"
    valid = [compress(_TEXT), compress(_TEXT) * 2, compress(b""), compress(_TEXT * 500)]
    chunks = [compress(b"a\n"), compress(b"")]
    path.write_bytes(data.draw(inputs.damaged(valid, chunks=chunks)))
    with inputs.answered():
        assert all("\n" not in line for line in text_files.read_lines(path))
    if suffix != "txt":
        path.write_bytes(valid[-1][: data.draw(st.integers(1, len(valid[-1]) - 1))])
        with pytest.raises(errors.UserError):
            list(text_files.read_lines(path))


@pytest.mark.parametrize("suffix", _COMPRESS)
def test_small_files_of_many_lines_and_of_one_endless_line_take_little_memory(folder, suffix):
    path = folder / f"bomb.{suffix}"
    path.write_bytes(_COMPRESS[suffix](_LINES) * 22)
    assert sum(1 for _ in text_files.read_lines(path)) == 22 * 200
    if suffix == "zst":  # one frame
        with zstd.open(path, "wb") as frame:
            for _ in range(30):
                frame.write(_LINES)
        assert sum(1 for _ in text_files.read_lines(path)) == 6_000
    path.write_bytes(_COMPRESS[suffix](_LINES.replace(b"\n", b"x")) * 30)
    with pytest.raises(errors.UserError):
        sum(1 for _ in text_files.read_lines(path))
