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


def words(files, **options):
    return [" ".join(tree.words()) for tree in treebanks.read(files, **options) if tree]


def zipped(content):
    return gzip.compress(content.encode(), mtime=0)


ZIPPED = {f"{name}.gz": zipped(text) for name, text in FILES.items()}


@pytest.mark.parametrize("archive", ["", "wsj.tgz", "wsj.tar.gz", "wsj.tar"])
@pytest.mark.parametrize("files", [FILES, ZIPPED], ids=["plain", "gz"])
def test_all_ways_to_keep_a_treebank_read_the_same(tmp_path, archive, files):
    archives.write(tmp_path / archive, files) if archive else archives.unpacked(tmp_path, files)
    found = treebanks.find(tmp_path)
    assert [file.stem for file in found] == ["wsj_0201", "wsj_0210", "wsj_0301"]
    assert [file.folder for file in found] == ["02", "02", "03"]
    assert words(found, tmp_dir=tmp_path / "not" / "there") == WORDS
    # members may be asked for in any order
    assert words(reversed(found)) == ["three", "two ten", "two one", "two again"]


def test_the_case_of_endings_does_not_matter(tmp_path):
    archives.unpacked(tmp_path, {"A.MRG": "(S (NN a))\n", "B.MRG.GZ": zipped("(S (NN b))\n")})
    archives.write(tmp_path / "C.TGZ", {"C.Tree": "(S (NN c))", "D.TREE.Gz": zipped("(S (NN d))")})
    assert words(treebanks.find(tmp_path)) == ["a", "b", "c", "d"]


def test_members_that_cannot_be_read_are_named(tmp_path):
    for name in ("in/a.tree.xz", "in/a.tree.zst", "in/a.MRG.BZ2"):
        archives.write(tmp_path / "a.tar", {"in/b.tree": "(S (NN b))", name: b"any"})
        message = rf"a\.tar: {name} is compressed otherwise than by gzip: unpack the archive"
        with pytest.raises(errors.UserError, match=message):
            treebanks.find(tmp_path)
    for kind in (tarfile.LNKTYPE, tarfile.SYMTYPE):
        with tarfile.open(tmp_path / "a.tar", "w") as tar:
            tar.addfile(tarfile.TarInfo("b.tree"))
            for name in ("c.tree", "others"):
                link = tarfile.TarInfo(name)
                link.type, link.linkname = kind, "b.tree"
                tar.addfile(link)
        with pytest.raises(errors.UserError, match=r"a\.tar: c.tree is a link or the like, not a"):
            treebanks.find(tmp_path)


def test_links_to_folders_are_followed(tmp_path):
    archives.unpacked(tmp_path / "there", FILES)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "02").symlink_to(tmp_path / "there" / "02")
    (tmp_path / "here" / "03").symlink_to("../there/03")
    for folder in ("here", "there/02"):  # links that lead in circles
        (tmp_path / folder / "again").symlink_to(tmp_path / "here")
    files = treebanks.find(tmp_path / "here")
    assert [file.folder for file in files] == ["02", "02", "03"]
    assert words(files) == WORDS


def test_only_trees_are_found_and_an_archive_that_changed_is_listed_anew(tmp_path):
    others = {"readme.md": "(", "wsj_0201.pos": "(", ".hidden.mrg": "(", "02/._wsj_0201.mrg": "("}
    archives.unpacked(tmp_path, others)
    for name in ("penn/one.tree", "penn/another.tree"):
        path = archives.write(tmp_path / "more.tgz", {**others, name: "(S (NN a))"})
        assert [str(file) for file in treebanks.find(tmp_path)] == [f"{path}: {name}"]
        assert [str(file) for file in treebanks.files_of(path)] == [f"{path}: {name}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a))\n(S (NN b)\n", r"one\.mrg, line 2: the tree that begins here is never closed"),
        ("no tree\n", r"one\.mrg, line 1: expected a labelled bracket"),
    ],
)
def test_what_is_no_tree_is_named(tmp_path, text, message):
    archives.unpacked(tmp_path / "files", {"one.mrg": text})
    (tmp_path / "packed").mkdir()
    archives.write(tmp_path / "packed" / "a.tgz", {"in/one.mrg": text})
    for folder, file in (("files", ""), ("packed", r"a\.tgz: in/")):
        with pytest.raises(errors.UserError, match=file + message):
            list(treebanks.read(treebanks.find(tmp_path / folder)))


@pytest.mark.parametrize("name", ["a.tgz", "a.tar", "a.mrg.gz"])
def test_damaged_files_and_members_are_named(tmp_path, name):
    whole = archives.write(tmp_path / "whole.tgz", FILES).read_bytes()
    (tmp_path / "whole.tgz").unlink()
    for content in (b"\x1f\x8b\x08 nothing", whole[: len(whole) // 2]):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(errors.UserError, match=rf"{name} is damaged"):
            list(treebanks.read(treebanks.find(tmp_path)))
    (tmp_path / name).unlink()
    whole = zipped("(S (NN a))\n")
    for content in (b"(S (NN a))\n", whole[:-6], whole[:-8] + b"damaged!"):
        archives.write(tmp_path / "a.tgz", {"in/b.tree": "(S (NN b))", "in/c.tree.gz": content})
        with pytest.raises(errors.UserError, match=r"a\.tgz: in/c\.tree\.gz is damaged"):
            list(treebanks.read(treebanks.find(tmp_path)))


def test_trees_come_cleaned_without_a_byte_order_mark_and_with_what_is_no_text(tmp_path):
    for content, tree in [
        (b"( (S (NP-SBJ (PRP It)) (VP (VBD was))) )\n", "(S (NP (PRP It)) (VP (VBD was)))"),
        (b"( (NP (-NONE- *)) )\n", "None"),
        ("(S (NN a\u2581b))\n".encode(), "(S (NN a_b))"),
        ("\ufeff(S (NN a))\n".encode(), "(S (NN a))"),
        (b"(S (NN caf\xe9))\n", "(S (NN caf\ufffd))"),  # to be counted
    ]:
        archives.unpacked(tmp_path, {"a.mrg": content})
        archives.write(tmp_path / "b.tgz", {"b.mrg": content, "c.mrg.gz": gzip.compress(content)})
        found = treebanks.read(treebanks.find(tmp_path))
        assert [str(cleaned) for cleaned in found] == [tree] * 3
