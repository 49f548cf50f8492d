"""What the toy grammar's sentences are about: who, does what, to whom, where and when."""

from collections.abc import Sequence
from random import Random

from . import clauses, lexicon, phrases

GOALS = [noun for noun in lexicon.PLACES if noun["to"]]


def person(rng: Random, determiners: str = "the the the a this every two many") -> phrases.Phrase:
    """Draw somebody who can be a subject."""
    roll = rng.random()
    if roll < 0.12:
        return phrases.pronoun(rng.choice(phrases.SPEAKERS + phrases.OTHERS))
    if roll < 0.22:
        return phrases.noun_phrase(rng, rng.choice(lexicon.NOUNS["names"]))
    if roll < 0.27:
        one, other = rng.sample(lexicon.NOUNS["names"], 2)
        return phrases.pair(phrases.noun_phrase(rng, one), phrases.noun_phrase(rng, other))
    if roll < 0.37:
        relative = rng.choice(lexicon.NOUNS["relatives"])
        return phrases.noun_phrase(rng, relative, "own", owner=rng.choice(["my", "our"]))
    return phrases.noun_phrase(rng, rng.choice(lexicon.PEOPLE), determiners)


def draw_mood(rng: Random) -> str:
    return rng.choices(("present", "past", "going", "want", "can", "must"), (45, 30, 8, 7, 5, 5))[0]


def draw_adverb(rng: Random, mood: str, definite: bool) -> str:
    """Draw not, never, often, always or nothing; only what is definite is denied."""
    roll = rng.random()
    if roll < 0.13 and definite and mood != "can":
        return "not"
    if roll < 0.18 and definite and mood in ("present", "past"):
        return "never"
    if roll < 0.30 and mood == "present":
        return rng.choice(["often", "often", "always"])
    return ""


def draw_verb(rng: Random, group: str, who: phrases.Referent, mood: str) -> lexicon.Row:
    """Draw a verb whose tense shows: not "they read", which may be past or present."""
    while True:
        verb = rng.choice(lexicon.VERBS[group])
        if mood != "past" or who.english.form == "3s" or lexicon.past_shows(verb):
            return verb


def draw_place(rng: Random) -> clauses.Complement:
    noun = rng.choice(lexicon.NOUNS["cities"] if rng.random() < 0.15 else lexicon.PLACES)
    choices = "the" if noun["at"].endswith("à") else "the the the a"  # au marché
    phrase = phrases.noun_phrase(rng, noun, choices, adjectives=0.3, plurals=0)
    return clauses.prepositional(phrase, noun["at"], clauses.PLACE)


def draw_goal(rng: Random, nouns: Sequence[lexicon.Row]) -> clauses.Complement:
    noun = rng.choice(nouns)
    phrase = phrases.noun_phrase(rng, noun, "the", adjectives=0.3, plurals=0)
    return clauses.prepositional(phrase, noun["to"], clauses.LAST)


def draw_other_than(
    rng: Random, nouns: Sequence[lexicon.Row], subject: phrases.Phrase
) -> lexicon.Row:
    """Draw a noun that the subject does not hold: not "Anna calls Anna"."""
    while True:
        noun = rng.choice(nouns)
        forms = (noun["english"], noun["english_plural"])
        if not any(f" {form})" in subject.tree for form in forms if form):
            return noun


def draw_object(
    rng: Random, verb: lexicon.Row, subject: phrases.Phrase, adverb: str
) -> phrases.Phrase:
    noun = draw_other_than(rng, lexicon.nouns(verb["objects"]), subject)
    kind, is_denied = noun["kind"], adverb in ("not", "never")
    if lexicon.is_oblique(verb):
        choices = "the the this" if is_denied else "the the this a"
    elif is_denied:
        choices = "the the this own a a"
    else:
        choices = "the the the this own a a a two three many some"
    if kind in lexicon.HUMAN.split():
        choices = choices.replace("some", "the").replace("own", "the")
    choices = lexicon.KINDS[kind]["determiners"] or choices
    owner = subject.who.english.pronoun["english_possessive"]
    phrase = phrases.noun_phrase(rng, noun, choices, owner=owner, negated=adverb == "not")
    is_owned = phrase.tree.startswith("(NP (DT the)") and lexicon.KINDS[kind]["owned"]
    if is_owned and rng.random() < 0.15:
        whose = draw_other_than(rng, lexicon.PEOPLE, subject)
        owner = phrases.noun_phrase(rng, whose, "the", adjectives=0.2, plurals=0.1)
        tree = f"(PP (IN of) {owner.tree})"
        phrase = phrases.extended(phrase, tree, owner.german["gen"], f"de {owner.french}")
    return phrase


def draw_action(rng: Random, subject: phrases.Phrase, mood: str, only: str = "") -> clauses.Action:
    """Draw what people do. Only "bare": with no time or adverb; "things": to one, with no place."""
    adverb = "" if only == "bare" else draw_adverb(rng, mood, subject.definite)
    roll = 0.0 if only == "things" else rng.random()
    at = []
    if rng.random() < 0.3 and adverb != "not" and only != "things":
        at = [draw_place(rng)]
    time = None
    if only != "bare" and adverb in ("", "not") and rng.random() < 0.5:
        times = clauses.TIMES[mood]
        time = times[0] if adverb else rng.choice(times)
    if roll < 0.75:
        group = "on_things" if roll < 0.5 else "on_people"
        verb = draw_verb(rng, group, subject.who, mood)
        takes_pronoun = not verb["german_preposition"] and verb["french_preposition"] in ("", "à")
        if roll >= 0.5 and rng.random() < 0.25 and takes_pronoun:
            speakers = [] if subject.who in phrases.SPEAKERS else phrases.SPEAKERS
            whom = rng.choice(phrases.OTHERS + speakers)
            return clauses.Action(verb, [clauses.object_pronoun(verb, whom), *at], adverb, time)
        phrase = draw_object(rng, verb, subject, adverb)
        if phrase.kind in ("rooms", "sights", "vehicles"):
            at = []
        if phrase.kind == "periods":
            at, time = at or [draw_place(rng)], None
        objects = [clauses.object_of(verb, phrase), *at]
        return clauses.Action(verb, objects, adverb, time, phrase)
    if roll < 0.86:
        verb = draw_verb(rng, "giving", subject.who, mood)
        phrase = draw_object(rng, verb, subject, adverb)
        whom = draw_other_than(rng, lexicon.nouns(f"{lexicon.HUMAN} names"), subject)
        receiver = phrases.noun_phrase(rng, whom, "the the this", adjectives=0.3)
        to = clauses.prepositional(receiver, "to :dat à", clauses.DATIVE)
        return clauses.Action(verb, [clauses.object_of(verb, phrase), to], adverb, time, phrase)
    if roll < 0.93:
        return clauses.Action(rng.choice(lexicon.VERBS["alone"]), at, adverb, time)
    if roll < 0.97:
        verb = rng.choice(lexicon.VERBS["motion"])
        return clauses.Action(verb, [draw_goal(rng, GOALS)], adverb, time)
    goal = draw_goal(rng, lexicon.NOUNS["cities"])
    return clauses.Action(rng.choice(lexicon.VERBS["journeys"]), [goal], adverb, time)


def draw_clause(rng: Random, subject: phrases.Phrase, mood: str, only: str = "") -> clauses.Clause:
    return clauses.Clause(subject, mood, draw_action(rng, subject, mood, only))


def draw_state(rng: Random, who: phrases.Referent, kind: str) -> clauses.Action:
    """Draw what something of a kind is like: red, too heavy. People's and animals' are feelings."""
    adjective = rng.choice([each for each in lexicon.FITTING[kind] if each["stated"]])
    degree = rng.choice(["", "very", "too"]) if adjective["stated"] == "by degrees" else ""
    verb = lexicon.VERBS["have" if adjective["place"] == "avoir" else "be"][0]
    quality = clauses.quality(adjective, degree, who)
    return clauses.Action(verb, [quality], "not" if rng.random() < 0.12 else "")
