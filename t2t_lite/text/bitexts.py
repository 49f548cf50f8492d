"""Parallel text in the forms that corpora come in.

    two files, a sentence a line                 train.en  train.de
    two files of SGML segments (WMT's sets)      newstest2014-src.en.sgm  newstest2014-ref.de.sgm
    one file, tab-separated                      train.tsv
    one file of translation units (TMX)          train.tmx

each plain or compressed. Nothing is left out here: where a translation unit lacks a language its
side is empty, and the generator counts it.
"""

import html
import itertools
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from t2t_lite import errors
from t2t_lite.text import text_files

Pairs = Iterator[tuple[str, str]]

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)
_ENDLESS = re.compile(r"&#[0-9]{1000,};?")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def find(directory: pathlib.Path, stem: str, sides: tuple[str, str]) -> list[pathlib.Path]:
    """Return the one or two files of a folder that hold `stem`, or [] where some are missing."""
    for suffix in ("", ".sgm"):
        both = [text_files.find(directory, f"{stem}.{side}{suffix}") for side in sides]
        if all(both):
            return [path for path in both if path]
    single = (text_files.find(directory, f"{stem}{suffix}") for suffix in (".tsv", ".tmx"))
    return [path for path in single if path][:1]


def read(paths: Sequence[pathlib.Path], sides: tuple[str, str]) -> Pairs:
    """Yield the (source, target) pairs of the files that `find` found, streaming."""
    names = [text_files.plain_name(path.name) for path in paths]
    if len(paths) == 2:
        is_sgml = any(name.endswith(".sgm") for name in names)
        return text_files.read_pairs(*paths, read=_sgml if is_sgml else text_files.read_lines)
    return _units(paths[0], sides) if names[0].endswith(".tmx") else _columns(paths[0])


class Range(NamedTuple):
    """Lines of two files side by side: the first pair's number, and each file's bytes of them."""

    first: int
    paths: tuple[str, str]
    starts: tuple[int, int]
    ends: tuple[int, int]

    @property
    def size(self) -> int:
        """Bytes of both."""
        return sum(self.ends) - sum(self.starts)


def ranges(paths: Sequence[pathlib.Path], every: int) -> list[Range] | None:
    """Return the ranges of `every` pairs each of the files that `find` found, in their order.

    None where a range cannot be read alone: in compressed files, and those of another form than a
    sentence a line. Raises UserError if one file has more lines than the other.
    """
    names = [text_files.plain_name(path.name) for path in paths]
    is_plain = names == [path.name for path in paths]
    if len(paths) != 2 or not is_plain or any(name.endswith(".sgm") for name in names):
        return None
    source, target = (path.resolve() for path in paths)
    sources, num_sources = text_files.line_offsets(source, every)
    targets, num_targets = text_files.line_offsets(target, every)
    if num_sources != num_targets:
        raise text_files.unequal(source, target, num_sources, num_targets)
    return [
        Range(every * i, (str(source), str(target)), starts, ends)
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
    return segments(text_files.read_lines(path))


def segments(lines: Iterable[str]) -> Iterator[str]:
    """Yield the texts of <seg> elements, one a line; WMT's files are not well-formed XML."""
    for line in lines:
        for segment in _SEGMENT.findall(line):
            # Python does not read a number of thousands of digits, and no character has so many.
            yield html.unescape(_ENDLESS.sub(text_files.REPLACEMENT, segment)).strip()


def _columns(path: pathlib.Path) -> Pairs:
    for number, line in enumerate(text_files.read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise errors.UserError(
                f"{path}: expected 2 columns separated by a tab, line {number} has {len(columns)}"
            )
        yield columns[0], columns[1]


def _units(path: pathlib.Path, sides: tuple[str, str]) -> Pairs:
    languages: set[str] = set()
    is_in_both = False
    parents: list[ElementTree.Element] = []
    with text_files.explain_damage(path), text_files.open_binary(path) as file:
        try:
            for event, element in ElementTree.iterparse(file, events=("start", "end")):
                if event == "start":
                    parents.append(element)
                    continue
                parents.pop()
                if element.tag == "tu":
                    texts = _unit(element)
                    is_in_both = is_in_both or texts.keys() >= set(sides)
                    languages.update(texts)
                    yield texts.get(sides[0], ""), texts.get(sides[1], "")
                    if parents:
                        parents[-1].clear()  # what was read; else the whole file stays in memory
        # The latter two are of an unknown encoding, or one that the parser cannot use.
        except (ElementTree.ParseError, LookupError, ValueError) as error:
            raise errors.UserError(f"{path} is not well-formed TMX: {error}") from error
    if languages and not is_in_both:
        raise errors.UserError(
            f"{path} has no unit in both {sides[0]!r} and {sides[1]!r}, only in "
            f"{', '.join(sorted(languages))}: read it with a problem whose sides are two of these"
        )


def _unit(element: ElementTree.Element) -> dict[str, str]:
    """Return a translation unit's texts by language, "en" for en-GB."""
    texts = {}
    for variant in element.iter("tuv"):
        language = variant.get(_LANGUAGE, variant.get("lang", "")).lower().partition("-")[0]
        segment = variant.find("seg")
        if segment is not None:
            texts[language] = "".join(segment.itertext())
    return texts
