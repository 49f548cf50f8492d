"""Noun phrases of the toy grammar: determiners, adjectives, pronouns and their agreement."""

import itertools
import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from . import toy_lexicon as lexicon
from . import toy_verbs as verbs
from .toy_verbs import HE, THEY, WE


class Referent(NamedTuple):
    """What agrees with a noun phrase: the form of its verb, and its gender, in each language."""

    english: int
    german: int
    french: int
    he: str  # English gender: "m", "f" or "n"
    er: str  # German gender
    il: str  # French gender: "m" or "f"


class Phrase(NamedTuple):
    """A noun phrase; `german` takes the case."""

    tree: str
    german: Callable[[str], str]
    french: str
    who: Referent
    definite: bool = True
    kein: bool = False


class Complement(NamedTuple):
    """What follows a verb in English. German sorts its middle field by `rank`."""

    tree: str
    german: str
    french: str
    rank: int
    clitic: str = ""  # a French object pronoun, before the verb
    agree: Referent | None = None  # with which the past participle then agrees
    kein: bool = False


PRONOUN, TIME, OFTEN, DATIVE, GIVEN, NOT, PLACE, FRESH, LAST = range(
    9
)  # ranks of the German middle field


def join(*words: str) -> str:
    return " ".join(filter(None, words))


def node(label: str, *children: str) -> str:
    return f"({label} {join(*children)})"


# Noun phrases -----------------------------------------------------------------------------------


def endings(table: str) -> dict[tuple[str, str], str]:
    """Read four rows (nom, acc, dat, gen) of four endings (m, f, n, p)."""
    cells = [end.strip("-") for end in table.split()]
    return dict(zip(itertools.product(("nom", "acc", "dat", "gen"), "mfnp"), cells, strict=True))


DER = endings("der die das die   den die das die   dem der dem den   des der des der")
DIES = endings("er e es e         en e es e         em er em en       es er es er")
EIN = endings("-  e -  e         en e -  e         em er em en       es er es er")
WEAK = endings("e  e e  en        en e e  en        en en en en       en en en en")
MIXED = endings("er e es en        en e es en        en en en en       en en en en")
STRONG = endings("er e es e         en e es e         em er em en       en er en er")

NUMERALS = {"two": ("zwei", "deux"), "three": ("drei", "trois"), "four": ("vier", "quatre")}
OWNERS = {  # English, German stem, French masculine, feminine, plural
    "I": ("my", "mein", "mon ma mes"),
    "we": ("our", "unser", "notre notre nos"),
    "m": ("his", "sein", "son sa ses"),
    "f": ("her", "ihr", "son sa ses"),
    "they": ("their", "ihr", "leur leur leurs"),
}
FRENCH_DETERMINERS = {  # masculine, feminine, plural
    "the": "le la les",
    "a": "un une des",
    "": "un une des",
    "this": "ce cette ces",
    "every": "chaque chaque chaque",
}
VOWELS = "aeiouyhàâéèêëîïôûœ"  # every h in the lexicon is mute


def german_noun(noun: lexicon.Noun, case: str, plural: bool) -> str:
    word = noun.german
    if plural:
        return word.plural + ("n" if case == "dat" and word.plural[-1] not in "ns" else "")
    if word.weak and case != "nom":
        return word.plural
    if case == "gen" and word.gender != "f":
        syllables = re.findall("[aeiouyäöü]+", word.singular.lower())
        return word.singular + ("es" if len(syllables) == 1 else "s")
    return word.singular


def german_np(
    noun: lexicon.Noun, determiner: str, adjectives: Sequence[lexicon.Adjective], plural: bool, case
) -> str:
    slot = (case, "p" if plural else noun.german.gender)
    if determiner == "the":
        word, table = DER[slot], WEAK
    elif determiner in ("this", "every"):
        word, table = {"this": "dies", "every": "jed"}[determiner] + DIES[slot], WEAK
    elif determiner in NUMERALS or determiner == "":
        word, table = NUMERALS.get(determiner, ("",))[0], STRONG
    elif determiner == "many":
        word, table = "viel" + STRONG[slot], STRONG
    else:  # ein, kein, mein
        word, table = determiner + EIN[slot], MIXED
    inflected = (adjective.german_stem + table[slot] for adjective in adjectives)
    return join(word, *inflected, german_noun(noun, case, plural))


def french_agreeing(word: str, who_plural: bool) -> str:
    if not who_plural or word[-1] in "sx":
        return word
    return word + ("x" if word.endswith("eau") else "s")


def french_adjective(adjective: lexicon.Adjective, gender: str, plural: bool) -> str:
    return french_agreeing(adjective.french[gender == "f"], plural)


def french_np(
    noun: lexicon.Noun, determiner: str, adjectives: Sequence[lexicon.Adjective], plural: bool
) -> str:
    gender = noun.french.gender
    words = [noun.french.plural if plural else noun.french.singular]
    for adjective in sorted(adjectives, key=lambda adjective: adjective.precedes):
        if not adjective.precedes:
            words.append(french_adjective(adjective, gender, plural))
        elif gender == "m" and not plural and words[0][0] in VOWELS:
            words.insert(0, adjective.french_before_vowel)
        else:
            words.insert(0, french_adjective(adjective, gender, plural))
    vowel = words[0][0] in VOWELS
    if determiner in NUMERALS:
        return join(NUMERALS[determiner][1], *words)
    if determiner in ("de", "many"):
        return join("de" if determiner == "de" else "beaucoup de", *words)
    if determiner == "" and not plural:  # du, de la, de l'
        return join("de", "la" if gender == "f" else "le", *words)
    forms = FRENCH_DETERMINERS.get(determiner, determiner).split()
    article = forms[2] if plural else forms[gender == "f"]
    if article == "des" and adjectives and any(adjective.precedes for adjective in adjectives):
        article = "de"  # de belles pommes
    elif vowel and not plural:  # cet, mon
        article = {"ce": "cet", "ma": "mon", "sa": "son"}.get(article, article)
    return join(article, *words)


def has(forms: lexicon.Forms, plural: bool) -> bool:
    return bool(forms.plural if plural else forms.singular)


def noun_phrase(
    rng: random.Random,
    noun: lexicon.Noun,
    determiners: str = "the the the this a",
    *,
    owner: str = "",
    negated: bool = False,
    adjectives: float = 0.4,
    plurals: float = 0.25,
) -> Phrase:
    """Draw a determiner (one of `determiners`), number and adjectives for a noun."""
    if not noun.adjectives and noun.english.singular[:1].isupper():  # a name
        tree = node("NP", node("NNP", noun.english.singular))
        who = Referent(HE, HE, HE, noun.german.gender, noun.german.gender, noun.french.gender)
        return Phrase(tree, lambda case: noun.german.singular, noun.french.singular, who)
    determiner = rng.choice(determiners.split())
    if determiner == "own" and not owner:
        determiner = "the"
    mass = not (noun.english.plural or noun.german.plural or noun.french.plural)
    if not (noun.english.singular and noun.english.plural):
        determiner = determiner if determiner in ("the", "this", "own") else "" if mass else "the"
    elif determiner == "some":
        determiner = ""
    plural = determiner in NUMERALS or determiner in ("", "many")
    if determiner in ("the", "this", "own"):
        plural = rng.random() < plurals
    plural = plural if has(noun.english, plural) else not plural
    german_plural = plural if has(noun.german, plural) else not plural
    french_plural = plural if has(noun.french, plural) else not plural
    chosen = draw_adjectives(rng, noun, adjectives)

    word = noun.english.plural if plural else noun.english.singular
    words = [adjective.english for adjective in chosen]
    english, german, french = {
        "this": ("these" if plural else "this", "this", "this"),
        "a": ("an" if (words + [word])[0][0].lower() in "aeiou" else "a", "ein", "a"),
        "own": OWNERS.get(owner, ("", "", "")),
    }.get(determiner, (determiner,) * 3)
    kein = negated and determiner in ("a", "")
    if kein:
        german, french = "kein", "de"
    tag = {"own": "PRP$", "many": "JJ"}.get(determiner, "CD" if determiner in NUMERALS else "DT")
    tree = node(
        "NP",
        node(tag, english) if english else "",
        *(node("JJ", adjective) for adjective in words),
        node("NNS" if plural else "NN", word),
    )
    numbers = (plural, german_plural, french_plural)
    slot, german_slot, french_slot = (THEY if number else HE for number in numbers)
    people = noun.adjectives and lexicon.ADJECTIVES["friendly"] in noun.adjectives
    human = bool(people) or noun in lexicon.RELATIVES.values()
    gender = noun.german.gender if human else "n"
    return Phrase(
        tree,
        lambda case: german_np(noun, german, chosen, german_plural, case),
        french_np(noun, french, chosen, french_plural),
        Referent(slot, german_slot, french_slot, gender, noun.german.gender, noun.french.gender),
        definite=determiner in ("the", "this", "own"),
        kein=kein,
    )


def draw_adjectives(
    rng: random.Random, noun: lexicon.Noun, rate: float
) -> tuple[lexicon.Adjective, ...]:
    """Draw none, one, or two: one that French puts before the noun and one that it puts after."""
    if not noun.adjectives or rng.random() >= rate:
        return ()
    if noun.before and noun.after and rng.random() < 0.2:
        return (rng.choice(noun.before), rng.choice(noun.after))
    return (rng.choice(noun.adjectives),)


# Pronouns ---------------------------------------------------------------------------------------

SUBJECTS = {"m": ("he", "er", "il"), "f": ("she", "sie", "elle"), "n": ("it", "es", "il")}
OBJECTS = {  # English; German accusative, dative; French direct, indirect
    "I": ("me", "mich", "mir", "me", "me"),
    "we": ("us", "uns", "uns", "nous", "nous"),
    "m": ("him", "ihn", "ihm", "le", "lui"),
    "f": ("her", "sie", "ihr", "la", "lui"),
    "n": ("it", "es", "ihm", "le", "lui"),
    "they": ("them", "sie", "ihnen", "les", "leur"),
}
I_AM = Phrase(
    node("NP", node("PRP", "I")), lambda case: "ich", "je", Referent(0, 0, 0, "m", "m", "m")
)
WE_ARE = Phrase(
    node("NP", node("PRP", "we")), lambda case: "wir", "nous", Referent(WE, WE, WE, "m", "m", "m")
)


def subject_pronoun(who: Referent) -> Phrase:
    """Refer back to `who`: it is er, sie or es, il or elle, as the noun's gender wants."""
    english = "they" if who.english == THEY else SUBJECTS[who.he][0]
    german = "sie" if who.german == THEY else SUBJECTS[who.er][1]
    french = SUBJECTS[who.il][2] + ("s" if who.french == THEY else "")
    return Phrase(node("NP", node("PRP", english)), lambda case: german, french, who)


def object_pronoun(verb: verbs.Verb, who: Referent) -> Complement:
    preposition, dative = verb.english.preposition, verb.german.case == "dat"
    indirect = bool(verb.french.preposition)  # lui, leur
    if who.english in (0, WE):
        english = german = french = "I" if who.english == 0 else "we"
    else:
        english = "they" if who.english == THEY else who.he
        german = "they" if who.german == THEY else who.er
        french = "they" if who.french == THEY else who.il
    tree = node("NP", node("PRP", OBJECTS[english][0]))
    return Complement(
        node("PP", node("IN", preposition), tree) if preposition else tree,
        OBJECTS[german][1 + dative],
        "",
        PRONOUN,
        clitic=OBJECTS[french][3 + indirect],
        agree=None if indirect else who,
    )
