"""Finds the files of a split: any number of them, in any form that `bitexts` reads.

    train.source train.target     train.2.en-de.tmx.gz     train/web.csv     train.en-de/news.zip

They are the files whose names begin with the split's stem and a dot, and all that is in a folder
of such a name. Names in the folder are free, but two files of one text differ in their endings
only. A file that looks like part of a split and cannot be used is an error that says what to do.
"""

import dataclasses
import itertools
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence

from t2t_lite import errors
from t2t_lite.text import text_files

Sides = tuple[str, str]
GENERIC: Sides = ("source", "target")
TABLES = ("tsv", "csv", "jsonl")
_SINGLE = (*TABLES, "tmx", "zip")  # one file has both sides
FORMS = (
    "two files that end in .source and .target or in two languages (.txt or .sgm may follow), or "
    f"{', '.join(f'.{form}' for form in _SINGLE)}; each plain or "
    f"{', '.join(text_files.SUFFIXES[1:])}"
)
SYNONYMS = {"src": "source", "tgt": "target", "trg": "target"}
# what people call a split beside its stem: files of these names are not read, but told of
_STEM_SYNONYMS = {"train": ["training"], "dev": ["devel", "val", "valid", "validation", "tune"]}
_LANGUAGE = "[a-z]{2,3}(?:_[a-z]+)?"
_LANGUAGES = re.compile(f"({_LANGUAGE})-({_LANGUAGE})", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Corpus:
    """One file with both sides, or a file for each.

    Attributes:
      paths: one or two files.
      names: the same below the folder of all splits.
      form: "tsv", "csv", "jsonl", "tmx" or "zip" of one file, "lines" or "sgm" of two.
      sides: what source and target are called in the file, e.g. ("en", "de").
      named: the languages that its name tells, in the name's order.
    """

    paths: tuple[pathlib.Path, ...]
    names: tuple[str, ...]
    form: str
    sides: Sides
    named: Sides | None = None

    @property
    def name(self) -> str:
        """The names of its files, for a list: "train.en + train.de"."""
        return " + ".join(self.names)


def direction(name: str) -> Sides | None:
    """Return ("en", "de") for train.en-DE.zip, None where the name has no languages."""
    told = next(filter(None, map(_LANGUAGES.fullmatch, name.lower().split("."))), None)
    return (told[1], told[2]) if told else None


def languages(folder: pathlib.Path, stems: Iterable[str]) -> Sides | None:
    """Return the languages that the names of files and folders tell, None where they tell none.

    Raises UserError where they tell several.
    """
    entries = [entry for stem in stems for entry in _entries(folder, stem)]
    told = {pair: entry.name for entry in entries if (pair := direction(entry.name))}
    if len(told) > 1:
        raise errors.UserError(
            f"{folder} has files from {' and from '.join('-'.join(pair) for pair in told)} "
            f"({', '.join(told.values())}): leave one pair of languages, and rename them to one "
            "order, that from which to which you translate; their content may stay"
        )
    return next(iter(told), None)


def find(folder: pathlib.Path, stem: str, sides: Sides, told: Sides | None = None) -> list[Corpus]:
    """Return the corpora of a split in the order of their names.

    `told` are the languages of GENERIC sides. With other sides files in other languages are passed
    over. Raises UserError for a file that cannot be used.
    """
    first, second = (side.lower() for side in sides)
    pairs = [told, GENERIC] if told and sides == GENERIC else [(first, second)]
    groups: dict[tuple[pathlib.Path, str, str], dict[str, pathlib.Path]] = {}
    for path in files(folder, stem):
        if not path.is_file():
            raise errors.UserError(f"{path} is not a file: is it a link to nothing?")
        name, form, side = _parts(path.name)
        group = groups.setdefault((path.parent, name, form), {})
        if side in group:
            raise errors.UserError(
                f"{folder} has both {group[side].name} and {path.name}: leave one"
            )
        group[side] = path
    found = []
    for (_, name, form), group in groups.items():
        named = direction(name)
        fits = not named or any(set(named) == set(pair) for pair in pairs)
        is_single = form in _SINGLE
        own = pairs[:1] if is_single else [pair for pair in pairs if set(pair) <= group.keys()]
        others = group.keys() - {"", *itertools.chain(*own)}
        foreign = others - {*pairs[0]}
        is_foreign = sides != GENERIC and (not fits or (foreign and _are_languages(foreign)))
        if not is_foreign and (others or not own or not fits):
            raise _unusable(folder, stem, group, named)
        for pair in own if fits else []:
            paths = tuple(group[side] for side in ([""] if is_single else pair))
            names = tuple(text_files.printable(path.relative_to(folder)) for path in paths)
            found.append(Corpus(paths, names, form, pair, named))
    return found


def refuse_strays(folder: pathlib.Path, stems: Sequence[str]) -> None:
    """Raise UserError for a file that looks like part of a split and is not, such as train2.en."""
    known = {entry for stem in stems for entry in _entries(folder, stem)}
    for entry, stem in itertools.product(sorted(set(folder.iterdir()) - known), stems):
        words = "|".join([re.escape(stem), *_STEM_SYNONYMS.get(stem, [])])
        # a file that has the word among others, or a folder that is called so, as train2 is
        before, after = ("[^a-z]*", "[^a-z]*") if entry.is_dir() else (".*[^a-z]|", "[^a-z].*|")
        match = re.fullmatch(f"({before})(?:{words})({after})", entry.name, re.IGNORECASE)
        if match and not entry.name.startswith("."):
            better = ".".join(filter(None, (stem, match[1].strip("-_."), match[2].strip("-_."))))
            raise errors.UserError(
                f"{entry} looks like part of {stem} and would not be read: call it {better}, put "
                f"it into a folder {stem}, or move it elsewhere"
            )


def files(folder: pathlib.Path, stem: str) -> list[pathlib.Path]:
    """Return the files of a split, those in its folder at any depth, sorted.

    Hidden files and those without an ending, such as README, are left out.
    """
    return sorted(
        path
        for entry in _entries(folder, stem)
        for path in (text_files.below(entry) if entry.is_dir() else [entry])
        if path == entry or path.suffix
    )


def _entries(folder: pathlib.Path, stem: str) -> list[pathlib.Path]:
    return [entry for entry in folder.iterdir() if f"{entry.name}.".startswith(f"{stem}.")]


def _parts(name: str) -> tuple[str, str, str]:
    """Return name, form and side: "a.de-en.en.txt.gz" --> "a.de-en", "lines", "en"."""
    plain = re.sub(r"\.txt$", "", text_files.plain_name(name), flags=re.IGNORECASE)
    stem, _, ending = plain.rpartition(".")
    ending = ending.lower()
    if ending in _SINGLE:
        return stem, ending, ""
    if ending in ("sgm", "sgml"):
        stem, _, side = stem.rpartition(".")
        return re.sub("[-.](src|ref)$", "", stem), "sgm", SYNONYMS.get(side.lower(), side.lower())
    return stem, "lines", SYNONYMS.get(ending, ending)


def _are_languages(sides: Iterable[str]) -> bool:
    return all(re.fullmatch(_LANGUAGE, side) for side in sides)


def _unusable(
    folder: pathlib.Path, stem: str, group: Mapping[str, pathlib.Path], named: Sides | None
) -> errors.UserError:
    """Return the error for files that look like a text of a split, with what to do."""
    paths = sorted(group.values())
    shown = " and ".join(path.relative_to(folder).as_posix() for path in paths[:4])
    languages = named or sorted(group)
    if len(languages) == 2 and _are_languages(languages):
        first, second = "-".join(languages), "-".join(languages[::-1])
        what = "the folder" if paths[0].parent != folder else "it" if named else "them"
        endings = f" ({stem}.{first}.{languages[0]}, ...)" if what == "them" else ""
        advice = (
            f"say from which to which language you translate, and call {what} {stem}.{first} or "
            f"{stem}.{second}{endings}; all files of the folder are in the same two languages"
        )
    elif len(paths) == 1 and (group.keys() <= {*GENERIC} or _are_languages(group)):
        advice = f"there is no file of the other side beside it; expected {FORMS}"
    else:
        advice = f"expected {FORMS}; move other files elsewhere"
    return errors.UserError(f"{folder}: {shown} cannot be used as {stem}: {advice}")
