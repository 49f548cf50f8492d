"""The sentences of the toy grammar: each rule draws one kind, in three languages at once."""

from random import Random
from typing import Any

from . import actions, clauses, lexicon, phrases

# Sentences in English (as a tree), German and French, before their capital letter
Texts = dict[str, str]

SOMEBODY, ANYBODY = "the the the this two", "the the the a this two"  # determiners
PATTERNS = lexicon.keyed("sentences")


def fill(pattern: str, **parts: Any) -> Texts:
    """Fill in a row of the table of sentences, without the spaces that empty pieces leave."""
    row = PATTERNS[pattern]
    texts = {language: row[language].format(**parts).split() for language in lexicon.LANGUAGES}
    return {language: " ".join(words).replace(" )", ")") for language, words in texts.items()}


def whole(subject: phrases.Phrase, mood: str, action: clauses.Action) -> Texts:
    return fill("whole", main=clauses.Clause(subject, mood, action))


def subordinated(
    main: clauses.Clause, connective: str, other: clauses.Clause, *, fronted: bool = False
) -> Texts:
    """Attach a clause to the main one's verb phrase, or put it before the main clause."""
    word = lexicon.CONNECTIVES[connective]
    return fill("fronted" if fronted else "attached", main=main, word=word, other=other)


def plain(rng: Random) -> Texts:
    """[Every day,] the woman reads the new book in the garden [every day]."""
    mood, subject = actions.draw_mood(rng), actions.person(rng)
    action = actions.draw_action(rng, subject, mood)
    if not action.time or rng.random() >= 0.6:
        return whole(subject, mood, action)
    main = clauses.Clause(subject, mood, action._replace(time=None))
    return fill("timed", time=action.time, main=main)


def because(rng: Random) -> Texts:
    """The man sells the car because it is too old. The dog sleeps because it is tired."""
    mood = rng.choice(["present", "past"])
    roll = rng.random()
    if roll < 0.3:
        subject = phrases.noun_phrase(rng, rng.choice(lexicon.NOUNS["animals"]))
        at = [actions.draw_place(rng)] if rng.random() < 0.6 else []
        action = clauses.Action(rng.choice(lexicon.VERBS["of_animals"]), at)
    else:
        subject = actions.person(rng, "the the the a this two many")
        action = actions.draw_action(rng, subject, mood, only="things")
    main = clauses.Clause(subject, mood, action)
    who, kind = subject.who, "feelings"
    thing = action.object if action.adverb != "not" else None
    if roll > 0.55 and thing and thing.definite and lexicon.FITTING[thing.kind]:
        who, kind = thing.who, thing.kind
    elif who.english == ("3s", "n") and roll >= 0.3:
        who = rng.choice(phrases.SPEAKERS)  # a German child is neuter, an English one he or she
    state = clauses.Clause(phrases.pronoun(who), mood, actions.draw_state(rng, who, kind))
    return subordinated(main, "because", state)


def draw_weather(rng: Random, mood: str) -> clauses.Clause:
    it = phrases.alike("3s", "n")._replace(french=phrases.Agreement("3s", "m"))
    action = clauses.Action(rng.choice(lexicon.VERBS["weather"]))
    return clauses.Clause(phrases.pronoun(it), mood, action)


def conditional(rng: Random) -> Texts:
    """When (als, wenn) or if it rains; before or after the main clause."""
    mood = actions.draw_mood(rng)
    tense = "past" if mood == "past" else "present"
    subject = actions.person(rng, SOMEBODY)
    action = actions.draw_action(rng, subject, mood)._replace(time=None)
    main = clauses.Clause(subject, mood, action)
    if rng.random() < 0.3:
        other = draw_weather(rng, f"{tense} progressive")
    else:
        other = actions.draw_clause(rng, actions.person(rng, ANYBODY), tense, only="bare")
    if tense == "past":
        connective = "when past"
    else:
        connective = "if" if rng.random() < 0.5 else "when"
    return subordinated(main, connective, other, fronted=rng.random() < 0.6)


def meanwhile(rng: Random) -> Texts:
    """While the woman was reading the letter, the child fell asleep."""
    one, two = actions.person(rng, SOMEBODY), actions.person(rng, ANYBODY)
    other = actions.draw_clause(rng, one, "past progressive", only="bare")
    main = actions.draw_clause(rng, two, "past", only="bare")
    return subordinated(main, "while", other, fronted=rng.random() < 0.6)


def report(rng: Random) -> Texts:
    """The doctor knows that ..., does not know whether ..., asks whether ..."""
    subject, someone = actions.person(rng, SOMEBODY), actions.person(rng, "the the a this two many")
    other = actions.draw_clause(rng, someone, actions.draw_mood(rng))
    knowing, asking = lexicon.VERBS["knowing"], lexicon.VERBS["asking"]
    if rng.random() >= 0.3:
        action, connective = clauses.Action(rng.choice(knowing)), "that"
    elif rng.random() < 0.5:
        action, connective = clauses.Action(knowing[0], adverb="not"), "whether"
    else:
        action, connective = clauses.Action(asking[0]), "whether"
    return subordinated(clauses.Clause(subject, "present", action), connective, other)


def described(kinds: str) -> list[lexicon.Row]:
    """Return the nouns that go with adjectives."""
    return [noun for noun in lexicon.nouns(kinds) if lexicon.FITTING[noun["kind"]]]


DIRECT = [verb for verb in lexicon.VERBS["on_things"] if verb["relative"]]
AMBIGUOUS = {"glasses", "keys", "matches", "plants", "lights"}  # need a verb to decide
THINGS = [
    noun
    for noun in described(" ".join(verb["objects"] for verb in DIRECT))
    if noun["english_plural"] not in AMBIGUOUS
]


def relative(rng: Random) -> Texts:
    """The man who called Anna sleeps. The car that the man bought is too expensive."""
    mood = rng.choice(["present", "past"])
    if rng.random() < 0.5:
        phrase = phrases.noun_phrase(rng, rng.choice(lexicon.PEOPLE), "the the the this a two")
        der = lexicon.ENDINGS["der", "nom"][phrase.who.german.ending]
        gap = phrases.Phrase("", {"nom": der}, "qui", phrase.who)
        inner = clauses.Clause(gap, "past", actions.draw_action(rng, phrase, "past", only="bare"))
        subject = with_clause(phrase, "(WP who)", inner)
        action = actions.draw_action(rng, phrase, mood)._replace(time=None)
        return whole(subject, mood, action)
    verb = rng.choice(DIRECT)
    phrase = phrases.noun_phrase(rng, rng.choice(described(verb["objects"])), "the the this")
    someone = actions.person(rng, "the the this two a")
    inner = clauses.Clause(someone, "past", clauses.Action(verb), antecedent=phrase.who)
    der = lexicon.ENDINGS["der", "acc"][phrase.who.german.ending]
    subject = with_clause(phrase, "(WDT that)", inner, german=der, french="que")
    return whole(subject, mood, actions.draw_state(rng, phrase.who, phrase.kind))


def with_clause(
    phrase: phrases.Phrase, word: str, inner: clauses.Clause, *, german: str = "", french: str = ""
) -> phrases.Phrase:
    """Say more of a noun in a relative clause, which German puts between commas."""
    tree = f"(SBAR (WHNP {word}) {inner.tree})"
    german = f", {german} {inner.verb_last} ,"
    return phrases.extended(phrase, tree, german, f"{french} {inner.french}")


def question(rng: Random) -> Texts:
    """Does the man read the book? Why did Anna call the doctor?"""
    mood = rng.choice(["present", "past", "going", "want", "can", "must"])
    subject = actions.person(rng, "the the this two a")
    # What is not definite is not denied, and a question denies nothing.
    action = actions.draw_action(rng, subject._replace(definite=False), mood)
    asks_why = rng.random() < 0.4
    asked = clauses.Clause(subject, mood, action._replace(adverb="", time=None), is_question=True)
    return fill("why" if asks_why else "whether", main=asked)


ADDRESSES = lexicon.rows("address")


def address(rng: Random) -> Texts:
    """Mum, you must call the doctor: du, Sie or ihr, tu or vous."""
    row = rng.choice(ADDRESSES)
    forms = [row[f"{language}_form"] for language in lexicon.LANGUAGES]
    who = phrases.Referent(*(phrases.Agreement(form, row["gender"]) for form in forms))
    you = phrases.Phrase("(NP (PRP you))", {"nom": row["german_you"]}, row["french_you"], who)
    mood = rng.choice(["present", "going", "want", "can", "must"])
    return fill("addressed", name=row, main=actions.draw_clause(rng, you, mood))


CHAINS = lexicon.rows("chains")  # two verbs of things, and a kind of noun that both may take
BY_NAME = {
    verb["english"]: verb for verb in reversed(lexicon.VERBS["on_things"] + lexicon.VERBS["giving"])
}


def chain(rng: Random) -> Texts:
    """The woman buys the apple and eats it: ihn, la."""
    row = rng.choice(CHAINS)
    first, then = BY_NAME[row["first"]], BY_NAME[row["then"]]
    mood = rng.choice(["present", "past"])
    subject = actions.person(rng)
    if subject.who.english.form != "3s" and not all(map(lexicon.past_shows, (first, then))):
        mood = "present"
    phrase = phrases.noun_phrase(rng, rng.choice(lexicon.NOUNS[row["kind"]]), "the the this")
    action = clauses.Action(first, [clauses.object_of(first, phrase)])
    other = clauses.Action(then, [clauses.object_pronoun(then, phrase.who)])
    one, two = (clauses.Clause(subject, mood, each) for each in (action, other))
    return fill("chained", main=one, other=two)


def scene(rng: Random) -> Texts:
    """Verbs of their own: what one knows and loves, trains and machines; and how things are."""
    mood = rng.choice(["present", "past"])
    roll = rng.random()
    if roll < 0.4:
        subject = actions.person(rng)
        verb = rng.choice(lexicon.VERBS["known"])
        adverb = "not" if subject.definite and rng.random() < 0.25 else ""
        phrase = actions.draw_object(rng, verb, subject, "never")
        action = clauses.Action(verb, [clauses.object_of(verb, phrase)], adverb)
        return whole(subject, "present", action)
    if roll < 0.6:
        machine = rng.choice(lexicon.NOUNS["machines"][1:])  # not the car
        subject = phrases.noun_phrase(rng, machine, "the the this")
        place, adverb = actions.draw_place(rng), rng.choice(["", "not"])
        action = clauses.Action(lexicon.VERBS["of_machines"][0], [place], adverb)
    elif roll < 0.75:
        vehicle = rng.choice(lexicon.NOUNS["vehicles"])
        subject = phrases.noun_phrase(rng, vehicle, "the the this two")
        verb, time = rng.choice(lexicon.VERBS["of_vehicles"]), rng.choice(clauses.TIMES[mood])
        action = clauses.Action(verb, time=time)
    else:
        subject = phrases.noun_phrase(rng, rng.choice(THINGS), "the the this", adjectives=0)
        action = actions.draw_state(rng, subject.who, subject.kind)
    return whole(subject, mood, action)


def conjunction(rng: Random) -> Texts:
    """The man sleeps, but the woman works."""
    mood = rng.choice(["present", "past"])
    pattern = rng.choice(["and", "but"])
    people = [actions.person(rng, "the the this two a") for _ in range(2)]
    one, two = (actions.draw_clause(rng, who, mood, only="bare") for who in people)
    return fill(pattern, main=one, other=two)


WEIGHTS = {  # how many of a hundred and some sentences are of each kind
    plain: 28, because: 12, conditional: 12, meanwhile: 6, report: 11, relative: 10, question: 7,
    address: 5, chain: 6, scene: 8, conjunction: 6,
}  # fmt: skip
