"""Parallel text: SGM, TMX, tab-separated and plain lines, whole and compressed."""

import gzip

import pytest
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite.text import bitexts

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


def _read(folder, data, suffixes):
    """Read both sides from files of these bytes."""
    paths = [folder / f"fuzzed.{suffix}" for suffix in suffixes]
    for path in paths:
        path.write_bytes(data)
    with inputs.answered():
        for pair in bitexts.read(paths, ("en", "de")):
            assert [type(side) for side in pair] == [str, str]


@pytest.mark.parametrize(
    ("suffixes", "valid"),
    [
        ("en.sgm de.sgm", [_SGM]),
        ("tmx", [_TMX, _TMX, _TMX, _BOMB, *_ENCODED]),
        ("tmx.gz", [gzip.compress(_TMX), gzip.compress(_BOMB * 9)]),
        ("tsv", [_TSV]),
        ("en de", [_TSV]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@given(data=st.data())
def test_files_of_pairs_are_read_or_refused(folder, suffixes, valid, data):
    chunks = [gzip.compress(b"")] if suffixes == "tmx.gz" else _CHUNKS
    _read(folder, data.draw(inputs.damaged(valid, chunks=chunks)), suffixes.split())


def _element(inner):
    """Draw an element of TMX's names with what `inner` draws in it."""
    name = st.sampled_from(["tmx", "body", "tu", "tuv", "tuv", "seg", "seg", "b"])
    attributes = st.sampled_from(["", ' xml:lang="en"', ' lang="DE-de"', ' lang=""', ' lang="fr"'])
    parts = st.tuples(name, attributes, st.lists(inner, max_size=4).map("".join))
    return parts.map(lambda part: "<{0}{1}>{2}</{0}>".format(*part))


_xml = st.recursive(
    st.sampled_from(["", "A dog", "Ein Hund", "&lt;", "\n", "<!-- tu -->", "<ph/>"]),
    _element,
    max_leaves=30,
)


@given(_element(_xml))
def test_well_formed_xml_of_any_order_is_read_or_refused(folder, text):
    _read(folder, text.encode(), ["tmx"])
