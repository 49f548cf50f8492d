"""Parallel text in tables: by tabs (.tsv), as CSV (.csv) or JSON Lines (.jsonl).

    id  score  en           de                    --> ("A dog runs.", "Ein Hund rennt.")
    17  0.93   A dog runs.  Ein Hund rennt.

A header line, or the keys of JSON, that names both sides says which columns they are; of two
columns the first is the source, or the language that the file's name has first.
"""

import csv
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from t2t_lite import errors
from t2t_lite.text import corpora, text_files

_MAX_CELL = 1 << 26  # characters


def read(corpus: corpora.Corpus, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a table; `columns` are names or numbers of those that to read.

    A table that has not these columns is read as if none were given.
    """
    if corpus.form == "jsonl":
        yield from _objects(corpus, columns)
        return
    rows = (_csv if corpus.form == "csv" else _tabs)(corpus)
    first = next(rows, None)
    if first is None:
        return
    places, is_header = _places(corpus, first[1], columns)
    for number, row in rows if is_header else itertools.chain([first], rows):
        if len(row) != len(first[1]):
            raise errors.UserError(
                f"{corpus.paths[0]}: expected {len(first[1])} columns, as in line 1, line {number} "
                f"has {len(row)}"
            )
        yield text_files.one_line(row[places[0]]), text_files.one_line(row[places[1]])


def _places(
    corpus: corpora.Corpus, first: Sequence[str], columns: Sequence[str]
) -> tuple[tuple[int, int], bool]:
    """Return where source and target are in a row, and whether the first row is a header."""
    names = [cell.strip().lower() for cell in first]
    numbers = [int(column) - 1 for column in columns if column.isdecimal()]
    asked = [] if len(numbers) == 2 else [columns]
    pairs = [_lower(pair) for pair in [*asked, *_names(corpus)] if pair]
    known = [pair for pair in pairs if set(pair) <= set(names)]
    if len(numbers) == 2 and min(numbers) >= 0 and max(numbers) < len(first):
        source, target = numbers
        # a header that calls just these two by their languages knows which is which
        if corpus.sides != corpora.GENERIC and (names[target], names[source]) == corpus.sides:
            source, target = target, source
    elif known:
        source, target = map(names.index, known[0])
    elif len(first) == 2:
        source, target = (1, 0) if corpus.named == corpus.sides[::-1] else (0, 1)
    else:
        raise errors.UserError(
            f"{corpus.paths[0]} has {len(first)} columns ({', '.join(names)[:100]}): give "
            "--columns with the numbers or names of two, such as --columns=1,2, or a first line "
            f"with the names {' and '.join(corpus.sides)}"
        )
    codes = names[source], names[target]
    if not known and codes[0] != codes[1] and all(re.fullmatch("[a-z]{2}", code) for code in codes):
        raise errors.UserError(
            f"{corpus.paths[0]}: line 1 looks like a header, {' and '.join(codes)}: give "
            f"--columns={','.join(codes)} if it is, else begin with another pair"
        )
    return (source, target), bool(known)


def _names(corpus: corpora.Corpus) -> list[Sequence[str]]:
    """Return what the two sides may be called in a header."""
    return [corpus.sides, corpora.GENERIC, ("src", "tgt"), ("src", "trg")]


def _lower(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _tabs(corpus: corpora.Corpus) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text_files.read_lines(corpus.paths[0]), start=1):
        yield number, line.split("\t")


def _csv(corpus: corpora.Corpus) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of CSV, separated by what its first line has most of."""
    lines = (f"{line}\n" for line in text_files.read_lines(corpus.paths[0]))
    first = next(lines, "")
    csv.field_size_limit(_MAX_CELL)
    delimiter = max(",;\t", key=first.count)
    rows = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True)
    try:
        for row in rows:
            if row:
                yield rows.line_num, row
    except csv.Error as error:
        raise errors.UserError(
            f"{corpus.paths[0]}: line {rows.line_num} is not CSV: {error}; call a file without "
            "CSV's quotes .tsv"
        ) from error


def _objects(corpus: corpora.Corpus, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text_files.read_lines(corpus.paths[0]), start=1):
        where = f"{corpus.paths[0]}, line {number}"
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise errors.UserError(f"{where} is not JSON: {error}") from error
        if isinstance(fields, dict) and isinstance(fields.get("translation"), dict):
            fields = fields["translation"]
        pairs = [tuple(columns), *_names(corpus)] if isinstance(fields, Mapping) else []
        texts: list[list[Any]] = [[fields.get(key) for key in pair] for pair in pairs if pair]
        found = next((pair for pair in texts if all(isinstance(t, str) for t in pair)), None)
        if found is None:
            raise errors.UserError(
                f"{where}: expected an object with the texts {' and '.join(corpus.sides)}, got "
                f"{line[:60]}: give --columns with the names of its two keys"
            )
        yield text_files.one_line(found[0]), text_files.one_line(found[1])
