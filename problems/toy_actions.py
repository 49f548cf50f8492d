"""What the toy grammar's sentences are about: who, does what, to whom, where and when."""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import toy_clauses as clauses
from . import toy_lexicon as lexicon
from . import toy_phrases as phrases
from . import toy_verbs as verbs
from .toy_verbs import HE, THEY, WE


def every(*tables: Mapping[str, lexicon.Noun]) -> tuple[lexicon.Noun, ...]:
    return tuple(noun for table in tables for noun in table.values())


PEOPLE = every(lexicon.MEN, lexicon.WOMEN, lexicon.CHILDREN)
NAMES = every(lexicon.NAMES)
RELATIVES = every(lexicon.RELATIVES)
ANIMALS = every(lexicon.ANIMALS)
PERIODS = every(lexicon.PERIODS)
VEHICLES = every(lexicon.VEHICLES)
CITIES = every(lexicon.CITIES)
PLACES = every(lexicon.ROOMS, lexicon.OUTDOORS, lexicon.SIGHTS, lexicon.INSTITUTIONS)
GOALS = tuple(noun for noun in PLACES if noun.to[0] != "-")
WHOLE = (*PEOPLE, *RELATIVES, *PERIODS, *VEHICLES, *PLACES, *every(lexicon.SHOWS, lexicon.MONEY))


def person(
    rng: random.Random, determiners: str = "the the the a this every two many"
) -> phrases.Phrase:
    """Draw somebody who can be a subject."""
    roll = rng.random()
    if roll < 0.12:
        he = phrases.Referent(HE, HE, HE, "m", "m", "m")
        she = phrases.Referent(HE, HE, HE, "f", "f", "f")
        return rng.choice(
            [
                phrases.I_AM,
                phrases.WE_ARE,
                phrases.subject_pronoun(he),
                phrases.subject_pronoun(she),
            ]
        )
    if roll < 0.22:
        return phrases.noun_phrase(rng, rng.choice(NAMES))
    if roll < 0.27:
        return pair(*(phrases.noun_phrase(rng, n) for n in rng.sample(NAMES, 2)))
    if roll < 0.37:
        return phrases.noun_phrase(rng, rng.choice(RELATIVES), "own", owner=rng.choice(["I", "we"]))
    return phrases.noun_phrase(rng, rng.choice(PEOPLE), determiners)


def pair(one: phrases.Phrase, other: phrases.Phrase) -> phrases.Phrase:
    """Coordinate: Anna and Paul, who together are masculine in French unless both are feminine."""
    il = "f" if one.who.il == other.who.il == "f" else "m"
    return phrases.Phrase(
        phrases.node("NP", one.tree, phrases.node("CC", "and"), other.tree),
        lambda case: phrases.join(one.german(case), "und", other.german(case)),
        phrases.join(one.french, "et", other.french),
        phrases.Referent(THEY, THEY, THEY, "n", "n", il),
    )


def owner_of(who: phrases.Referent) -> str:
    """Name the possessive that refers to a subject: my, our, their, his, her, or none."""
    by_form = {0: "I", WE: "we", THEY: "they"}
    return by_form.get(who.english, who.he if who.he != "n" else "")


def draw_mood(rng: random.Random) -> str:
    return rng.choices(("present", "past", "going", "want", "can", "must"), (45, 30, 8, 7, 5, 5))[0]


def draw_adverb(rng: random.Random, mood: str, definite: bool) -> str:
    """Draw not, never, often, always or nothing; only what is definite is denied."""
    roll = rng.random()
    if roll < 0.13 and definite and mood != "can":
        return "not"
    if roll < 0.18 and definite and mood in ("present", "past"):
        return "never"
    if roll < 0.30 and mood == "present":
        return rng.choice(["often", "often", "always"])
    return ""


def draw_verb(
    rng: random.Random, table: Sequence[verbs.Verb], who: phrases.Referent, mood: str
) -> verbs.Verb:
    """Draw a verb whose tense shows: not "they read", which may be past or present."""
    while True:
        verb = rng.choice(table)
        hidden = verb.english.past[0] == verb.english.infinitive and who.english != HE
        if not (hidden and mood == "past"):
            return verb


def draw_place(rng: random.Random) -> phrases.Complement:
    noun = rng.choice(CITIES if rng.random() < 0.15 else PLACES)
    choices = "the" if noun.at[2] == "à" else "the the the a"  # au marché
    return clauses.place(
        phrases.noun_phrase(rng, noun, choices, adjectives=0.3, plurals=0),
        noun.at,
        phrases.PLACE,
    )


def draw_goal(rng: random.Random, noun: lexicon.Noun) -> phrases.Complement:
    phrase = phrases.noun_phrase(rng, noun, "the", adjectives=0.3, plurals=0)
    return clauses.place(phrase, noun.to, phrases.LAST)


class Action(NamedTuple):
    verb: verbs.Verb
    complements: list[phrases.Complement]
    adverb: str
    time: phrases.Complement | None = None
    object: phrases.Phrase | None = None
    noun: lexicon.Noun | None = None


def draw_other_than(
    rng: random.Random, nouns: Sequence[lexicon.Noun], subject: phrases.Phrase
) -> lexicon.Noun:
    """Draw a noun that the subject does not hold: not "Anna calls Anna"."""
    while True:
        noun = rng.choice(nouns)
        if not any(f" {form})" in subject.tree for form in noun.english[2:] if form):
            return noun


def draw_object(
    rng: random.Random, verb: verbs.Verb, subject: phrases.Phrase, adverb: str
) -> tuple[lexicon.Noun, phrases.Phrase]:
    who, noun = subject.who, draw_other_than(rng, verb.objects, subject)
    oblique = any(word.preposition for word in verb[:3]) or verb.german.case == "dat"
    denied = adverb in ("not", "never")
    if noun in RELATIVES:
        choices = "own" if owner_of(who) else "the"
    elif noun in PERIODS:
        return noun, phrases.noun_phrase(rng, noun, "the", plurals=0)
    elif oblique:
        choices = "the the this" if denied else "the the this a"
    elif denied:
        choices = "the the this own a a"
    else:
        choices = "the the the this own a a a two three many some"
    owner = owner_of(who)
    if noun.adjectives and lexicon.ADJECTIVES["friendly"] in noun.adjectives:
        choices = choices.replace("some", "the").replace("own", "the")
    phrase = phrases.noun_phrase(rng, noun, choices, owner=owner, negated=adverb == "not")
    if phrase.tree.startswith("(NP (DT the)") and noun not in WHOLE and rng.random() < 0.15:
        whose = draw_other_than(rng, PEOPLE, subject)
        phrase = belonging(
            phrase, phrases.noun_phrase(rng, whose, "the", adjectives=0.2, plurals=0.1)
        )
    return noun, phrase


def belonging(phrase: phrases.Phrase, owner: phrases.Phrase) -> phrases.Phrase:
    """The car of the doctor."""
    return phrase._replace(
        tree=phrases.node(
            "NP", phrase.tree, phrases.node("PP", phrases.node("IN", "of"), owner.tree)
        ),
        german=lambda case: phrases.join(phrase.german(case), owner.german("gen")),
        french=phrases.join(phrase.french, "de", owner.french),
    )


def draw_action(
    rng: random.Random,
    subject: phrases.Phrase,
    mood: str,
    *,
    things: bool = False,
    bare: bool = False,
) -> Action:
    """Draw what people do. `things`: to a thing, with no place; `bare`: with no time or adverb."""
    who = subject.who
    adverb = "" if bare else draw_adverb(rng, mood, subject.definite)
    roll = 0.0 if things else rng.random()
    at: list[phrases.Complement] = []
    if rng.random() < 0.3 and adverb != "not" and not things:
        at = [draw_place(rng)]
    time = None
    if not bare and adverb in ("", "not") and rng.random() < 0.5:
        time = clauses.TIMES[mood][0] if adverb else rng.choice(clauses.TIMES[mood])
    if roll < 0.75:
        table = verbs.ON_THINGS if roll < 0.5 else verbs.ON_PEOPLE
        verb = draw_verb(rng, table, who, mood)
        if roll >= 0.5 and rng.random() < 0.25 and pronoun_fits(verb):
            other = draw_other(rng, who)
            return Action(verb, [phrases.object_pronoun(verb, other), *at], adverb, time)
        noun, phrase = draw_object(rng, verb, subject, adverb)
        if noun.at or noun in VEHICLES:
            at = []
        if noun in PERIODS:
            at, time = at or [draw_place(rng)], None
        return Action(verb, [clauses.object_of(verb, phrase), *at], adverb, time, phrase, noun)
    if roll < 0.86:
        verb = draw_verb(rng, verbs.GIVING, who, mood)
        noun, phrase = draw_object(rng, verb, subject, adverb)
        whom = draw_other_than(rng, PEOPLE + NAMES, subject)
        to = clauses.recipient(phrases.noun_phrase(rng, whom, "the the this", adjectives=0.3))
        return Action(verb, [clauses.object_of(verb, phrase), to], adverb, time, phrase, noun)
    if roll < 0.93:
        return Action(rng.choice(verbs.ALONE), at, adverb, time)
    if roll < 0.97:
        return Action(rng.choice(verbs.MOTION), [draw_goal(rng, rng.choice(GOALS))], adverb, time)
    goal = draw_goal(rng, rng.choice(CITIES))
    return Action(rng.choice(verbs.JOURNEYS), [goal], adverb, time)


def pronoun_fits(verb: verbs.Verb) -> bool:
    return not (verb.german.preposition or verb.french.preposition not in ("", "à"))


def draw_other(rng: random.Random, who: phrases.Referent) -> phrases.Referent:
    """Draw whom an object pronoun means: somebody else than the subject."""
    he, she = (phrases.Referent(HE, HE, HE, gender, gender, gender) for gender in "mf")
    return rng.choice(
        [he, she] if who.english in (0, WE) else [he, she, phrases.I_AM.who, phrases.WE_ARE.who]
    )


def clause_of(
    subject: phrases.Phrase, mood: str, action: Action, *, question: bool = False
) -> clauses.Clause:
    complements = action.complements + ([action.time] if action.time else [])
    return clauses.Clause(
        subject,
        clauses.predicate(
            action.verb, subject.who, mood, complements, adverb=action.adverb, question=question
        ),
    )


def draw_state(rng: random.Random, who: phrases.Referent, noun: lexicon.Noun | None) -> Action:
    """Draw how a person or an animal feels (no noun), or what a thing is like."""
    if noun is None:
        words = ("tired", "ill", "happy", "sad", "alone", "hungry", "thirsty")
        adjective = lexicon.ADJECTIVES[rng.choice(words)]
    else:
        adjective = rng.choice(
            [a for a in noun.adjectives if a.english.islower() and a.english != "new"]
        )
    degree = "" if adjective.english in ("alone", "free") else rng.choice(["", "very", "too"])
    verb = clauses.HAVE if adjective.avoir else verbs.BE
    return Action(
        verb, [clauses.quality(adjective, degree, who)], "not" if rng.random() < 0.12 else ""
    )
