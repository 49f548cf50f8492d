"""Noun phrases of the toy grammar: determiners, adjectives, pronouns and their agreement.

Trees and texts are written as they read; empty pieces leave spaces, which the sentence drops.
"""

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from . import lexicon

CASES = ("nom", "acc", "dat", "gen")
VOWELS = "aeiouyhàâéèêëîïôûœ"  # every h in the lexicon is mute


class Agreement(NamedTuple):
    """What agrees with a noun phrase in one language: a verb's form, and a gender."""

    form: str
    gender: str

    @property
    def is_plural(self) -> bool:
        return self.form.endswith("p")

    @property
    def ending(self) -> str:
        """The column of a table of endings."""
        return "p" if self.is_plural else self.gender

    @property
    def pronoun(self) -> lexicon.Row:
        """The row of the pronoun that refers to it."""
        return lexicon.PRONOUNS.get(f"{self.form} {self.gender}") or lexicon.PRONOUNS[self.form]


class Referent(NamedTuple):
    """What agrees with a noun phrase; English has gender "n" for all but people."""

    english: Agreement
    german: Agreement
    french: Agreement


def alike(form: str, gender: str) -> Referent:
    return Referent(*[Agreement(form, gender)] * 3)


SPEAKERS = [alike("1s", "m"), alike("1p", "m")]
OTHERS = [alike("3s", "m"), alike("3s", "f")]


class Phrase(NamedTuple):
    """A noun phrase, in German by case."""

    tree: str
    german: dict[str, str]
    french: str
    who: Referent
    kind: str = ""  # the noun's
    definite: bool = True


def referent(noun: lexicon.Row, plural: bool) -> Referent:
    """Say what agrees with a noun; in a language that lacks the number meant it has the other."""

    def agreement(language: str) -> Agreement:
        is_plural = noun[f"{language}_plural"] and (plural or not noun[language])
        return Agreement("3p" if is_plural else "3s", noun[f"{language}_gender"])

    return Referent(*map(agreement, lexicon.LANGUAGES))


def german_np(
    noun: lexicon.Row, determiner: lexicon.Row, adjectives: Sequence[lexicon.Row], who: Agreement
) -> dict[str, str]:
    number, texts = "german_plural" if who.is_plural else "german", {}
    for case in CASES:
        ending = lexicon.ENDINGS[determiner["adjectives"], case][who.ending]
        words = [adjective["german_stem"] + ending for adjective in adjectives]
        article = determiner["german"]
        if determiner["declension"]:
            article += lexicon.ENDINGS[determiner["declension"], case][who.ending]
        texts[case] = " ".join([article, *words, noun.get(f"{number}_{case}", noun[number])])
    return texts


def french_agreeing(masculine: str, feminine: str, who: Agreement) -> str:
    """Give an adjective or a participle its ending."""
    word = feminine if who.gender == "f" else masculine
    if not who.is_plural or word[-1] in "sx":
        return word
    return word + ("x" if word.endswith("eau") else "s")


def french_np(
    noun: lexicon.Row, determiner: lexicon.Row, adjectives: Sequence[lexicon.Row], who: Agreement
) -> str:
    words = [noun["french_plural" if who.is_plural else "french"]]
    article = determiner[f"french_{who.ending}"]
    for adjective in reversed(adjectives):
        form = french_agreeing(adjective["french_m"], adjective["french_f"], who)
        if who == ("3s", "m") and words[0][0] in VOWELS:
            form = adjective["french_before_vowel"] or form
        if adjective["place"] == "before":
            words.insert(0, form)
            article = "de" if article == "des" else article  # de belles pommes
        else:
            words.append(form)
    return " ".join([article, *words])


def noun_phrase(
    rng: Random,
    noun: lexicon.Row,
    determiners: str = "the the the this a",
    *,
    owner: str = "",
    negated: bool = False,
    adjectives: float = 0.4,
    plurals: float = 0.25,
) -> Phrase:
    """Draw a determiner (one of `determiners`), number and adjectives for a noun.

    The determiner "own" is `owner`, as in "her", or "the" where there is none.
    """
    if noun["kind"] in ("names", "cities"):
        tree = f"(NP (NNP {noun['english']}))"
        who = referent(noun, False)
        german = {case: noun["german"] for case in CASES}
        return Phrase(tree, german, noun["french"], who, noun["kind"])
    key = rng.choice(determiners.split()).replace("own", owner or "the")
    definite = key not in ("a", "every", "some", "many", "two", "three")
    if not definite and not (noun["english"] and noun["english_plural"]):
        is_mass = not (noun["english_plural"] or noun["german_plural"] or noun["french_plural"])
        key, definite = ("some", False) if is_mass else ("the", True)
    plural = rng.random() < plurals if definite else key not in ("a", "every")
    who = referent(noun, plural)
    plural = who.english.is_plural
    chosen = draw_adjectives(rng, noun, adjectives)

    determiner = lexicon.DETERMINERS[f"not {key}" if negated and key in ("a", "some") else key]
    leaves = [f"(JJ {adjective['english']})" for adjective in chosen]
    leaves.append(f"(NNS {noun['english_plural']})" if plural else f"(NN {noun['english']})")
    article = determiner["english_plural" if plural else "english"]
    if article == "a" and re.match(r"\(\w+ [aeiou]", leaves[0], re.IGNORECASE):
        article = "an"
    if article:
        leaves.insert(0, f"({determiner['tag']} {article})")
    return Phrase(
        f"(NP {' '.join(leaves)})",
        german_np(noun, determiner, chosen, who.german),
        french_np(noun, determiner, chosen, who.french),
        who,
        noun["kind"],
        definite,
    )


def draw_adjectives(rng: Random, noun: lexicon.Row, rate: float) -> list[lexicon.Row]:
    """Draw none, one, or two: one that French puts before the noun and one that it puts after."""
    fitting = lexicon.FITTING[noun["kind"]]
    if not fitting or rng.random() >= rate:
        return []
    before = [adjective for adjective in fitting if adjective["place"] == "before"]
    after = [adjective for adjective in fitting if adjective["place"] == "after"]
    if before and after and rng.random() < 0.2:
        return [rng.choice(before), rng.choice(after)]
    return [rng.choice(fitting)]


def pronoun(who: Referent) -> Phrase:
    """Refer to `who` by a subject: it is er, sie or es, il or elle, as the noun's gender wants."""
    tree = f"(NP (PRP {who.english.pronoun['english_subject']}))"
    german = {"nom": who.german.pronoun["german_nom"]}
    return Phrase(tree, german, who.french.pronoun["french_subject"], who)


def pair(one: Phrase, other: Phrase) -> Phrase:
    """Coordinate: Anna and Paul, who together are masculine in French unless both are feminine."""
    gender = "f" if one.who.french.gender == other.who.french.gender == "f" else "m"
    return Phrase(
        f"(NP {one.tree} (CC and) {other.tree})",
        {case: f"{one.german[case]} und {other.german[case]}" for case in CASES},
        f"{one.french} et {other.french}",
        alike("3p", gender),
    )


def extended(phrase: Phrase, tree: str, german: str, french: str) -> Phrase:
    """The car of the doctor, the man who called: what follows a noun is the same in all cases."""
    return phrase._replace(
        tree=f"(NP {phrase.tree} {tree})",
        german={case: f"{text} {german}" for case, text in phrase.german.items()},
        french=f"{phrase.french} {french}",
    )
