"""Every form of parallel text gives the same pairs."""

import gzip
import re
import tracemalloc
import zipfile

import pytest

from t2t_lite import errors
from t2t_lite.text import bitexts, corpora

SIDES = ("en", "de")
PAIRS = [("Two & two.", "Zwei & zwei."), ("<No>", "<Nein>")]
SWAPPED = [(b, a) for a, b in PAIRS]
TMX = """<?xml version="1.0" encoding="utf-8"?>
<tmx version="1.4"><header/><body>
<tu><tuv xml:lang="de-DE"><seg>Zwei &amp; zwei.</seg></tuv>
    <tuv xml:lang="EN"><seg>
      Two <bpt i="1">&lt;b&gt;</bpt><hi>&amp;</hi><ept i="1">&lt;/b&gt;</ept>
      two.
    </seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>&lt;No&gt;</seg></tuv><tuv xml:lang="fr"><seg>Non</seg></tuv>
    <tuv xml:lang="de"><seg>&lt;Nein&gt;</seg></tuv></tu>
</body></tmx>"""


def _sgm(side):
    segments = "\n".join(
        f'<seg id="{i}"> {pair[side].replace("&", "&amp;").replace("<", "&lt;")} </seg>'
        for i, pair in enumerate(PAIRS, start=1)
    )
    return f'<srcset setid="x" srclang="any">\n<doc docid="a & b">\n<p>\n{segments}\n</p>\n'


def _write(folder, files):
    """Write contents by name: text, bytes, or the members of a zip archive."""
    for name, content in files.items():
        if isinstance(content, dict):
            with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
                for member, text in content.items():
                    archive.writestr(member, text)
        else:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def _read(folder, stem="train", sides=SIDES):
    told = corpora.languages(folder, [stem]) if sides == corpora.GENERIC else None
    found = corpora.find(folder, stem, sides, told)
    return [pair for corpus in found for pair in bitexts.read(corpus)]


LINES = ["".join(f"{line}\n" for line in lines) for lines in zip(*PAIRS)]
PLAIN = {"train.en": LINES[0], "train.de": LINES[1]}
FORMS = {
    "two files": PLAIN,
    "segments": {"train.en.sgm": _sgm(0), "train.de.sgm": _sgm(1)},
    "segments over several lines": {
        "train.en.sgm": _sgm(0).replace("Two ", "Two\n"),
        "train.de.sgm": _sgm(1).replace("Zwei ", "Zwei\n"),
    },
    "columns": {"train.tsv": "".join(f"{a}\t{b}\n" for a, b in PAIRS)},
    "units": {"train.tmx": TMX},
    "units in a namespace": {
        "train.tmx": TMX.replace("<tmx", '<tmx xmlns="http://example/tmx14"', 1)
    },
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_compressed", [False, True])
def test_each_form_gives_the_same_pairs(tmp_path, form, is_compressed):
    files = FORMS[form]
    if is_compressed:
        files = {f"{name}.gz": gzip.compress(text.encode()) for name, text in files.items()}
    _write(tmp_path, files)
    assert _read(tmp_path) == PAIRS


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({f"train.{side}.sgm": '<seg id="1">A\n' for side in SIDES}, "sgm: a <seg> has no </seg>"),
        ({f"train.{side}.sgm": "<seg>A\n<seg>B</seg>\n" for side in SIDES}, "has no </seg>: <seg"),
        ({**PLAIN, "train.de.gz": b""}, "has both train.de and train.de.gz: leave one"),
        ({"train.en": "a\n", "train.de": "b\nc\nd\n"}, "train.en has 1 line, .*train.de has 3"),
        ({"train.en": "a\nb\nc\n", "train.de": "b\n"}, "train.en has 3 lines, .*train.de has 1"),
        ({"train.tsv": "a\tb\nc\n"}, "train.tsv: .* line 2 has 1"),
        ({"train.tsv": "1\t0.5\ta\tb\n"}, r"has 4 columns \(1, 0.5, a, b\): give --columns"),
        (
            {"train.tsv": "gb\tat\na\tb\n"},
            "line 1 looks like a header, gb and at: give --columns=gb,at",
        ),
        ({"train.csv": 'a,b\n"a,b\n'}, "line 2 is not CSV: unexpected end of data"),
        ({"train.jsonl": '{"en": "a", "de": "b"}\n{"en": null}\n'}, "line 2: expected an obj"),
        ({"train.jsonl": "[1]\n"}, "line 1: expected an object with the texts en and de"),
        ({"train.tmx": TMX[:300]}, "train.tmx is not well-formed"),
        ({"train.tmx": TMX.replace("utf-8", "utf-9")}, "train.tmx is not well-formed"),
        ({"train.tmx": TMX.replace("EN", "nl").replace('"en"', '"nl"')}, "only in de, fr, nl"),
        ({"train.zip": {"a.en": "a\n"}}, "one file that ends in .de, got a.en"),
        ({"train.zip": {"a.en": "a\n", "a.de": "b\n", "b.de": ""}}, "ends in .de, got a.de, b.de"),
        ({"train.zip": {"a.en": "a\n", "a.de": "b\nc\n"}}, "a.en has 1 line, a.de has 2"),
        ({"train.zip": {"a.en": "a\nb\n", "a.de": b"\xff\xfea\0\n\0"}}, "a.de is UTF-16"),
        ({"train.zip": b"no archive"}, "train.zip"),
    ],
)
def test_what_is_not_parallel_text_is_refused(tmp_path, files, message):
    _write(tmp_path, files)
    with pytest.raises(errors.UserError, match=message):
        _read(tmp_path)


def test_units_that_were_read_leave_memory(tmp_path):
    head, _, rest = TMX.partition("<tu>")
    count = 20_000
    units = ("<tu>" + rest.partition("<tu>")[0]) * count
    (tmp_path / "train.tmx").write_text(f"{head}{units}</body></tmx>")
    tracemalloc.start()
    (corpus,) = corpora.find(tmp_path, "train", SIDES)
    assert sum(1 for _ in bitexts.read(corpus)) == count
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e6  # all units together take a thousand bytes each


def test_an_archive_of_opus_is_read_as_it_is(tmp_path):
    """Its files are named after the alphabet, whatever the direction of the problem."""
    members = {"README": "R", "X.de-en.en": LINES[0], "X.de-en.de": LINES[1], "X.de-en.xml": "<x/>"}
    _write(tmp_path, {"train.zip": members})
    assert _read(tmp_path) == PAIRS
    (tmp_path / "train.zip").rename(tmp_path / "train.de-en.zip")
    assert _read(tmp_path) == PAIRS
    assert _read(tmp_path, sides=corpora.GENERIC) == SWAPPED


def test_files_may_name_their_languages(tmp_path):
    names = {"train.de-en.tmx": TMX, "dev.de-en.en": LINES[0], "dev.de-en.de": LINES[1]}
    _write(tmp_path, names)
    for stem in ("train", "dev"):
        for sides, expected in [(corpora.GENERIC, SWAPPED), (SIDES, PAIRS), (SIDES[::-1], SWAPPED)]:
            assert _read(tmp_path, stem, sides) == expected
        assert corpora.find(tmp_path, stem, ("en", "fr")) == []
    _write(tmp_path, {"train.en-fr.tmx": TMX, "test.en": "a\n"})
    with pytest.raises(
        errors.UserError, match=r"files from (de-en and from en-fr|en-fr and from de-)"
    ):
        _read(tmp_path, "train", corpora.GENERIC)
    with pytest.raises(errors.UserError, match=r"test.en cannot be used as test: there is no file"):
        _read(tmp_path, "test")


def test_a_unit_without_a_language_keeps_its_place(tmp_path):
    _write(tmp_path, {"train.tmx": TMX.replace('xml:lang="de"', 'xml:lang="nl"')})
    assert _read(tmp_path) == [PAIRS[0], ("<No>", "")]
    # a region is a language of its own only where it is asked for
    (tmp_path / "train.tmx").unlink()
    _write(tmp_path, {"train.de_de-en.tmx": TMX})
    assert _read(tmp_path, sides=corpora.GENERIC) == [SWAPPED[0], ("", "<No>")]


def test_a_unit_with_several_texts_of_a_language_gives_all_pairs(tmp_path):
    variants = {"en-GB": "Colour", "en-US": "Color", "en": "Color", "de": "Farbe"}
    texts = "".join(f'<tuv xml:lang="{x}"><seg>{text}</seg></tuv>' for x, text in variants.items())
    _write(tmp_path, {"train.tmx": f"<tmx><tu>{texts}</tu></tmx>"})
    assert _read(tmp_path) == [("Colour", "Farbe"), ("Color", "Farbe")]


def test_only_codes_of_the_layout_are_no_text(tmp_path):
    code = 'a<ph x="1">[img alt="<sub>A dog</sub>"]</ph><it>&lt;i&gt;</it> b<ut>x</ut> <hi>c</hi>'
    text = f'<tuv xml:lang="en"><seg>{code}</seg></tuv><tuv xml:lang="de"><seg>d</seg></tuv>'
    _write(tmp_path, {"train.tmx": f"<tmx><tu>{text}</tu></tmx>"})
    assert _read(tmp_path) == [("aA dog b c", "d")]


TABLES = {
    "header of languages": ("tsv", "id\tDE\tscore\ten\n7\tZwei\t0.5\tTwo\n", ()),
    "header of sides": ("tsv", "tgt\tsrc\nZwei\tTwo\n", ()),
    "columns by number": ("tsv", "7\t0.5\tTwo\tZwei\n", ("3", "4")),
    "columns by number in the header's order": ("tsv", "id\tde\ten\n7\tZwei\tTwo\n", ("2", "3")),
    "columns by name": ("csv", "score;orig;trans\n0.5;Two;Zwei\n", ("orig", "trans")),
    "two columns beside a choice": ("tsv", "Two\tZwei\n", ("3", "4")),
    "columns by number in spite of a header": (
        "tsv",
        "src\ttgt\tx\ty\n\t\tTwo\tZwei\n",
        ("3", "4"),
    ),
    "header of other codes": ("tsv", "at\tgb\nZwei\tTwo\n", ("gb", "at")),
    "line breaks in CSV": ("csv", 'en,de\n" Two\n",Zwei\n\n', ()),
    "keys": ("jsonl", '{"id": 7, "de": "Zwei", "en": "Two"}\n', ()),
    "keys by name": ("jsonl", '{"a": "Two", "b": "Zwei"}\n', ("a", "b")),
    "nested": ("jsonl", '{"translation": {"en": "Two", "de": "Zwei"}}\n', ()),
}


@pytest.mark.parametrize("kind", TABLES)
def test_columns_of_tables(tmp_path, kind):
    form, text, columns = TABLES[kind]
    _write(tmp_path, {f"train.{form}": text})
    (corpus,) = corpora.find(tmp_path, "train", SIDES)
    assert list(bitexts.read(corpus, columns)) == [("Two", "Zwei")]


def test_quotes_are_read_as_the_ending_says(tmp_path):
    line = '"He said, ""yes"""{}Ja\n'
    _write(tmp_path, {"train.csv": line.format(","), "dev.tsv": line.format("\t")})
    assert _read(tmp_path) == [('He said, "yes"', "Ja")]
    assert _read(tmp_path, "dev") == [('"He said, ""yes"""', "Ja")]


def test_an_encrypted_archive_is_named(tmp_path):
    _write(tmp_path, {"train.zip": {"a.en": "a\n", "a.de": "b\n"}})
    content = bytearray((tmp_path / "train.zip").read_bytes())
    for signature, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        for match in re.finditer(signature, bytes(content)):
            content[match.start() + flags] |= 1
    (tmp_path / "train.zip").write_bytes(content)
    with pytest.raises(errors.UserError, match=r"train.zip"):
        _read(tmp_path)


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "lol" * 10}">' for i in range(10))
HOSTILE = {
    "billion laughs": f"<!DOCTYPE tmx [{LAUGHS}]><tmx><tu><seg>&l9;</seg></tu></tmx>",
    "a file of this machine": '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
    '<tmx><tu><tuv xml:lang="en"><seg>&x;</seg></tuv></tu></tmx>',
    "depth": "<tu>" * 100_000,
    "one endless unit": f"<tmx><tu><tuv>{'x' * 300_000}",
    "endless elements": f"<tmx>{'<x/>' * 70_000}",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_xml_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(bitexts, "_MAX_UNIT", 200_000)
    (tmp_path / "train.tmx").write_text(HOSTILE[kind])
    tracemalloc.start()
    with pytest.raises(errors.UserError, match=r"train\.tmx"):
        _read(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


def test_ranges_read_what_all_reads(tmp_path):
    """Whatever the ends of lines and of the file, and bytes that are marks at the start only."""
    mark = "\ufeff".encode()
    texts = [
        *(b"", b"a", b"a\n", b"a\nb", b"a\r\nb\n\nc\rd\n", b"\n\n\n"),
        mark + b"a\n" + mark + b"b\n\xff\n" + b"long " * 2_000_000 + b"\nend",
    ]
    for number, text in enumerate(texts):
        _write(tmp_path, {f"{number}.en": text, f"{number}.de": text})
        (corpus,) = corpora.find(tmp_path, str(number), SIDES)
        pairs = list(bitexts.read(corpus))
        for every in (1, 2, 3, 100):
            ranges = bitexts.ranges(corpus, every)
            assert ranges is not None
            assert [place.first for place in ranges] == list(range(0, len(pairs), every))
            sides = [bitexts.read_range(place) for place in ranges]
            assert [pair for side in sides for pair in zip(*side, strict=True)] == pairs


def test_only_plain_files_have_ranges(tmp_path):
    for names in ("a.en.gz", "a.de"), ("b.en.sgm", "b.de.sgm"), ("c.tsv",):
        _write(tmp_path, dict.fromkeys(names, ""))
        (corpus,) = corpora.find(tmp_path, names[0][0], SIDES)
        assert bitexts.ranges(corpus, 2) is None
    _write(tmp_path, {"d.en": "a\nb\n", "d.de": "a\n"})
    (corpus,) = corpora.find(tmp_path, "d", SIDES)
    with pytest.raises(errors.UserError, match=r"d\.en has 2 lines, .*d\.de has 1"):
        bitexts.ranges(corpus, 2)
