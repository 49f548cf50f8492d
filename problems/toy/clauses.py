"""Clauses of the toy grammar: complements, the verb's forms and places, word order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from . import lexicon, phrases

# the order of the German middle field
PRONOUN, TIME, OFTEN, DATIVE, GIVEN, NOT, PLACE, FRESH, LAST = range(9)


class Complement(NamedTuple):
    """What follows a verb in English. German sorts its middle field by `rank`."""

    tree: str
    german: str
    french: str
    rank: int
    clitic: str = ""  # a French object pronoun, before the verb
    agree: phrases.Referent | None = None  # with which the past participle then agrees


def object_of(verb: lexicon.Row, phrase: phrases.Phrase) -> Complement:
    german, french = verb["german_preposition"], verb["french_preposition"]
    return Complement(
        english_object(verb, phrase.tree),
        f"{german} {phrase.german[verb['german_case']]}".strip(),
        f"{french} {phrase.french}",
        LAST if german else GIVEN if phrase.definite else FRESH,
    )


def object_pronoun(verb: lexicon.Row, who: phrases.Referent) -> Complement:
    is_indirect = bool(verb["french_preposition"])  # lui, leur
    return Complement(
        english_object(verb, f"(NP (PRP {who.english.pronoun['english_object']}))"),
        who.german.pronoun[f"german_{verb['german_case']}"],
        "",
        PRONOUN,
        clitic=who.french.pronoun["french_indirect" if is_indirect else "french_direct"],
        agree=None if is_indirect else who,
    )


def english_object(verb: lexicon.Row, tree: str) -> str:
    preposition = verb["english_preposition"]
    return f"(PP (IN {preposition}) {tree})" if preposition else tree


def prepositional(phrase: phrases.Phrase, prepositions: str, rank: int) -> Complement:
    """Put prepositions, such as "in in:dat dans", before a phrase; German may do with a case."""
    english, german, french = prepositions.split()
    german, case = german.split(":")
    return Complement(
        f"(PP ({'TO' if english == 'to' else 'IN'} {english}) {phrase.tree})",
        f"{german} {phrase.german[case]}",
        f"{french} {phrase.french}",
        rank,
    )


def quality(adjective: lexicon.Row, degree: str, who: phrases.Referent) -> Complement:
    """Tired, very tired, too tired."""
    how, word = lexicon.DEGREES[degree], adjective["french_m"]
    if adjective["place"] != "avoir":
        word = phrases.french_agreeing(word, adjective["french_f"], who.french)
    tree = f"(ADJP {how['english']} (JJ {adjective['english']}))"
    german, french = f"{how['german']} {adjective['german']}", f"{how['french']} {word}"
    return Complement(tree, german, french, LAST)


TIMES = {  # by the mood that they go with
    mood: [
        Complement(row["english"], row["german"], row["french"], TIME)
        for row in lexicon.rows("times")
        if mood in row["moods"].split()
    ]
    for mood in ("present", "past", "going", "want", "can", "must")
}


class Action(NamedTuple):
    """What somebody does: a verb and all that goes with it but its subject."""

    verb: lexicon.Row
    complements: Sequence[Complement] = ()
    adverb: str = ""
    time: Complement | None = None
    object: phrases.Phrase | None = None


@dataclass(frozen=True)
class Clause:
    """A clause, in the pieces that word order moves.

    Moods: present, past, present progressive, past progressive, going (to), want, can, must.
    """

    subject: phrases.Phrase
    mood: str
    action: Action
    is_question: bool = False
    antecedent: phrases.Referent | None = None  # of "that", where it is the object

    @property
    def complements(self) -> list[Complement]:
        return [*self.action.complements, *([self.action.time] if self.action.time else [])]

    @property
    def pattern(self) -> lexicon.Row:
        """The row of the table of moods."""
        case = "not" if self.action.adverb == "not" else "?" if self.is_question else ""
        if self.action.verb["english"] == "be":
            case = "be"
        return lexicon.MOODS.get(f"{self.mood} {case}") or lexicon.MOODS[self.mood]

    # English

    def _english(self, part: str) -> str:
        verb, who = self.action.verb, self.subject.who.english
        words = lexicon.FORMS["english"][verb["english"]]
        finite = words.get(who.form, words["infinitive"])
        rest = " ".join([verb["english_particle"], *(each.tree for each in self.complements)])
        return self.pattern[part].format(who=who.pronoun, verb=words, finite=finite, rest=rest)

    @property
    def inverted(self) -> str:
        """Does the man read, in a question."""
        return f"{self._english('auxiliary')} {self.subject.tree} {self._english('body')}"

    @property
    def tree(self) -> str:
        return f"(S {self.subject.tree} {self.verb_phrase}))"

    @property
    def verb_phrase(self) -> str:
        """The verb phrase without its last bracket, so that more can be attached."""
        adverb = lexicon.ADVERBS[self.action.adverb]
        auxiliary, body = self._english("auxiliary"), self._english("body")
        if auxiliary:
            body = f"(VP {auxiliary} {adverb['after_auxiliary']} {body})"
        return f"{adverb['before_verb']} {body.removesuffix(')')}"

    # German

    @property
    def finite(self) -> str:
        form = self.subject.who.german.form
        tense = f"past_{form[-1]}" if self.mood.startswith("past") else form
        verb = self.pattern["german_modal"] or self.action.verb["german"]
        return lexicon.FORMS["german"][verb][tense]

    @property
    def middle(self) -> str:
        """The complements and the adverb in their order; nicht is not said beside kein."""
        adverb = self.action.adverb
        rank = NOT if adverb in ("not", "never") else OFTEN
        field = [*self.complements, Complement("", lexicon.ADVERBS[adverb]["german"], "", rank)]
        if adverb == "not" and any(each.german.startswith("kein") for each in field):
            field.pop()
        return " ".join(each.german for each in sorted(field, key=lambda each: each.rank))

    @property
    def right_bracket(self) -> str:
        """What ends a main clause: the separable prefix, or the infinitive under a modal."""
        verb = self.action.verb
        return verb["german_particle"] + (verb["german"] if self.pattern["german_modal"] else "")

    @property
    def verb_first(self) -> str:
        return f"{self.finite} {self.subject.german['nom']} {self.middle} {self.right_bracket}"

    @property
    def verb_second(self) -> str:
        return f"{self.subject.german['nom']} {self.finite} {self.middle} {self.right_bracket}"

    @property
    def verb_last(self) -> str:
        end = self.right_bracket + (" " if self.pattern["german_modal"] else "") + self.finite
        return f"{self.subject.german['nom']} {self.middle} {end}"

    # French

    @property
    def french(self) -> str:
        return f"{self.subject.french} {self.french_predicate}"

    @property
    def french_predicate(self) -> str:
        """Order: ne, pronoun, finite verb, pas, participle or infinitive, the rest."""
        verb, who, complements = self.action.verb, self.subject.who.french, self.complements
        words, adverb = lexicon.FORMS["french"][verb["french"]], lexicon.ADVERBS[self.action.adverb]
        ne, pas = adverb["ne"], adverb["french"]
        infinitive, clitic = verb["french"], "".join(each.clitic for each in complements)
        if infinitive.startswith("se "):
            infinitive, clitic = infinitive.removeprefix("se "), who.pronoun["french_reflexive"]
        rest = " ".join([verb["french_particle"], *(each.french for each in complements)])
        modal = self.pattern["french_modal"]
        if modal:
            finite = lexicon.FORMS["french"][modal][who.form]
            return f"{ne} {finite} {pas} {clitic} {infinitive} {rest}"
        if self.mood != "past" or verb["english"] == "be":
            tense = f"imperfect_{who.form}" if self.mood.startswith("past") else who.form
            return f"{ne} {clitic} {words[tense]} {pas} {rest}"
        finite = lexicon.FORMS["french"][words["auxiliary"]][who.form]
        return f"{ne} {clitic} {finite} {pas} {self._participle(words)} {rest}"

    def _participle(self, words: lexicon.Row) -> str:
        """Agree with the subject beside être, with an object that comes first beside avoir."""
        objects = [self.antecedent, *(each.agree for each in self.complements)]
        first = next(filter(None, objects), None)
        who = self.subject.who if words["auxiliary"] == "être" else first
        if not who:
            return words["participle"]
        return phrases.french_agreeing(words["participle"], words["participle"] + "e", who.french)
