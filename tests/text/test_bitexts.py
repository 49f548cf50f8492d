"""Every form of parallel text gives the same pairs."""

import gzip
import re
import subprocess
import sys
import tracemalloc
import zipfile

import pytest

from t2t_lite import errors
from t2t_lite.text import bitexts

SIDES = ("en", "de")
PAIRS = [("Two & two.", "Zwei & zwei."), ("<No>", "<Nein>")]
TMX = """<?xml version="1.0" encoding="utf-8"?>
<tmx version="1.4"><header/><body>
<tu><tuv xml:lang="de-DE"><seg>Zwei &amp; zwei.</seg></tuv>
    <tuv xml:lang="EN"><seg>Two <bpt>&amp;</bpt> two.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>&lt;No&gt;</seg></tuv><tuv xml:lang="fr"><seg>Non</seg></tuv>
    <tuv xml:lang="de"><seg>&lt;Nein&gt;</seg></tuv></tu>
</body></tmx>"""


def _sgm(side):
    segments = "\n".join(
        f'<seg id="{i}"> {pair[side].replace("&", "&amp;").replace("<", "&lt;")} </seg>'
        for i, pair in enumerate(PAIRS, start=1)
    )
    return f'<srcset setid="x" srclang="any">\n<doc docid="a & b">\n<p>\n{segments}\n</p>\n'


def _read(folder):
    return list(bitexts.read(bitexts.find(folder, "train", SIDES), SIDES))


LINES = ["".join(f"{line}\n" for line in lines) for lines in zip(*PAIRS)]
FORMS = {
    "two files": {"train.en": LINES[0], "train.de": LINES[1]},
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
    for name, text in FORMS[form].items():
        content = gzip.compress(text.encode()) if is_compressed else text.encode()
        (tmp_path / f"{name}{'.gz' * is_compressed}").write_bytes(content)
    assert _read(tmp_path) == PAIRS


@pytest.mark.parametrize("content", ['<seg id="1">A\n', "<seg>A\n<seg>B</seg>\n<seg>C</seg>\n"])
def test_a_segment_without_end_is_refused(tmp_path, content):
    for side in SIDES:
        (tmp_path / f"train.{side}.sgm").write_text(content)
    with pytest.raises(errors.UserError, match=r"train.\w+.sgm: a <seg> has no </seg>: <seg"):
        _read(tmp_path)


def test_one_text_in_two_forms_is_refused(tmp_path):
    for side in SIDES:
        (tmp_path / f"train.{side}").write_text("A\n")
    (tmp_path / "train.tsv").write_text("A\tB\n")
    with pytest.raises(errors.UserError, match=r"several times, in train.en and in train.tsv"):
        _read(tmp_path)
    (tmp_path / "train.de.gz").write_bytes(gzip.compress(b"B\n"))
    with pytest.raises(errors.UserError, match=r"has both train.de and train.de.gz: leave one"):
        _read(tmp_path)


def test_a_unit_without_a_language_keeps_its_place(tmp_path):
    (tmp_path / "train.tmx").write_text(TMX.replace('xml:lang="de"', 'xml:lang="nl"'))
    assert _read(tmp_path) == [PAIRS[0], ("<No>", "")]


def test_languages_that_no_unit_has_are_told(tmp_path):
    (tmp_path / "train.tmx").write_text(TMX)
    with pytest.raises(
        errors.UserError, match=r"in both 'source' and 'target', only in de, en, fr"
    ):
        list(bitexts.read([tmp_path / "train.tmx"], ("source", "target")))


MEMORY = """
import pathlib, re, sys
from t2t_lite.text import bitexts
def peak():  # KiB; ru_maxrss would have the parent's in it
    return int(re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
path = pathlib.Path(sys.argv[1])
read = bitexts.read([path], ("en", "de"))
next(read)
before = peak()
count = 1 + sum(1 for _ in read)
print(count, peak() - before)
"""


def test_units_that_were_read_leave_memory(tmp_path):
    head, _, rest = TMX.partition("<tu>")
    unit = "<tu>" + rest.partition("<tu>")[0]
    path = tmp_path / "train.tmx"
    with path.open("w") as file:  # 100 MB
        file.write(head)
        for _ in range(100):
            file.write(unit * (1_000_000 // len(unit)))
        file.write("</body></tmx>")
    command = [sys.executable, "-c", MEMORY, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    count, growth = map(int, done.stdout.split())
    assert count == 100 * (1_000_000 // len(unit))
    assert growth < 10_000  # KiB; all units together take a thousand bytes each


def _zip(path, members, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def test_an_archive_of_opus_is_read_as_it_is(tmp_path):
    """Its files are named after the alphabet, whatever the direction of the problem."""
    members = {"README": "R", "X.de-en.en": LINES[0], "X.de-en.de": LINES[1], "X.de-en.xml": "<x/>"}
    _zip(tmp_path / "train.zip", members)
    assert _read(tmp_path) == PAIRS
    (tmp_path / "train.zip").rename(tmp_path / "train.de-en.zip")
    assert _read(tmp_path) == PAIRS
    generic = bitexts.find(tmp_path, "train", bitexts.GENERIC)
    assert list(bitexts.read(generic, bitexts.GENERIC)) == [(b, a) for a, b in PAIRS]


def test_files_may_name_their_languages(tmp_path):
    swapped = [(b, a) for a, b in PAIRS]
    (tmp_path / "train.de-en.tmx").write_text(TMX)
    (tmp_path / "dev.de-en.en").write_text(LINES[0])
    (tmp_path / "dev.de-en.de").write_text(LINES[1])
    for stem in ("train", "dev"):
        for sides, expected in [(bitexts.GENERIC, swapped), (SIDES, PAIRS), (SIDES[::-1], swapped)]:
            assert list(bitexts.read(bitexts.find(tmp_path, stem, sides), sides)) == expected
        assert bitexts.find(tmp_path, stem, ("en", "fr")) == []
    (tmp_path / "train.en-fr.tmx").write_text(TMX)
    with pytest.raises(errors.UserError, match=r"several languages, train.de-en, train.en-fr"):
        bitexts.find(tmp_path, "train", bitexts.GENERIC)


def test_regions_are_told_apart_only_where_asked(tmp_path):
    (tmp_path / "train.de_de-en.tmx").write_text(TMX)
    paths = bitexts.find(tmp_path, "train", bitexts.GENERIC)
    assert list(bitexts.read(paths, bitexts.GENERIC)) == [
        ("Zwei & zwei.", "Two & two."),
        ("", "<No>"),
    ]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.en": "a\n"}, "one file that ends in .de, got a.en"),
        ({"a.en": "a\n", "a.de": "b\n", "b.de": ""}, r"ends in .de, got a.de, b.de"),
        ({"a.en": "a\n", "a.de": "b\nc\n"}, "a.en has 1 lines, a.de has 2"),
        ({"a.en": "a\nb\n", "a.de": b"\xff\xfea\0\n\0"}, "a.de is UTF-16"),
    ],
)
def test_archives_that_do_not_fit(tmp_path, members, message):
    path = _zip(tmp_path / "train.zip", members)
    with pytest.raises(errors.UserError, match=message):
        list(bitexts.read([path], SIDES))


@pytest.mark.parametrize("damage", ["cut", "no archive", "encrypted"])
def test_damaged_archives_are_named(tmp_path, damage):
    path = _zip(tmp_path / "train.zip", {"a.en": "a\n", "a.de": "b\n"})
    content = bytearray(path.read_bytes())
    if damage == "encrypted":
        for signature, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            for start in (match.start() for match in re.finditer(signature, bytes(content))):
                content[start + flags] |= 1
    path.write_bytes({"cut": content[:-5], "no archive": b"text"}.get(damage, content))
    with pytest.raises(errors.UserError, match=r"train.zip"):
        list(bitexts.read([path], SIDES))


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "lol" * 10}">' for i in range(10))
HOSTILE = {
    "billion laughs": f"<!DOCTYPE tmx [{LAUGHS}]><tmx><tu><seg>&l9;</seg></tu></tmx>",
    "a file of this machine": '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
    '<tmx><tu><tuv xml:lang="en"><seg>&x;</seg></tuv></tu></tmx>',
    "depth": "<tu>" * 100_000,
    "one endless unit": f"<tmx><tu><tuv>{'x' * 3_000_000}",
    "endless elements": f"<tmx>{'<x/>' * 700_000}",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_xml_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(bitexts, "_MAX_UNIT", 2_000_000)
    (tmp_path / "train.tmx").write_text(HOSTILE[kind])
    tracemalloc.start()
    with pytest.raises(errors.UserError, match=r"train\.tmx"):
        _read(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("train.tsv", "a\tb\nc\n", r"train.tsv: .* line 2 has 1"),
        ("train.tmx", TMX[:300], "train.tmx is not well-formed"),
        ("train.tmx", TMX.replace("utf-8", "utf-9"), "train.tmx is not well-formed"),
        ("train.tmx", "", "train.tmx is not well-formed"),
    ],
)
def test_broken_files_are_named(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(errors.UserError, match=message):
        _read(tmp_path)


def test_one_side_alone_is_not_found(tmp_path):
    (tmp_path / "train.en").write_text("a\n")
    assert bitexts.find(tmp_path, "train", SIDES) == []


def test_ranges_read_what_all_reads(tmp_path):
    """Whatever the ends of lines and of the file, and bytes that are marks at the start only."""
    mark = "\ufeff".encode()
    texts = [
        *(b"", b"a", b"a\n", b"a\nb", b"a\r\nb\n\nc\rd\n", b"\n\n\n"),
        mark + b"a\n" + mark + b"b\n\xff\n" + b"long " * 2_000_000 + b"\nend",
    ]
    for number, text in enumerate(texts):
        paths = [tmp_path / f"{number}.en", tmp_path / f"{number}.de"]
        for path in paths:
            path.write_bytes(text)
        pairs = list(bitexts.read(paths, SIDES))
        for every in (1, 2, 3, 100):
            ranges = bitexts.ranges(paths, every)
            assert ranges is not None
            assert [place.first for place in ranges] == list(range(0, len(pairs), every))
            sides = [bitexts.read_range(place) for place in ranges]
            assert [pair for side in sides for pair in zip(*side, strict=True)] == pairs


def test_only_plain_files_have_ranges(tmp_path):
    for names in (["a.en.gz", "a.de"], ["a.en.sgm", "a.de.sgm"], ["a.tsv"]):
        assert bitexts.ranges([tmp_path / name for name in names], 2) is None
    (tmp_path / "a.en").write_text("a\nb\n")
    (tmp_path / "a.de").write_text("a\n")
    with pytest.raises(errors.UserError, match=r"a\.en has 2 lines, .*a\.de has 1"):
        bitexts.ranges([tmp_path / "a.en", tmp_path / "a.de"], 2)
