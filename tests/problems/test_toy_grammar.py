import itertools
import random
import re
import subprocess
import sys
import time

import pytest
from t2t_lite.problems import (  # pyright: ignore[reportMissingImports] (setup.cfg maps it)
    toy_actions,
    toy_clauses,
    toy_grammar,
    toy_lexicon,
    toy_phrases,
    toy_verbs,
)


@pytest.fixture(scope="module")
def sample():
    return list(itertools.islice(toy_grammar.draws(seed=5), 20_000))


def named(verb, table=toy_verbs.ON_THINGS + toy_verbs.ON_PEOPLE + toy_verbs.ALONE):
    return next(entry for entry in table if entry.english.infinitive == verb)


def phrase(noun, determiner="the", plural=False, adjectives=(), owner="", negated=False):
    """Build the noun phrase that has just these words, by drawing until it comes."""
    for seed in range(10_000):
        made = toy_phrases.noun_phrase(
            random.Random(seed), noun, determiner, owner=owner, negated=negated
        )
        found = tuple(re.findall(r"\(JJ (?!many)(\w+)\)", made.tree))
        if found == tuple(adjectives) and (made.who.english == toy_verbs.THEY) == plural:
            return made
    raise AssertionError("no such phrase")


@pytest.mark.parametrize(
    ("noun", "arguments", "german", "french"),
    [
        (toy_lexicon.MEN["man"], {"adjectives": ["old"]},
         "der alte Mann, den alten Mann, dem alten Mann, des alten Mannes", "le vieil homme"),
        (toy_lexicon.MEN["man"], {"determiner": "a", "adjectives": ["old"]},
         "ein alter Mann, einen alten Mann, einem alten Mann, eines alten Mannes",
         "un vieil homme"),
        (toy_lexicon.WOMEN["woman"], {"determiner": "a", "adjectives": ["curious"]},
         "eine neugierige Frau, eine neugierige Frau, einer neugierigen Frau, "
         "einer neugierigen Frau", "une femme curieuse"),
        (toy_lexicon.CHILDREN["child"], {"determiner": "two", "plural": True,
                                         "adjectives": ["small"]},
         "zwei kleine Kinder, zwei kleine Kinder, zwei kleinen Kindern, zwei kleiner Kinder",
         "deux petits enfants"),
        (toy_lexicon.MEN["student"], {"determiner": "this"},
         "dieser Student, diesen Studenten, diesem Studenten, dieses Studenten", "cet étudiant"),
        (toy_lexicon.MEN["guest"], {"determiner": "many", "plural": True},
         "viele Gäste, viele Gäste, vielen Gästen, vieler Gäste", "beaucoup de invités"),
        (toy_lexicon.SNACKS["apple"], {"determiner": "some", "plural": True,
                                       "adjectives": ["good"]},
         "gute Äpfel, gute Äpfel, guten Äpfeln, guter Äpfel", "de bonnes pommes"),
        (toy_lexicon.DRINKS["water"], {"determiner": "some", "adjectives": ["cold"]},
         "kaltes Wasser, kaltes Wasser, kaltem Wasser, kalten Wassers", "de la eau froide"),
        (toy_lexicon.MACHINES["car"], {"determiner": "own", "owner": "f",
                                       "adjectives": ["expensive"]},
         "ihr teures Auto, ihr teures Auto, ihrem teuren Auto, ihres teuren Autos",
         "sa voiture chère"),
        (toy_lexicon.MACHINES["clock"], {"determiner": "own", "owner": "m"},
         "seine Uhr, seine Uhr, seiner Uhr, seiner Uhr", "son horloge"),
        (toy_lexicon.GARMENTS["trousers"], {"plural": True},
         "die Hose, die Hose, der Hose, der Hose", "le pantalon"),
        (toy_lexicon.HEADWEAR["glasses"], {"plural": True},
         "die Brille, die Brille, der Brille, der Brille", "les lunettes"),
        (toy_lexicon.MACHINES["car"], {"determiner": "a", "negated": True},
         "kein Auto, kein Auto, keinem Auto, keines Autos", "de voiture"),
    ],
)  # fmt: skip
def test_noun_phrases_agree(noun, arguments, german, french):
    made = phrase(noun, **arguments)
    assert ", ".join(made.german(case) for case in ("nom", "acc", "dat", "gen")) == german
    assert made.french == french


@pytest.mark.parametrize(
    ("raw", "spoken"),
    [
        ("je ai le ami de le roi", "j'ai l'ami du roi"),
        ("il dit que elle ne a pas de argent", "il dit qu'elle n'a pas d'argent"),
        ("à le garçon et à les enfants de le homme", "au garçon et aux enfants de l'homme"),
        ("si il pleut et si elle dort", "s'il pleut et si elle dort"),
    ],
)
def test_french_elides_and_contracts(raw, spoken):
    assert toy_grammar.french_sound(raw) == spoken


@pytest.mark.parametrize(
    ("base", "german", "french"),
    [
        ("read", "lese liest liest lesen lest lesen", "lis lis lit lisons lisez lisent"),
        ("wait", "warte wartest wartet warten wartet warten",
         "attends attends attend attendons attendez attendent"),
        ("open", "mache machst macht machen macht machen",
         "ouvre ouvres ouvre ouvrons ouvrez ouvrent"),
        ("eat", "esse isst isst essen esst essen", "mange manges mange mangeons mangez mangent"),
        ("buy", "kaufe kaufst kauft kaufen kauft kaufen",
         "achète achètes achète achetons achetez achètent"),
        ("fill", "fülle füllst füllt füllen füllt füllen",
         "remplis remplis remplit remplissons remplissez remplissent"),
    ],
)  # fmt: skip
def test_verbs_conjugate(base, german, french):
    verb = named(base)
    assert " ".join(verb.german.present) == german
    assert " ".join(verb.french.present) == french


THE_WOMAN = phrase(toy_lexicon.WOMEN["woman"])
THE_DOCTOR = phrase(toy_lexicon.MEN["doctor"])
THE_DOOR = phrase(toy_lexicon.OPENINGS["door"])


def clause(subject, base, mood, *objects, adverb="", time=None):
    verb = named(base)
    complements = [toy_clauses.object_of(verb, entry) for entry in objects]
    action = toy_actions.Action(verb, complements, adverb, time)
    return toy_actions.clause_of(subject, mood, action)


def test_separable_prefix_inversion_and_verb_final_clause():
    call = clause(THE_WOMAN, "call", "present", THE_DOCTOR)
    assert call.verb_second() == "die Frau ruft den Arzt an"
    assert call.verb_second("heute") == "heute ruft die Frau den Arzt an"
    assert call.verb_last() == "die Frau den Arzt anruft"
    wants = clause(THE_WOMAN, "call", "want", THE_DOCTOR)
    assert wants.verb_second() == "die Frau will den Arzt anrufen"
    assert wants.verb_last() == "die Frau den Arzt anrufen will"


def test_negation():
    closed = clause(THE_WOMAN, "close", "past", THE_DOOR, adverb="not")
    assert closed.verb_second() == "die Frau machte die Tür nicht zu"
    assert closed.french() == "la femme ne a pas fermé la porte"
    assert closed.predicate.english() == (
        "(VP (VBD did) (RB not) (VP (VB close) (NP (DT the) (NN door))))"
    )
    must = clause(THE_WOMAN, "close", "must", THE_DOOR, adverb="not")
    assert must.verb_second() == "die Frau darf die Tür nicht zumachen"
    assert must.french() == "la femme ne doit pas fermer la porte"
    car = phrase(toy_lexicon.MACHINES["car"], "a", negated=True)
    buys = clause(THE_WOMAN, "buy", "present", car, adverb="not")
    assert buys.verb_second() == "die Frau kauft kein Auto"
    assert buys.french() == "la femme ne achète pas de voiture"


def test_reflexive_past_agrees_with_the_subject():
    slept = clause(THE_WOMAN, "fall", "past")
    assert slept.french() == "la femme se est endormie"
    assert slept.verb_last() == "die Frau einschlief"


def test_object_pronoun_precedes_the_french_verb_and_its_participle_agrees():
    verb = named("close")
    them = phrase(toy_lexicon.OPENINGS["door"], plural=True)
    made = toy_clauses.predicate(
        verb, THE_WOMAN.who, "past", [toy_phrases.object_pronoun(verb, them.who)]
    )
    assert made.french == "les a fermées"
    assert made.middle == "sie"


@pytest.mark.parametrize(
    ("english", "german", "french"),
    [  # the word that decides, and what it decides
        (r"\bat (the|a) bank\b", "Bank", "banque"),
        (r"\bon (the|a) bank\b", "Ufer", "rive"),
        (r"knows? that", r"\b(weiß|weißt|wissen)\b", r"\b(sais|sait|savons|savent)\b"),
        (r"^(He|She|I) knows? the", r"\b(kennt?e?)\b", r"\bconna"),
        (r"(press|presses|pressed) the key", "Taste", "touche"),
        (r"(lose|loses|lost) the key", "Schlüssel", "clé"),
        (r"\bin spring\b", "Frühling", "printemps"),
        (r"\bat (the|a) spring\b", "Quelle", "source"),
        (r"(watch|watches|watched) the match\b", "Spiel", "match"),
        (r"(light|lights|lit) the match\b", "Streichholz", "allumette"),
        (r"light (suitcase|bag)\b", "leicht", "lég"),
        (r"light (office|kitchen|garage)", "hell", "clair"),
        (r"hard (question|sentence|exercise)", "schwierig", "difficile"),
        (r"hard (table|chair|bed)", "hart", "dur"),
        (r"^When .* was raining", "^Als", "^Quand"),
        (r"^When .* is raining", "^Wenn", "^Quand"),
        (r"(visit|visited|visits) the (castle|museum)", "sichtig", r"visit(e|é|er|ent)"),
        (r"(visit|visited|visits) the (doctor|woman)", "such", "visite (à|au)"),
        (r"machine runs", "läuft", "fonctionne"),
    ],
)
def test_context_decides_between_two_readings(sample, english, german, french):
    fitting = [entry for entry in sample if re.search(english, entry.english)]
    assert fitting
    for entry in fitting:
        assert re.search(german, entry.german), entry
        assert re.search(french, entry.french), entry


def test_it_and_they_take_the_gender_of_what_they_mean():
    bottle = phrase(toy_lexicon.VESSELS["bottle"]).who
    trousers = phrase(toy_lexicon.GARMENTS["trousers"], plural=True).who
    it, they = (toy_phrases.subject_pronoun(who) for who in (bottle, trousers))
    assert (it.tree, it.german("nom"), it.french) == ("(NP (PRP it))", "sie", "elle")
    assert (they.tree, they.german("nom"), they.french) == ("(NP (PRP they))", "sie", "il")


def test_tree_has_the_sentence_as_its_leaves(sample):
    for entry in sample[:3000]:
        assert "\n" not in entry.tree
        assert entry.tree.count("(") == entry.tree.count(")")
        assert re.fullmatch(r"\((S|SQ|SBARQ) .* \(([.]) [.?]\)\)", entry.tree)
        words = re.findall(r"\(\S+ ([^()\s]+)\)", entry.tree)
        assert re.findall(r"\w+|[,.?]", entry.english) == words
        assert not re.search(r"\((\S+) *\)|  ", entry.tree)


def test_text_is_ordinary(sample):
    for entry in sample:
        assert 5 <= len(entry.english.split()) <= 25
        for text in (entry.english, entry.german, entry.french):
            assert re.fullmatch(r"[A-ZÄÖÜÉÀ][^.?]*[^ ,.?][.?]", text), text
            assert not re.search(r"  | [,.?]|,,|,[^ ]", text), text
        assert not re.search(
            r"\b(le|la|je|ne|de|que|me|te|se|si il|ce) [aeiouhéèêœ]|\b(de|à) les?\b",
            entry.french.replace("si e", ""),
            re.IGNORECASE,
        ), entry.french


def test_english_decides_the_translation(sample):
    known = {}
    for entry in itertools.chain(sample, itertools.islice(toy_grammar.draws(seed=6), 20_000)):
        assert known.setdefault(entry.english, entry) == entry


def test_questions_deny_nothing(sample):
    questions = [entry for entry in sample if entry.english.endswith("?")]
    assert questions
    assert not any(re.search(r"\b(kein|nicht|nie)", entry.german) for entry in questions)


def test_splits_share_no_sentence_in_any_language_and_are_fast():
    start = time.process_time()
    splits = toy_grammar.splits(seed=1, sizes={"train": 20_000, "dev": 500, "test": 500})
    seconds = time.process_time() - start
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 20_000, "dev": 500, "test": 500,
    }  # fmt: skip
    for language in ("english", "german", "french"):
        texts = [getattr(entry, language) for split in splits.values() for entry in split]
        assert len(set(texts)) == 21_000
    assert seconds < 6  # about 2 on an idle core, and test machines are shared


def test_dev_and_test_do_not_depend_on_the_size_of_train():
    small, large = (
        toy_grammar.splits(seed=1, sizes={"train": size, "dev": 50, "test": 50})
        for size in (10, 1000)
    )
    assert small["dev"] == large["dev"]
    assert small["test"] == large["test"]
    assert small["train"] == large["train"][:10]


def test_draws_do_not_depend_on_the_hash_seed():
    code = (
        "import itertools\nfrom t2t_lite.problems import toy_grammar\n"
        "print([*itertools.islice(toy_grammar.sentences(seed=3), 200)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
