"""Clauses of the toy grammar: complements, the verb's forms and places, word order."""

from collections.abc import Sequence
from typing import NamedTuple

from . import toy_lexicon as lexicon
from . import toy_phrases as phrases
from . import toy_verbs as verbs
from .toy_verbs import HE, WE

# Complements ------------------------------------------------------------------------------------

GERMAN_CONTRACTIONS = {
    "in dem": "im", "an dem": "am", "in das": "ins", "von dem": "vom",
    "zu dem": "zum", "zu der": "zur",
}  # fmt: skip


def german_pp(preposition: str, noun_phrase: str) -> str:
    article, _, rest = noun_phrase.partition(" ")
    contracted = GERMAN_CONTRACTIONS.get(f"{preposition} {article}")
    return phrases.join(contracted, rest) if contracted else phrases.join(preposition, noun_phrase)


def object_of(verb: verbs.Verb, phrase: phrases.Phrase) -> phrases.Complement:
    english, german, french, _ = verb
    tree = phrase.tree
    if english.preposition:
        tree = phrases.node("PP", phrases.node("IN", english.preposition), tree)
    rank = (
        phrases.LAST if german.preposition else phrases.GIVEN if phrase.definite else phrases.FRESH
    )
    return phrases.Complement(
        tree,
        german_pp(german.preposition, phrase.german(german.case)),
        phrases.join(french.preposition, phrase.french),
        rank,
        kein=phrase.kein,
    )


def recipient(phrase: phrases.Phrase) -> phrases.Complement:
    tree = phrases.node("PP", phrases.node("TO", "to"), phrase.tree)
    return phrases.Complement(tree, phrase.german("dat"), "à " + phrase.french, phrases.DATIVE)


def place(phrase: phrases.Phrase, prepositions: Sequence[str], rank: int) -> phrases.Complement:
    english, german, french = prepositions
    german, case = german.split(":")
    return phrases.Complement(
        phrases.node("PP", phrases.node("TO" if english == "to" else "IN", english), phrase.tree),
        german_pp(german, phrase.german(case)),
        phrases.join(french, phrase.french),
        rank,
    )


def quality(adjective: lexicon.Adjective, degree: str, who: phrases.Referent) -> phrases.Complement:
    """Tired, very tired, too tired."""
    german, french = {"very": ("sehr", "très"), "too": ("zu", "trop"), "": ("", "")}[degree]
    word = adjective.french[0]
    if not adjective.avoir:
        word = phrases.french_adjective(adjective, who.il, who.french >= WE)
    tree = phrases.node(
        "ADJP", phrases.node("RB", degree) if degree else "", phrases.node("JJ", adjective.english)
    )
    return phrases.Complement(
        tree, phrases.join(german, adjective.german), phrases.join(french, word), phrases.LAST
    )


def times(table: str) -> tuple[phrases.Complement, ...]:
    return tuple(phrases.Complement(*row, rank=phrases.TIME) for row in lexicon.rows(table))


TIMES = {
    "present": times("""
        (NP (NN today))                       | heute         | aujourd'hui
        (NP (DT every) (NN day))              | jeden Tag     | tous les jours
        (NP (DT every) (NN morning))          | jeden Morgen  | tous les matins
        (NP (DT every) (NNP Sunday))          | jeden Sonntag | tous les dimanches
        (PP (IN in) (NP (NN spring)))         | im Frühling   | au printemps
        (PP (IN in) (NP (NN winter)))         | im Winter     | en hiver
    """),
    "past": times("""
        (NP (NN yesterday))                   | gestern       | hier
        (NP (JJ last) (NN week))              | letzte Woche  | la semaine dernière
        (NP (JJ last) (NN year))              | letztes Jahr  | l'année dernière
        (NP (DT this) (NN morning))           | heute Morgen  | ce matin
        (ADVP (NP (CD three) (NNS days)) (RB ago)) | vor drei Tagen | il y a trois jours
    """),
    "going": times("""
        (NP (NN tomorrow))                    | morgen        | demain
        (NP (JJ next) (NN week))              | nächste Woche | la semaine prochaine
        (PP (IN on) (NP (NNP Monday)))        | am Montag     | lundi
    """),
}
TIMES |= {"want": TIMES["present"][:3], "must": TIMES["present"][:3], "can": TIMES["present"][:3]}


# Predicates -------------------------------------------------------------------------------------

ADVERBS = {  # German, French
    "": ("", ""),
    "not": ("nicht", "pas"),
    "never": ("nie", "jamais"),
    "often": ("oft", "souvent"),
    "always": ("immer", "toujours"),
}
REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
PARTICLES = {"back": ("ADVP", "RB"), "asleep": ("ADJP", "JJ")}


class Predicate(NamedTuple):
    """All of a clause but its subject, in the pieces that word order moves."""

    adverb: str  # English trees
    auxiliary: str
    body: str
    finite: str  # German
    middle: str
    infinitive: str
    particle: str
    french: str
    negated: bool

    def english(self) -> str:
        if not self.auxiliary:
            return phrases.join(self.adverb, self.body)
        negation = phrases.node("RB", "not") if self.negated else ""
        return phrases.join(self.adverb, phrases.node("VP", self.auxiliary, negation, self.body))


def predicate(
    verb: verbs.Verb,
    who: phrases.Referent,
    mood: str,
    complements: Sequence[phrases.Complement],
    *,
    adverb: str = "",
    question: bool = False,
    agree: phrases.Referent | None = None,
) -> Predicate:
    """Build a predicate. Moods: present, past, progressive (past), going (to), want, can, must."""
    auxiliary, body = english_verb(
        verb, who.english, mood, complements, adverb == "not" or question
    )
    german, _ = ADVERBS[adverb]
    if adverb == "not" and any(complement.kein for complement in complements):
        german = ""
    rank = phrases.NOT if adverb in ("not", "never") else phrases.OFTEN
    field = [*complements, phrases.Complement("", german, "", rank)]
    middle = phrases.join(
        *(c.german for c in sorted(field, key=lambda complement: complement.rank))
    )
    modal = verbs.MODALS.get("must not" if (mood, adverb) == ("must", "not") else mood)
    word = (modal or verb).german
    tense = word.past if mood in ("past", "progressive") else word.present
    return Predicate(
        adverb=phrases.node("ADVP", phrases.node("RB", adverb))
        if adverb not in ("", "not")
        else "",
        auxiliary=auxiliary,
        body=body,
        finite=tense[who.german],
        middle=middle,
        infinitive=verb.german.infinitive if modal else "",
        particle="" if modal else verb.german.particle,
        french=french_predicate(verb, who, mood, complements, adverb, agree),
        negated=adverb == "not",
    )


def english_verb(
    verb: verbs.Verb, slot: int, mood: str, complements: Sequence[phrases.Complement], support: bool
) -> tuple[str, str]:
    """Give the auxiliary, if any, and the rest: does, (VP (VB buy) ...) where `support` asks it."""
    word = verb.english
    rest = [complement.tree for complement in complements]
    finite = "VBZ" if slot == HE else "VBP"
    if verb.english is verbs.BE.english:
        past = mood == "past"
        form = (word.past if past else word.present)[slot]
        return phrases.node("VBD" if past else finite, form), phrases.join(*rest)
    if word.particle:
        phrase, tag = PARTICLES.get(word.particle, ("PRT", "RP"))
        rest.insert(0, phrases.node(phrase, phrases.node(tag, word.particle)))
    base = phrases.node("VP", phrases.node("VB", word.infinitive), *rest)
    to_base = phrases.node("S", phrases.node("VP", phrases.node("TO", "to"), base))
    if mood in ("can", "must"):
        return phrases.node("MD", mood), base
    if mood == "progressive":
        was = phrases.node("VBD", verbs.BE.english.past[slot])
        return was, phrases.node("VP", phrases.node("VBG", word.participle), *rest)
    if mood == "going":
        auxiliary = phrases.node(finite, verbs.BE.english.present[slot])
        return auxiliary, phrases.node("VP", phrases.node("VBG", "going"), to_base)
    if mood == "past" and support:
        return phrases.node("VBD", "did"), base
    if mood == "past":
        return "", phrases.node("VP", phrases.node("VBD", word.past[slot]), *rest)
    if mood == "want":
        word, rest = verbs.MODALS["want"].english, [to_base]
    if support:
        base = phrases.node("VP", phrases.node("VB", word.infinitive), *rest)
        return phrases.node(finite, "does" if slot == HE else "do"), base
    return "", phrases.node("VP", phrases.node(finite, word.present[slot]), *rest)


def french_predicate(
    verb: verbs.Verb,
    who: phrases.Referent,
    mood: str,
    complements: Sequence[phrases.Complement],
    adverb: str,
    agree: phrases.Referent | None,
) -> str:
    """Order: ne, pronoun, finite verb, pas, participle or infinitive, the rest."""
    word, slot = verb.french, who.french
    ne = "ne" if adverb in ("not", "never") else ""
    pas = ADVERBS[adverb][1]
    clitic = REFLEXIVE[slot] if word.reflexive else "".join(c.clitic for c in complements)
    rest = phrases.join(word.particle, *(complement.french for complement in complements))
    if mood in verbs.MODALS:
        finite = verbs.MODALS[mood].french.present[slot]
        return phrases.join(ne, finite, pas, clitic, word.infinitive, rest)
    if mood == "present" or mood == "progressive" or verb.english is verbs.BE.english:
        finite = (word.present if mood == "present" else word.past)[slot]
        return phrases.join(ne, clitic, finite, pas, rest)
    if word.etre:
        agree = who
    else:
        agree = agree or next((c.agree for c in complements if c.agree), None)
    auxiliary = (verbs.BE.french if word.etre else verbs.HAVE).present[slot]
    participle = word.participle
    if agree:
        feminine = participle + ("e" if agree.il == "f" else "")
        participle = phrases.french_agreeing(feminine, agree.french >= WE)
    return phrases.join(ne, clitic, auxiliary, pas, participle, rest)


HAVE = verbs.BE._replace(french=verbs.HAVE)


# Clauses ----------------------------------------------------------------------------------------


class Clause(NamedTuple):
    subject: phrases.Phrase
    predicate: Predicate

    def tree(self, *front: str) -> str:
        return phrases.node("S", *front, self.subject.tree, self.predicate.english())

    def verb_second(self, front: str = "") -> str:
        p, subject = self.predicate, self.subject.german("nom")
        start = (front, p.finite, subject) if front else (subject, p.finite)
        return phrases.join(*start, p.middle, p.infinitive or p.particle)

    def verb_first(self) -> str:
        p = self.predicate
        return phrases.join(
            p.finite, self.subject.german("nom"), p.middle, p.infinitive or p.particle
        )

    def verb_last(self) -> str:
        p = self.predicate
        return phrases.join(
            self.subject.german("nom"), p.middle, p.infinitive, p.particle + p.finite
        )

    def french(self) -> str:
        return phrases.join(self.subject.french, self.predicate.french)
