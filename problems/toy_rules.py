"""The sentences of the toy grammar: each rule draws one kind, in three languages at once."""

import random
from typing import NamedTuple

from . import toy_actions as actions
from . import toy_clauses as clauses
from . import toy_lexicon as lexicon
from . import toy_phrases as phrases
from . import toy_verbs as verbs
from .toy_verbs import HE, THEY


class Draft(NamedTuple):
    """A sentence before its mark and its capital letter: a clause's children, German, French."""

    children: tuple[str, ...]
    german: str
    french: str
    mark: str = "."
    label: str = "S"


COMMA = phrases.node(",", ",")


def subordinate(word: str, clause: clauses.Clause) -> str:
    if word == "when":
        return phrases.node(
            "SBAR", phrases.node("WHADVP", phrases.node("WRB", word)), clause.tree()
        )
    return phrases.node("SBAR", phrases.node("IN", word), clause.tree())


def attached(
    clause: clauses.Clause, word: str, german: str, french: str, other: clauses.Clause
) -> Draft:
    """Main clause, then subordinate clause, inside the verb phrase."""
    english = clause.predicate.english()
    vp = english.removesuffix(")") + " " + subordinate(word, other) + ")"
    return Draft(
        (clause.subject.tree, vp),
        f"{clause.verb_second()}, {german} {other.verb_last()}",
        f"{clause.french()} {french} {other.french()}",
    )


def fronted(
    clause: clauses.Clause, word: str, german: str, french: str, other: clauses.Clause
) -> Draft:
    """Subordinate clause, comma, main clause: the German verb comes before its subject."""
    return Draft(
        (subordinate(word, other), COMMA, clause.subject.tree, clause.predicate.english()),
        clause.verb_second(f"{german} {other.verb_last()},"),
        f"{french} {other.french()}, {clause.french()}",
    )


def plain(rng: random.Random) -> Draft:
    """[Every day,] the woman reads the new book in the garden [every day]."""
    mood, subject = actions.draw_mood(rng), actions.person(rng)
    action = actions.draw_action(rng, subject, mood)
    if action.time and rng.random() < 0.6:
        clause = actions.clause_of(subject, mood, action._replace(time=None))
        return Draft(
            (action.time.tree, COMMA, clause.subject.tree, clause.predicate.english()),
            clause.verb_second(action.time.german),
            f"{action.time.french}, {clause.french()}",
        )
    clause = actions.clause_of(subject, mood, action)
    return whole(clause)


def because(rng: random.Random) -> Draft:
    """The man sells the car because it is too old. The dog sleeps because it is tired."""
    mood = rng.choice(["present", "past"])
    roll = rng.random()
    if roll < 0.3:
        subject = phrases.noun_phrase(rng, rng.choice(actions.ANIMALS))
        at = [actions.draw_place(rng)] if rng.random() < 0.6 else []
        action = actions.Action(rng.choice(verbs.OF_ANIMALS), at, "")
    else:
        subject = actions.person(rng, "the the the a this two many")
        action = actions.draw_action(rng, subject, mood, things=True)
    who, noun = subject.who, None
    thing = action.noun
    of_thing = roll > 0.55 and thing and thing.adjectives and action.adverb != "not"
    if of_thing and action.object and action.object.definite:
        who, noun = action.object.who, thing
    if noun is None and who.he == "n" and who.english == HE and roll >= 0.3:
        # German children are neuter, English ones he or she: no pronoun for them.
        again = rng.choice([phrases.I_AM, phrases.WE_ARE])
    else:
        again = (
            phrases.WE_ARE
            if who == phrases.WE_ARE.who
            else phrases.I_AM
            if who == phrases.I_AM.who
            else phrases.subject_pronoun(who)
        )
    state = actions.clause_of(again, mood, actions.draw_state(rng, again.who, noun))
    clause = actions.clause_of(subject, mood, action)
    return attached(clause, "because", "weil", "parce que", state)


WEATHER = (("raining", "regnet", "regnete", "pleut", "pleuvait"),
           ("snowing", "schneit", "schneite", "neige", "neigeait"))  # fmt: skip


def weather(rng: random.Random, past: bool) -> clauses.Clause:
    word, german, german_past, french, french_past = rng.choice(WEATHER)
    it = phrases.subject_pronoun(phrases.Referent(HE, HE, HE, "n", "n", "m"))
    finite, german, french = (
        (phrases.node("VBD", "was"), german_past, french_past)
        if past
        else (phrases.node("VBZ", "is"), german, french)
    )
    body = phrases.node("VP", phrases.node("VBG", word))
    return clauses.Clause(
        it, clauses.Predicate("", finite, body, german, "", "", "", french, False)
    )


def conditional(rng: random.Random) -> Draft:
    """When (als, wenn), if, because it rains; before or after the main clause."""
    mood = actions.draw_mood(rng)
    past = mood == "past"
    subject = actions.person(rng, "the the the this two")
    clause = actions.clause_of(
        subject, mood, actions.draw_action(rng, subject, mood)._replace(time=None)
    )
    if rng.random() < 0.3:
        other = weather(rng, past)
    else:
        someone = actions.person(rng, "the the the a this two")
        inner = "past" if past else "present"
        other = actions.clause_of(
            someone, inner, actions.draw_action(rng, someone, inner, bare=True)
        )
    word, german, french = ("when", "als" if past else "wenn", "quand")
    if not past and rng.random() < 0.5:
        word, german, french = "if", "wenn", "si"
    place_it = fronted if rng.random() < 0.6 else attached
    return place_it(clause, word, german, french, other)


def meanwhile(rng: random.Random) -> Draft:
    """While the woman was reading the letter, the child fell asleep."""
    one, two = (
        actions.person(rng, "the the the this two"),
        actions.person(rng, "the the the a this two"),
    )
    action = actions.draw_action(rng, one, "progressive", bare=True)
    clause = actions.clause_of(two, "past", actions.draw_action(rng, two, "past", bare=True))
    other = actions.clause_of(one, "progressive", action)
    place_it = fronted if rng.random() < 0.6 else attached
    return place_it(clause, "while", "während", "pendant que", other)


def report(rng: random.Random) -> Draft:
    """The doctor knows that ..., does not know whether ..., asks whether ..."""
    subject, someone = (
        actions.person(rng, "the the the this two"),
        actions.person(rng, "the the a this two many"),
    )
    mood = actions.draw_mood(rng)
    other = actions.clause_of(someone, mood, actions.draw_action(rng, someone, mood))
    if rng.random() < 0.3:
        denied = rng.random() < 0.5
        verb = verbs.KNOWING[0] if denied else verbs.ASKING[0]
        main = actions.clause_of(
            subject, "present", actions.Action(verb, [], "not" if denied else "")
        )
        return attached(main, "whether", "ob", "si", other)
    main = actions.clause_of(subject, "present", actions.Action(rng.choice(verbs.KNOWING), [], ""))
    return attached(main, "that", "dass", "que", other)


def relative(rng: random.Random) -> Draft:
    """The man who called Anna sleeps. The car that the man bought is too expensive."""
    mood = rng.choice(["present", "past"])
    if rng.random() < 0.5:
        phrase = phrases.noun_phrase(rng, rng.choice(actions.PEOPLE), "the the the this a two")
        action = actions.draw_action(rng, phrase, "past", bare=True)
        pronoun = phrases.DER["nom", "p" if phrase.who.german == THEY else phrase.who.er]
        gap = phrases.Phrase("", lambda case: pronoun, "qui", phrase.who)
        inner = actions.clause_of(gap, "past", action)
        subject = modified(phrase, "who", inner.tree(), inner.verb_last(), inner.french())
        return whole(
            actions.clause_of(
                subject, mood, actions.draw_action(rng, phrase, mood)._replace(time=None)
            )
        )
    verb = rng.choice(DIRECT)
    noun = rng.choice([noun for noun in verb.objects if noun.adjectives])
    phrase = phrases.noun_phrase(rng, noun, "the the this")
    someone = actions.person(rng, "the the this two a")
    inner = clauses.Clause(
        someone, clauses.predicate(verb, someone.who, "past", [], agree=phrase.who)
    )
    pronoun = phrases.DER["acc", "p" if phrase.who.german == THEY else phrase.who.er]
    subject = modified(
        phrase, "that", inner.tree(), f"{pronoun} {inner.verb_last()}", f"que {inner.french()}"
    )
    return whole(actions.clause_of(subject, mood, actions.draw_state(rng, phrase.who, noun)))


DIRECT = tuple(  # verbs whose object is a plain one in all three languages, and whose past shows
    verb
    for verb in verbs.ON_THINGS
    if not any(word.preposition for word in verb[:3])
    and verb.english.past[0] != verb.english.infinitive
    and any(noun.adjectives for noun in verb.objects)
)


def modified(
    phrase: phrases.Phrase, word: str, tree: str, german: str, french: str
) -> phrases.Phrase:
    """Give a noun phrase its relative clause, which German puts between commas."""
    tag = "WP" if word == "who" else "WDT"
    sbar = phrases.node("SBAR", phrases.node("WHNP", phrases.node(tag, word)), tree)
    return phrase._replace(
        tree=phrases.node("NP", phrase.tree, sbar),
        german=lambda case: f"{phrase.german(case)}, {german},",
        french=phrases.join(phrase.french, french),
    )


def whole(clause: clauses.Clause) -> Draft:
    children = (clause.subject.tree, clause.predicate.english())
    return Draft(children, clause.verb_second(), clause.french())


def question(rng: random.Random) -> Draft:
    """Does the man read the book? Why did Anna call the doctor?"""
    mood = rng.choice(["present", "past", "going", "want", "can", "must"])
    subject = actions.person(rng, "the the this two a")
    affirmed = subject._replace(definite=False)
    action = actions.draw_action(rng, affirmed, mood)._replace(adverb="")
    asks_why = rng.random() < 0.4
    clause = actions.clause_of(subject, mood, action._replace(time=None), question=True)
    p = clause.predicate
    children = (p.auxiliary, subject.tree, p.body)
    german, french = clause.verb_first(), f"est-ce que {clause.french()}"
    if not asks_why:
        return Draft(children, german, french, "?", "SQ")
    why = phrases.node("WHADVP", phrases.node("WRB", "why"))
    return Draft(
        (why, phrases.node("SQ", *children)), f"warum {german}", f"pourquoi {french}", "?", "SBARQ"
    )


ADDRESSED = """
    (NP (NNP Mum))      | Mama          | maman       | du  | tu   | 1 1 f
    (NP (NNP Dad))      | Papa          | papa        | du  | tu   | 1 1 m
    (NP (NN sir))       | mein Herr     | monsieur    | Sie | vous | 5 4 m
    (NP (NN madam))     | gnädige Frau  | madame      | Sie | vous | 5 4 f
    (NP (NNS children)) | Kinder        | les enfants | ihr | vous | 4 4 m
"""  # the verb's form in German and French, and the gender


def address(rng: random.Random) -> Draft:
    """Mum, you must call the doctor: du, Sie or ihr, tu or vous."""
    tree, german, french, du, tu, forms = rng.choice(list(lexicon.rows(ADDRESSED)))
    german_slot, french_slot, gender = forms.split()
    who = phrases.Referent(1, int(german_slot), int(french_slot), "n", gender, gender)
    you = phrases.Phrase(phrases.node("NP", phrases.node("PRP", "you")), lambda case: du, tu, who)
    mood = rng.choice(["present", "going", "want", "can", "must"])
    clause = actions.clause_of(you, mood, actions.draw_action(rng, you, mood))
    return Draft(
        (tree, COMMA, you.tree, clause.predicate.english()),
        f"{german}, {clause.verb_second()}",
        f"{french}, {clause.french()}",
    )


CHAINS = verbs.chains("""
    buy    | eat    | snacks meals
    find   | open   | luggage
    prepare | eat   | meals
    read   | translate | texts
    write  | send   | texts
    buy    | read   | texts
    find   | repair | machines furniture
    wash   | sell   | garments vessels
    find   | wash   | garments
    answer | explain | questions
    buy    | drink  | drinks wines
    open   | clean  | openings
    find   | close  | openings
    turn   | repair | lamps
""")


def chain(rng: random.Random) -> Draft:
    """The woman buys the apple and eats it: ihn, la."""
    first, then, nouns = rng.choice(CHAINS)
    mood = rng.choice(["present", "past"])
    subject = actions.person(rng)
    if mood == "past" and subject.who.english != HE:
        mood = "present" if "read" in (first.english.infinitive, then.english.infinitive) else mood
    noun = rng.choice(nouns)
    phrase = phrases.noun_phrase(rng, noun, "the the this")
    one = clauses.predicate(first, subject.who, mood, [clauses.object_of(first, phrase)])
    two = clauses.predicate(then, subject.who, mood, [phrases.object_pronoun(then, phrase.who)])
    clause = clauses.Clause(subject, one)
    return Draft(
        (subject.tree, phrases.node("VP", one.english(), phrases.node("CC", "and"), two.english())),
        phrases.join(clause.verb_second(), "und", two.finite, two.middle, two.particle),
        phrases.join(clause.french(), "et", two.french),
    )


def scene(rng: random.Random) -> Draft:
    """Tables of their own: what one knows and loves, trains and machines, how things are."""
    mood = rng.choice(["present", "past"])
    roll = rng.random()
    if roll < 0.4:
        subject = actions.person(rng)
        verb = rng.choice(verbs.KNOWN)
        adverb = "not" if subject.definite and rng.random() < 0.25 else ""
        _, phrase = actions.draw_object(rng, verb, subject, "never")
        return whole(
            actions.clause_of(
                subject, "present", actions.Action(verb, [clauses.object_of(verb, phrase)], adverb)
            )
        )
    if roll < 0.6:
        subject = phrases.noun_phrase(rng, rng.choice(MACHINES), "the the this")
        action = actions.Action(
            verbs.OF_MACHINES[0], [actions.draw_place(rng)], rng.choice(["", "not"])
        )
        return whole(actions.clause_of(subject, mood, action))
    if roll < 0.75:
        subject = phrases.noun_phrase(rng, rng.choice(actions.VEHICLES), "the the this two")
        action = actions.Action(
            rng.choice(verbs.OF_VEHICLES), [], "", rng.choice(clauses.TIMES[mood])
        )
        return whole(actions.clause_of(subject, mood, action))
    noun = rng.choice(THINGS)
    subject = phrases.noun_phrase(rng, noun, "the the this", adjectives=0)
    return whole(actions.clause_of(subject, mood, actions.draw_state(rng, subject.who, noun)))


MACHINES = actions.every(lexicon.MACHINES)[1:]  # not the car
AMBIGUOUS = {"glasses", "keys", "matches", "plants", "lights"}  # need a verb to decide
THINGS = tuple(
    dict.fromkeys(
        noun
        for verb in DIRECT
        for noun in verb.objects
        if noun.adjectives and noun.english.plural not in AMBIGUOUS
    )
)


def conjunction(rng: random.Random) -> Draft:
    """The man sleeps, but the woman works."""
    mood = rng.choice(["present", "past"])
    word, german, french = rng.choice([("and", " und", " et"), ("but", ", aber", ", mais")])
    one, two = (
        actions.clause_of(someone, mood, actions.draw_action(rng, someone, mood, bare=True))
        for someone in (
            actions.person(rng, "the the this two a"),
            actions.person(rng, "the the this two a"),
        )
    )
    return Draft(
        (one.tree(), COMMA, phrases.node("CC", word), two.tree()),
        f"{one.verb_second()}{german} {two.verb_second()}",
        f"{one.french()}{french} {two.french()}",
    )
