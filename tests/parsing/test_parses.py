"""The score of a parser's outputs."""

from t2t_lite.parsing import parses

GOLD = [
    "(S (NP (PRP It)) (VP (VBD rained)) (. .))",
    "(S (NP (DT The) (NN dog)) (VP (VBZ runs)) (. .))",
]


def test_gold_is_perfect_whatever_its_tags():
    found = parses.score(
        [tree.replace("VBD", "XX").replace("(. .)", "(XX .)") for tree in GOLD], GOLD
    )
    assert (found.all.f1, found.all.num_valid) == (100.0, 2)


def test_wrong_bracket_counts():
    wrong = "(S (NP (XX The)) (VP (XX dog) (XX runs)) (. .))"
    found = parses.score([GOLD[0], wrong], GOLD)
    # S, NP, VP of the first and S of the second
    assert (found.all.matched, found.all.gold, found.all.predicted) == (4, 6, 6)


def test_other_words_are_errors_and_nothing_is_skipped():
    outputs = ["(S (NP (XX It)))", "", "no tree", GOLD[0].replace("rained", "snowed")]
    found = parses.score(outputs, [*GOLD, *GOLD[:1] * 2])
    assert (found.all.num_errors, found.all.num_skipped, found.all.num_valid) == (3, 1, 0)
