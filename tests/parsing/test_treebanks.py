"""Files of trees are found and read whatever they are packed in, in the order of their names."""

import gzip
import tarfile

import archives
import pytest

from t2t_lite import errors
from t2t_lite.parsing import treebanks

FILES = {
    "02/wsj_0210.mrg": "( (S (NP-SBJ (NN two)) \n   (VP (VBZ ten)) ))\n",
    "02/wsj_0201.mrg": "(S (NN two) (CD one))\n(S (NN two) (CD again))\n",
    "03/wsj_0301.mrg": "( (S (NP (-NONE- *)) (VP (VB three))) )\n",
}
WORDS = ["two one", "two again", "two ten", "three"]


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def words(files, **options):
    return [" ".join(tree.words()) for tree in treebanks.read(files, **options) if tree]


def zipped(content):
    return gzip.compress(content.encode(), mtime=0)


ZIPPED = {f"{name}.gz": zipped(text) for name, text in FILES.items()}


@pytest.mark.parametrize(
    ("archive", "files"),
    [
        *(("", FILES), ("", ZIPPED), ("wsj.tgz", FILES), ("wsj.tar.gz", FILES)),
        *(("wsj.tar", FILES), ("wsj.tgz", ZIPPED)),
    ],
    ids=["folders", "gz", "tgz", "tar.gz", "tar", "gz inside tgz"],
)
def test_all_ways_to_keep_a_treebank_read_the_same(tmp_path, archive, files):
    archives.write(tmp_path / archive, files) if archive else write(tmp_path, files)
    found = treebanks.find(tmp_path)
    assert [file.stem for file in found] == ["wsj_0201", "wsj_0210", "wsj_0301"]
    assert [file.folder for file in found] == ["02", "02", "03"]
    assert words(found, tmp_dir=tmp_path / "not" / "there") == WORDS
    # members may be asked for in any order
    assert words(reversed(found)) == ["three", "two ten", "two one", "two again"]


def test_the_case_of_endings_does_not_matter(tmp_path):
    write(tmp_path, {"A.MRG": FILES["02/wsj_0201.mrg"], "B.MRG.GZ": zipped("(S (NN b))\n")})
    archives.write(
        tmp_path / "C.TGZ", {"C.Tree": "(S (NN c))\n", "D.TREE.Gz": zipped("(S (NN d))\n")}
    )
    files = treebanks.find(tmp_path)
    assert [file.stem for file in files] == ["A", "B", "C", "D"]
    assert words(files) == ["two one", "two again", "b", "c", "d"]


@pytest.mark.parametrize("name", ["in/a.tree.xz", "in/a.tree.zst", "in/a.MRG.BZ2"])
def test_members_that_cannot_be_read_are_named(tmp_path, name):
    archives.write(tmp_path / "a.tgz", {"in/b.tree": "(S (NN b))", name: b"any"})
    message = rf"a\.tgz: {name} is compressed otherwise than by gzip: unpack the archive"
    with pytest.raises(errors.UserError, match=message):
        treebanks.find(tmp_path)


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE])
def test_links_in_archives_are_named(tmp_path, kind):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("b.tree"))
        for name, target in (("c.tree", "b.tree"), ("others", "b.tree")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, target
            tar.addfile(link)
    with pytest.raises(errors.UserError, match=r"a\.tar: c.tree is a link or the like, not a file"):
        treebanks.find(tmp_path)


def test_links_to_folders_are_followed(tmp_path):
    write(tmp_path / "there", FILES)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "02").symlink_to(tmp_path / "there" / "02")
    (tmp_path / "here" / "03").symlink_to("../there/03")
    for folder in ("here", "there/02"):  # links that lead in circles
        (tmp_path / folder / "again").symlink_to(tmp_path / "here")
    files = treebanks.find(tmp_path / "here")
    assert [file.folder for file in files] == ["02", "02", "03"]
    assert words(files) == WORDS


def test_only_trees_are_found(tmp_path):
    others = {"readme.md": "(", "wsj_0201.pos": "(", ".hidden.mrg": "(", "02/._wsj_0201.mrg": "("}
    write(tmp_path, others)
    archives.write(tmp_path / "more.tgz", {**others, "penn/one.tree": "(S (NN a))"})
    assert [str(file) for file in treebanks.find(tmp_path)] == [
        f"{tmp_path / 'more.tgz'}: penn/one.tree"
    ]


def test_an_archive_that_changed_is_listed_anew(tmp_path):
    archives.write(tmp_path / "a.tgz", {"one.mrg": "(S (NN a))"})
    assert len(treebanks.find(tmp_path)) == 1
    archives.write(tmp_path / "a.tgz", FILES)
    assert [file.stem for file in treebanks.files_of(tmp_path / "a.tgz")] == [
        *("wsj_0201", "wsj_0210", "wsj_0301")
    ]


def test_trees_come_cleaned(tmp_path):
    text = "( (S (NP-SBJ (PRP It)) (VP (VBD was) (NP (-NONE- *)))) )\n( (NP (-NONE- *)) )\n"
    write(tmp_path, {"a.mrg": text + "(S (NN a\u2581b))\n"})
    cleaned = list(treebanks.read(treebanks.find(tmp_path)))
    assert list(map(str, cleaned)) == [
        "(S (NP (PRP It)) (VP (VBD was)))",
        "None",
        "(S (NN a_b))",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a))\n(S (NN b)\n", r"one\.mrg, line 2: the tree that begins here is never closed"),
        ("(S (NN a)))\n", r"one\.mrg, line 1: '\)' closes a bracket"),
        ("(S (NN a))\n\n(S ())\n", r"one\.mrg, line 3: a bracket inside another needs a label"),
        ("( )\n", r"one\.mrg, line 1: the bracket \(\) is empty"),
        ("no tree\n", r"one\.mrg, line 1: expected a labelled bracket"),
    ],
)
@pytest.mark.parametrize("is_archive", [False, True])
def test_what_is_no_tree_is_named(tmp_path, text, message, is_archive):
    if is_archive:
        archives.write(tmp_path / "a.tgz", {"in/one.mrg": text})
        message = r"a\.tgz: in/" + message
    else:
        write(tmp_path, {"one.mrg": text})
    with pytest.raises(errors.UserError, match=message):
        list(treebanks.read(treebanks.find(tmp_path)))


@pytest.mark.parametrize("name", ["a.tgz", "a.tar", "a.mrg.gz"])
def test_damaged_files_are_named(tmp_path, name):
    whole = archives.write(tmp_path / "whole.tgz", FILES).read_bytes()
    (tmp_path / "whole.tgz").unlink()
    for content in (b"\x1f\x8b\x08 nothing", whole[: len(whole) // 2]):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(errors.UserError, match=rf"{name} is damaged"):
            list(treebanks.read(treebanks.find(tmp_path)))


def test_a_damaged_member_is_named(tmp_path):
    whole = zipped("(S (NN a))\n")
    for content in (b"(S (NN a))\n", whole[:-6], whole[:-8] + b"damaged!"):
        archives.write(tmp_path / "a.tgz", {"in/b.tree": "(S (NN b))", "in/c.tree.gz": content})
        with pytest.raises(errors.UserError, match=r"a\.tgz: in/c\.tree\.gz is damaged"):
            list(treebanks.read(treebanks.find(tmp_path)))


@pytest.mark.parametrize(
    ("content", "word"),
    [("\ufeff(S (NN a))\n".encode(), "a"), (b"(S (NN caf\xe9))\n", "caf\ufffd")],
)
def test_a_byte_order_mark_is_skipped_and_what_is_no_text_is_kept_to_be_counted(
    tmp_path, content, word
):
    write(tmp_path, {"a.mrg": content})
    packed = {"b.mrg": content, "c.mrg.gz": gzip.compress(content)}
    archives.write(tmp_path / "b.tgz", packed)
    assert words(treebanks.find(tmp_path)) == [word] * 3


@pytest.mark.slow
def test_the_real_corpora_are_read_whole(shared_data):
    for folder, count in (("wsj_sample", 3_914), ("craft", 30_830)):
        cleaned = list(treebanks.read(treebanks.find(shared_data / folder)))
        assert len(cleaned) == count
        assert None not in cleaned
