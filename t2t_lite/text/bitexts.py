"""Parallel text in the forms that corpora come in.

    two files, a sentence a line                 train.en  train.de
    two files of SGML segments (WMT's sets)      newstest2014-src.en.sgm  newstest2014-ref.de.sgm
    one table, by tabs, as CSV or JSON Lines     train.tsv  train.csv  train.jsonl
    one file of translation units (TMX)          train.tmx
    one archive of two files (OPUS's "Moses")    train.zip

each plain or compressed; `corpora` finds them. Nothing is left out here: where a translation unit
lacks a language its side is empty, and the generator counts it.
"""

import html
import itertools
import os
import pathlib
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NamedTuple
from xml.etree import ElementTree

from t2t_lite import errors
from t2t_lite.text import corpora, tables, text_files

Pairs = Iterator[tuple[str, str]]

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)
_SEGMENT_START = re.compile(r"(?=<seg\b)", re.IGNORECASE)
_ENDLESS = re.compile(r"&#[0-9]{1000,};?")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


# The limits of one translation unit, for the sake of memory: bytes, and nested elements.
_MAX_UNIT = 1 << 26
_MAX_DEPTH = 100


def read(corpus: corpora.Corpus, columns: Sequence[str] = ()) -> Pairs:
    """Yield the (source, target) pairs of a corpus, streaming.

    `columns` are names or numbers, from 1, of the source's and the target's column in a table that
    has more than two.
    """
    if corpus.form in corpora.TABLES:
        return tables.read(corpus, columns)
    if corpus.form == "tmx":
        return _units(corpus.paths[0], corpus.sides)
    if corpus.form == "zip":
        return _archive(corpus.paths[0], corpus.sides)
    is_sgml = corpus.form == "sgm"
    return text_files.read_pairs(*corpus.paths, read=_sgml if is_sgml else text_files.read_lines)


class Range(NamedTuple):
    """Lines of two files side by side: the first pair's number, and where they are in each file."""

    name: str  # of the corpus
    first: int
    paths: tuple[str, str]
    starts: tuple[int, int]
    ends: tuple[int, int]

    @property
    def size(self) -> int:
        """The bytes of both sides."""
        return sum(self.ends) - sum(self.starts)


def ranges(corpus: corpora.Corpus, every: int) -> list[Range] | None:
    """Return ranges of `every` pairs each of a corpus, in their order.

    None where a range cannot be read alone: in compressed files, and in all forms but two files
    with a sentence a line. Raises UserError if one file has more lines than the other.
    """
    is_plain = all(text_files.plain_name(path.name) == path.name for path in corpus.paths)
    if corpus.form != "lines" or not is_plain:
        return None
    source, target = (path.resolve() for path in corpus.paths)
    sources, num_sources = text_files.line_offsets(source, every)
    targets, num_targets = text_files.line_offsets(target, every)
    if num_sources != num_targets:
        raise text_files.unequal(source, target, num_sources, num_targets)
    return [
        Range(corpus.name, every * i, (str(source), str(target)), starts, ends)
        for i, (starts, ends) in enumerate(itertools.pairwise(zip(sources, targets)))
    ]


def read_range(place: Range) -> tuple[list[str], list[str]]:
    """Return the sources and the targets of a range."""
    source, target = (
        list(text_files.read_range(path, start, end))
        for path, start, end in zip(place.paths, place.starts, place.ends)
    )
    return source, target


def _sgml(path: str | os.PathLike[str]) -> Iterator[str]:
    return segments(text_files.read_lines(path), path)


def segments(lines: Iterable[str], path: object) -> Iterator[str]:
    """Yield the texts of <seg> elements, each as one line; WMT's files are not well-formed XML.

    Raises UserError, with the file's name, for an element without an end.
    """
    begun = ""  # the beginning of an element that has several lines
    for line in lines:
        _, *elements = _SEGMENT_START.split(begun + line)
        begun = ""
        for element in elements:
            if begun:
                raise _endless(path, begun)
            segment = _SEGMENT.match(element)
            if segment:
                # Python refuses to read a number of thousands of digits, and no character has one.
                text = _ENDLESS.sub(text_files.REPLACEMENT, segment[1])
                yield html.unescape(text).strip()
            else:
                begun = f"{element} "
    if begun:
        raise _endless(path, begun)


def _endless(path: object, segment: str) -> errors.UserError:
    return errors.UserError(f"{path}: a <seg> has no </seg>: {segment[:60]}")


def _archive(path: pathlib.Path, sides: tuple[str, str]) -> Pairs:
    """Yield the lines of the two members of a zip archive that end in the sides' names."""
    with text_files.explain_damage(path), zipfile.ZipFile(path) as archive:
        members = [_member(archive, path, side) for side in sides]

        def lines(member: text_files.Path) -> Iterator[str]:
            with archive.open(str(member)) as file:
                yield from text_files.open_lines(file, f"{path}/{member}")

        try:
            yield from text_files.read_pairs(*members, read=lines)
        except (RuntimeError, NotImplementedError) as error:  # a password, an unknown method
            raise errors.UserError(f"{path} cannot be unpacked: {error}") from error


def _member(archive: zipfile.ZipFile, path: pathlib.Path, side: str) -> str:
    names = archive.namelist()
    fitting = [name for name in names if name.lower().endswith(f".{side.lower()}")]
    if len(fitting) != 1:
        raise errors.UserError(
            f"{path}: expected one file that ends in .{side}, got {', '.join(fitting or names)}"
        )
    return fitting[0]


def _units(path: pathlib.Path, sides: tuple[str, str]) -> Pairs:
    keys = [side.lower() for side in sides]
    languages: set[str] = set()
    is_in_both = False
    parents: list[ElementTree.Element] = []
    with text_files.explain_damage(path), text_files.open_binary(path) as file:
        bounded = _Bounded(file, path)
        try:
            for event, element in ElementTree.iterparse(bounded, events=("start", "end")):
                if event == "start":
                    parents.append(element)
                    if len(parents) > _MAX_DEPTH:
                        raise errors.UserError(
                            f"{path} is not TMX: its elements are nested too deep"
                        )
                    continue
                parents.pop()
                if element.tag.rpartition("}")[2] == "tu":  # it may be in a namespace
                    texts = _unit(element)
                    is_in_both = is_in_both or texts.keys() >= set(keys)
                    languages.update(key for key in texts if "_" not in key)
                    sources, targets = (dict.fromkeys(texts.get(key, [""])) for key in keys)
                    yield from itertools.product(sources, targets)
                    bounded.begin()
                    if parents:
                        parents[-1].clear()  # else the whole file stays in memory
        except errors.UserError:
            raise
        # LookupError and ValueError: an encoding that is unknown or that the parser cannot use.
        except (ElementTree.ParseError, LookupError, ValueError) as error:
            raise errors.UserError(f"{path} is not well-formed TMX: {error}") from error
    if languages and not is_in_both:
        raise errors.UserError(
            f"{path} has no unit in both {sides[0]!r} and {sides[1]!r}, only in "
            f"{', '.join(sorted(languages))}: name the languages in the file's name, as in "
            f"train.{'-'.join(sorted(languages)[:2])}.tmx"
        )


class _Bounded:
    """An open file with a limit on the bytes that are read between two calls of `begin`."""

    def __init__(self, file: IO[bytes], path: pathlib.Path):
        self._file, self._path = file, path
        self.begin()

    def begin(self) -> None:
        self._count = 0

    def read(self, size: int = -1, /) -> bytes:
        block = self._file.read(size)
        self._count += len(block)
        if self._count > _MAX_UNIT:
            raise errors.UserError(
                f"{self._path}: one translation unit has more than {_MAX_UNIT >> 20} MB"
            )
        return block


def _unit(element: ElementTree.Element) -> dict[str, list[str]]:
    """Return a translation unit's texts by language; a language may have several.

    Those in en-GB have the keys "en_gb" and "en".
    """
    texts: dict[str, list[str]] = {}
    for variant in element.iterfind(".//{*}tuv"):
        language = variant.get(_LANGUAGE, variant.get("lang", "")).lower().replace("-", "_")
        segment = variant.find("{*}seg")
        if segment is not None:
            text = text_files.one_line("".join(_segment_text(segment)))
            for key in dict.fromkeys([language, language.partition("_")[0]]):
                texts.setdefault(key, []).append(text)
    return texts


def _segment_text(element: ElementTree.Element) -> Iterator[str]:
    """Yield the parts of a segment's text, without the codes of its layout.

    bpt, ept, it, ph and ut hold what the document's own format has there, such as "<b>"; only
    sub-flows in them, such as a footnote, are text.
    """
    is_code = element.tag.rpartition("}")[2] in ("bpt", "ept", "it", "ph", "ut")
    yield "" if is_code else element.text or ""
    for child in element:
        yield from _segment_text(child)
        yield "" if is_code else child.tail or ""
