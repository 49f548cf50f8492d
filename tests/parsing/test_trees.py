"""Trees and their linear forms, there and back."""

import io
import random
import re

import archives
import pytest

from t2t_lite import errors
from t2t_lite.parsing import trees

RAW = "( (S (NP-SBJ-1 (PRP It)) (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1)))) (. .)) )"
CLEAN = "(S (NP (PRP It)) (VP (VBD was) (VP (VBN seen))) (. .))"
LINEAR = "(S (NP XX )NP (VP XX (VP XX )VP )VP XX )S"


# Reading


def test_reads_trees_however_they_are_broken_into_lines():
    text = "( (S \n    (NP (NN a) )\n  (VP(VB b))))\n\n(X (Y c))  (X\t(Z d))\n"
    texts = [str(tree) for tree in trees.read(io.StringIO(text))]
    assert texts == ["( (S (NP (NN a)) (VP (VB b))))", "(X (Y c))", "(X (Z d))"]


def test_a_tree_has_the_parts_that_its_brackets_show():
    tree = trees.parse("(S (NP (DT the) (NN cat)) (VBD sat))")
    noun_phrase = trees.Tree("NP", (trees.Tree("DT", word="the"), trees.Tree("NN", word="cat")))
    assert tree == trees.Tree("S", (noun_phrase, trees.Tree("VBD", word="sat")))
    assert (tree.words(), tree.tags()) == (["the", "cat", "sat"], ["DT", "NN", "VBD"])
    assert len({tree, trees.parse(str(tree))}) == 1
    # Only ASCII white space separates.
    tree = trees.parse("(S (NN a\u00a0b)\f(NN c\u2009d) (NN e\u2028f)\x0b(NN g\x85h))")
    assert tree.words() == ["a\u00a0b", "c\u2009d", "e\u2028f", "g\x85h"]
    assert trees.delinearize(trees.linearize(tree, with_tags=True), tree.words()) == tree


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("(S (NN a)\n(NN b))\n)", 3, "')' closes a bracket that was not opened"),
        ("(X (Y a))\n\n(S (NN a)\n(NP (NN b)", 3, "never closed; 2 ')' are missing"),
        ("(S\n(NP ))", 2, "the bracket (NP) is empty"),
        ("(S (NN a)\n b)", 2, "expected a bracket of its own around the word 'b'"),
        ("(NN a (NN b))", 1, "expected ')' after (NN a"),
        ("a (NN b)", 1, "expected a labelled bracket around the word 'a'"),
        ("(S ((NN a)))", 1, "a bracket inside another needs a label"),
    ],
)
def test_what_is_no_tree_is_an_error_with_file_and_line(text, line, problem):
    with pytest.raises(errors.UserError, match=re.escape(problem)) as caught:
        list(trees.read(text.split("\n"), name="wsj_0001.mrg"))
    assert str(caught.value).startswith(f"wsj_0001.mrg, line {line}: ")


def test_the_trees_before_an_error_are_read_and_lines_count_from_the_first():
    stream = trees.read(["(X (Y a))", "(X"], first_line=17)
    assert next(stream) == trees.parse("(X (Y a))")
    with pytest.raises(errors.UserError, match="line 18: "):
        next(stream)


def test_a_tree_that_could_not_be_read_back_cannot_be_made():
    for text in ("", "(X (Y a)) (X (Y b))"):
        with pytest.raises(errors.UserError, match="expected one tree"):
            trees.parse(text)
    a = trees.Tree("NN", word="a")
    for label, children, word in [
        *(("S", (), None), ("S", (a,), "a"), ("", (), "a"), ("N(N", (), "a")),
        *(("NN", (), ""), ("NN", (), "a b"), ("NN", (), "(")),
    ]:
        with pytest.raises(errors.UserError):
            trees.Tree(label, children, word)


# Cleaning


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (RAW, CLEAN),
        ("( (S (NP (-NONE- *)) (VP (-NONE- *?*))))", "None"),  # traces alone
        ("(S (NP=2 (NN a)) (PP-LOC-CLR=1 (IN b)))", "(S (NP (NN a)) (PP (IN b)))"),
        ("(NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-))",) * 2,
        ("(-LRB- (NN a))",) * 2,
        ("(ADVP|PRT-X (RB up))", "(ADVP|PRT (RB up))"),
        ("(VP (VB a) (SBAR (-NONE- 0) (S (NP (-NONE- *)))))", "(VP (VB a))"),
        ("(NP (NP (NN a)) (SBAR (-NONE- 0)))", "(NP (NP (NN a)))"),  # X over X stays
        ("(TOP (S (NN a)))", "(S (NN a))"),
        ("( (ROOT (S1 (S (NN a)))))", "(S (NN a))"),
        ("( (S (NN a)) (. .))", "(TOP (S (NN a)) (. .))"),
        ("(ROOT (NN a))", "(TOP (NN a))"),
    ],
)
def test_clean_leaves_what_a_parser_has_to_find(raw, expected):
    assert str(trees.clean(trees.parse(raw))) == expected


# The linear form


def test_the_linear_form_has_labels_at_both_brackets_and_a_symbol_a_word():
    tree = trees.parse(CLEAN)
    assert trees.linearize(tree) == LINEAR
    assert trees.linearize(tree, with_tags=True) == ("(S (NP PRP )NP (VP VBD (VP VBN )VP )VP . )S")
    # tags come from the argument, then the symbol, then the word
    linear, words = "(S XX NN XX )S", ["a", "b", "?"]
    assert trees.delinearize(linear, words).tags() == ["XX", "NN", "."]
    assert trees.delinearize(linear, words, tags=["DT", "JJ", ":"]).tags() == ["DT", "JJ", ":"]


def test_round_brackets_in_words_are_escaped():
    assert trees.sentence(" (a)\tb\u2581c \u00a0d\r\n") == "-LRB-a-RRB- b_c \u00a0d"
    tree = trees.delinearize("(S XX XX XX )S", ["(", "f(x)", ")"])
    assert str(tree) == "(S (-LRB- -LRB-) (XX f-LRB-x-RRB-) (-RRB- -RRB-))"


@pytest.mark.parametrize(
    ("linear", "problem"),
    [
        ("(S XX (NP XX )VP )S", "token 5: expected )NP and found )VP"),
        ("(S XX XX )S )S", "token 5: expected a bracket to open and found )S"),
        ("(S XX (NP )NP XX )S", "token 4: the bracket (NP) is empty"),
        ("(S XX XX XX )S", "token 4: XX has no word left; there are 2"),
        ("(S XX ( XX ) )S", "token 3: a bracket inside another needs a label"),
        ("(S XX )S", "over 1 words"),
        ("(S XX (NP XX", "found 0 with 2 brackets left open"),
        ("(S XX )S (S XX )S", "expected one tree over 2 words; found 2"),
        ("", "expected one tree over 2 words; found 0"),
    ],
)
def test_a_form_that_is_not_one_tree_over_the_words_is_an_error(linear, problem):
    with pytest.raises(errors.UserError, match=re.escape(problem)):
        trees.delinearize(linear, ["a", "b"])


def test_words_and_tags_that_do_not_fit_are_errors():
    with pytest.raises(errors.UserError, match="token 3: 'b c'"):
        trees.delinearize("(S XX XX )S", ["a", "b c"])
    with pytest.raises(errors.UserError, match="one tag a word, got 1 for 2"):
        trees.delinearize("(S XX XX )S", ["a", "b"], tags=["DT"])
    with pytest.raises(errors.UserError, match="num_words=0"):
        trees.repair("(S )S", 0)


def test_depth_has_no_limit():
    tree = trees.Tree("NN", word="x")
    for _ in range(20_000):
        tree = trees.Tree("NP", (tree,))
    assert trees.parse(str(tree)) == tree
    assert trees.clean(tree) == tree
    linear = trees.linearize(tree)
    assert trees.delinearize(linear, ["x"], tags=["NN"]) == tree
    assert trees.repair(linear, 1) == trees.Repaired(linear=linear, repairs=0)


# Repair


@pytest.mark.parametrize(
    ("linear", "num_words", "expected", "repairs"),
    [
        (LINEAR, 4, LINEAR, 0),
        ("(S XX XX XX )S", 2, "(S XX XX )S", 1),  # a symbol too many
        ("(S XX (NP XX XX )NP )S", 1, "(S XX )S", 4),  # and what it leaves empty
        ("(S (NP XX )NP )S", 2, "(S (NP XX )NP XX )S", 1),  # one too few
        ("(S (NP XX (VP XX", 4, "(S (NP XX (VP XX XX XX )VP )NP )S", 5),  # cut off
        ("(S (NP XX )S", 1, "(S (NP XX )NP )S", 1),  # not closed
        ("(S (NP XX )VP XX )S", 2, "(S (NP XX )NP XX )S", 1),  # another label
        ("(S XX )S )S )NP", 1, "(S XX )S", 2),  # closed too often
        ("(S XX (NP )NP )S", 1, "(S XX )S", 2),  # empty
        ("(S ( XX ) )S", 1, "(S XX )S", 3),  # without labels: `)` takes that of S
        ("(S XX )S (NP XX )NP", 2, "(TOP (S XX )S (NP XX )NP )TOP", 2),  # two roots
        ("XX", 1, "(TOP XX )TOP", 2),  # no root
        ("", 2, "(TOP XX XX )TOP", 4),
        ("(S(NP XX)NP)S", 1, "(S (NP XX )NP )S", 0),
    ],
)
def test_repair(linear, num_words, expected, repairs):
    repaired = trees.repair(linear, num_words)
    assert repaired == trees.Repaired(linear=expected, repairs=repairs)


def test_any_output_is_repaired_to_a_tree_over_exactly_the_words():
    rng = random.Random(0)
    symbols = ["(S", ")S", "(NP", ")NP", ")VP", "XX", "XX", "NN", "(", ")", "))", "((X"]
    for _ in range(3_000):
        linear = " ".join(rng.choices(symbols, k=rng.randrange(30)))
        words = [f"w{i}" for i in range(rng.randint(1, 12))]
        repaired = trees.repair(linear, len(words))
        tree = trees.delinearize(repaired.linear, words)
        assert tree.words() == words
        assert tree.children
        assert trees.repair(repaired.linear, len(words)).repairs == 0
        assert trees.linearize(tree, with_tags=True).split() == repaired.linear.split()
        assert repaired.linear != linear or not repaired.repairs


# Real treebanks


@pytest.mark.parametrize(
    ("archive", "count"),
    [
        ("wsj_sample/combined.tgz", 3_914),
        pytest.param("craft/penn.tgz", 30_830, marks=pytest.mark.slow),
    ],
)
def test_round_trips_are_exact_on_a_whole_treebank(shared_data, archive, count):
    num_trees = 0
    for name, text in archives.texts(shared_data / archive):
        tokens = []
        for raw in trees.read(io.StringIO(text), name=name):
            num_trees += 1
            tokens += _tokens(str(raw))
            cleaned = trees.clean(raw)
            assert cleaned is not None
            for tree in (raw, cleaned):
                words, tags = tree.words(), tree.tags()
                assert trees.delinearize(trees.linearize(tree, with_tags=True), words) == tree
                assert trees.delinearize(trees.linearize(tree), words, tags=tags) == tree
            linear = trees.linearize(cleaned)
            repaired = trees.repair(linear, len(cleaned.words()))
            assert repaired == trees.Repaired(linear=linear, repairs=0)
        assert tokens == _tokens(text), name
    assert num_trees == count


def _tokens(text):
    return re.findall(r"[()]|[^\s()]+", text, re.ASCII)
