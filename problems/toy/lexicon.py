"""The words of the toy grammar: the tables in tables/, where "-" is an empty cell.

An entry is its row, {column: cell}. A verb's form is named by person and number: "1s" is I, "3s"
she, "3p" they. Nouns with two readings, as bank has, are of two kinds, and verbs, adjectives and
prepositions that go with one kind decide which is meant; adjectives with two carry the sense in
their key, as light/weight. An English particle is "up" in get up, a German one a separable prefix,
a French one a fixed noun, as in rendre visite. Moods and sentences are patterns, with in braces
what fills them: the forms and the parts of a clause that clauses.py names. An adjective may be
stated of its noun plainly or by degrees (very, too); a verb that may stand in a relative clause
takes a plain object in all three languages.
"""

import csv
import pathlib

Row = dict[str, str]


def rows(table: str) -> list[Row]:
    """Read a table: a line of column names, then one entry a line."""
    path = pathlib.Path(__file__).parent / "tables" / f"{table}.tsv"
    with path.open(encoding="utf-8", newline="") as lines:
        entries = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [{key: cell if cell != "-" else "" for key, cell in row.items()} for row in entries]


def keyed(table: str) -> dict[str, Row]:
    """Read a table whose first column names the row."""
    return {next(iter(row.values())): row for row in rows(table)}


def grouped(table: str) -> dict[str, list[Row]]:
    """Read a table whose first column names a group of rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows(table):
        groups.setdefault(next(iter(row.values())), []).append(row)
    return groups


LANGUAGES = ("english", "german", "french")
PRONOUNS = keyed("pronouns")
DETERMINERS = keyed("determiners")
ENDINGS = {(row["declension"], row["case"]): row for row in rows("endings")}  # German
ADJECTIVES = keyed("adjectives")
KINDS = keyed("kinds")  # of nouns
FITTING = {  # the adjectives that go with a kind
    kind: [ADJECTIVES[key] for key in row["adjectives"].split()] for kind, row in KINDS.items()
}
NOUNS = grouped("nouns")  # by kind
VERBS = grouped("verbs")  # by whom they are said of
FORMS = {language: keyed(f"{language}_verbs") for language in LANGUAGES}
MOODS = keyed("moods")
ADVERBS = keyed("adverbs")
DEGREES = keyed("degrees")
CONNECTIVES = keyed("connectives")


def nouns(kinds: str) -> list[Row]:
    """Return the nouns of all the kinds named, e.g. "men women", each kind once."""
    return [noun for kind in dict.fromkeys(kinds.split()) for noun in NOUNS[kind]]


HUMAN = "men women children"
PEOPLE = nouns(HUMAN)
PLACES = nouns("rooms outdoors sights institutions")


def past_shows(verb: Row) -> bool:
    """Say whether "they did" differs from "they do": not so with read."""
    return FORMS["english"][verb["english"]]["past"] != verb["english"]


def is_oblique(verb: Row) -> bool:
    """Say whether any language has more than a plain object: wait for, danken with its dative."""
    has_preposition = any(verb[f"{language}_preposition"] for language in LANGUAGES)
    return has_preposition or verb["german_case"] == "dat"
