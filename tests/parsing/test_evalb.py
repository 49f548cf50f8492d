"""EVALB's rules, by hand and against the original program's figures."""

import dataclasses
import io
import re

import archives
import pytest

from t2t_lite import errors
from t2t_lite.parsing import evalb, trees

GOLD = "(S (NP (DT the) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT a) (NN mat)))) (. .))"


def _sentence(gold, predicted, parameters=evalb.COLLINS):
    (sentence,) = evalb.score([_parts(gold)], [_parts(predicted)], parameters).sentences
    return sentence


def _parts(line):
    return tuple(trees.read([line]))


def _counts(sentence):
    assert sentence.status == "valid"
    return sentence.matched, sentence.gold, sentence.predicted


# Worked by hand


def test_a_tree_against_itself_is_complete():
    result = evalb.score([trees.parse(GOLD)], [trees.parse(GOLD)])
    assert (result.all.recall, result.all.precision, result.all.f1) == (100, 100, 100)
    assert (result.all.complete_match, result.all.tagging_accuracy) == (100, 100)
    assert _counts(result.sentences[0]) == (5, 5, 5)
    assert (result.sentences[0].length, result.sentences[0].words) == (7, 6)  # not the full stop


def test_recall_precision_and_f1_are_over_all_brackets_of_all_sentences():
    gold = [GOLD, "(S (NP (NN a)) (VP (VB b)))"]
    # S and two NPs right, VP of another label, PP missing; then S right, NP and VP missing
    predicted = [
        "(S (NP (DT the) (NN cat)) (X (VBD sat) (IN on) (NP (DT a) (NN mat))) (. .))",
        "(S (NN a) (VB b))",
    ]
    result = evalb.score(map(trees.parse, gold), map(trees.parse, predicted)).all
    assert (result.matched, result.gold, result.predicted) == (4, 8, 5)
    assert (result.recall, result.precision) == (50, 80)
    assert result.f1 == pytest.approx(2 * 50 * 80 / 130)


@pytest.mark.parametrize(
    ("gold", "predicted", "counts"),
    [
        # function tags and indices do not count, nor does TOP
        ("(S (NP-SBJ-1 (NN a)))", "(TOP (S (NP=2 (NN a))))", (2, 2, 2)),
        # traces go, and what they leave empty
        ("(VP (VB a) (SBAR (-NONE- 0) (S (-NONE- *))))", "(VP (VB a))", (1, 1, 1)),
        # a bracket without a label counts, and equals another without
        ("( (S (NN a)))", "(S (NN a))", (1, 2, 1)),
        ("( (S (NN a)))", "( (S (NN a)))", (2, 2, 2)),
        # ADVP and PRT are equal in COLLINS.prm
        ("(S (PRT (RP up)) (NN a))", "(S (ADVP (RP up)) (NN a))", (2, 2, 2)),
        # brackets of one label on one span match one for one
        ("(NP (NP (NP (NN a))))", "(NP (NP (NN a)))", (2, 3, 2)),
        ("(NP (NN a))", "(NP (NP (NP (NN a))))", (1, 1, 3)),
        ("(NP (X (NP (NN a))))", "(X (NP (NP (NN a))))", (3, 3, 3)),
        # brackets alike but for a comma have the same span
        ("(S (NP (NN a) (, ,)) (NN b))", "(S (NP (NN a)) (, ,) (NN b))", (2, 2, 2)),
        # several parts side by side
        ("(S (NP (NN a)) (NN b))", "(NP (NN a)) (NN b)", (1, 2, 1)),
    ],
)
def test_bracket_counts(gold, predicted, counts):
    assert _counts(_sentence(gold, predicted)) == counts


@pytest.mark.parametrize(
    ("predicted", "crossing"),
    [
        ("(S (A (N a) (N b)) (B (N c) (N d)))", 0),
        ("(S (N a) (X (N b) (N c)) (N d))", 1),
        ("(S (X (N a) (N b) (N c)) (N d))", 1),  # over two gold brackets: counts once
        ("(S (Y (X (N a) (N b) (N c))) (N d))", 2),  # each predicted one counts
        ("(S (X (N a) (Y (N b) (N c))) (N d))", 2),
    ],
)
def test_crossing_counts_predicted_brackets_that_overlap_without_nesting(predicted, crossing):
    gold = "(S (A (N a) (N b)) (B (N c) (N d)))"
    assert _sentence(gold, predicted).crossing == crossing


def test_crossing_figures_are_a_mean_and_shares_of_sentences():
    gold = trees.parse("(S (A (N a) (N b)) (B (N c) (N d)))")
    crossing_2 = "(S (Y (X (N a) (N b) (N c))) (N d))"
    crossing_3 = "(S (Z (Y (X (N a) (N b) (N c)))) (N d))"
    predicted = [gold, trees.parse(crossing_2), trees.parse(crossing_3), gold]
    summary = evalb.score([gold] * 4, predicted).all
    assert (summary.average_crossing, summary.no_crossing) == (5 / 4, 50)
    assert (summary.two_or_less_crossing, summary.complete_match) == (75, 50)


def test_tagging_compares_the_tags_of_words_that_count():
    gold, predicted = "(S (NN a) (RP b) (VB c) (. .))", "(S (NN a) (RB b) (NN c) (. .))"
    sentence = _sentence(gold, predicted)
    assert (sentence.words, sentence.correct_tags) == (3, 1)
    equal = dataclasses.replace(evalb.COLLINS, equal_labels=frozenset([frozenset(["VB", "NN"])]))
    assert _sentence(gold, predicted, equal).correct_tags == 2


@pytest.mark.parametrize(
    ("gold", "predicted", "status", "problem"),
    [
        ("(S (NN a) (NN b))", "(S (NN a) (NN c))", "error", "the gold word 'b' is 'c'"),
        ("(S (NN a) (NN b))", "(S (NN a))", "error", "2 gold words and 1 predicted ones"),
        # each tree's own tags decide what is punctuation
        ("(S (NN a) (. .))", "(S (NN a) (NN .))", "error", "1 gold words and 2 predicted"),
        ("(S (NN a))", "", "skipped", ""),
        ("(S (NN a) (. .))", "(S (. .))", "skipped", ""),
    ],
)
def test_sentences_that_cannot_be_compared(gold, predicted, status, problem):
    sentence = _sentence(gold, predicted)
    assert sentence.status == status
    assert sentence.problem.startswith(problem)
    assert (sentence.matched, sentence.gold, sentence.predicted) == (0, 0, 0)


def test_what_cannot_be_compared_stays_out_of_the_figures_but_is_counted():
    gold = [trees.parse("(S (NP (NN a)) (NN b))")] * 4
    predicted = [gold[0], trees.parse("(S (NN x) (NN b))"), (), None]
    result = evalb.score(gold, predicted)
    assert [s.status for s in result.sentences] == ["valid", "error", "skipped", "error"]
    summary = result.all
    assert (summary.num_sentences, summary.num_valid) == (4, 1)
    assert (summary.num_errors, summary.num_skipped) == (2, 1)
    assert (summary.gold, summary.f1, summary.complete_match) == (2, 100, 100)
    summary = evalb.score(gold[:1], [()]).all  # no valid sentence
    assert (summary.f1, summary.complete_match, summary.average_crossing) == (0, 0, 0)


def test_the_cut_off_counts_punctuation_and_no_traces():
    gold = "(S (NN a) (, ,) (-NONE- *) (NN b))"
    for cutoff, inside in ((2, 0), (3, 1)):
        parameters = dataclasses.replace(evalb.COLLINS, cutoff_length=cutoff)
        result = evalb.score([trees.parse(gold)], [trees.parse(gold)], parameters)
        assert (result.all.num_valid, result.up_to_cutoff.num_valid) == (1, inside)


def test_work_stops_one_error_after_evalb_s_bound_and_where_a_tree_has_no_other():
    gold, wrong = trees.parse("(S (NN a))"), trees.parse("(S (NN b))")
    assert evalb.score([gold] * 11, [wrong] * 11).all.num_errors == 11  # MAX_ERROR 10
    with pytest.raises(errors.UserError, match="12 sentences cannot be compared, the last at 12"):
        evalb.score([gold] * 12, [wrong] * 12)
    for num_gold, side in ((1, "gold"), (3, "predicted")):
        with pytest.raises(errors.UserError, match=f"has no {side} one"):
            evalb.score([gold] * num_gold, [gold] * 2)


def test_parameters_choose_what_counts_and_what_is_equal():
    unlabelled = dataclasses.replace(evalb.COLLINS, labeled=False)
    gold, predicted = "(S (NP (NN a)) (NN b))", "(X (Y (NN a)) (NN b))"
    assert _counts(_sentence(gold, predicted)) == (0, 2, 2)
    assert _counts(_sentence(gold, predicted, unlabelled)) == (2, 2, 2)
    # equal words, and labels that are deleted through an equal one
    parameters = evalb.Parameters(
        delete_labels=frozenset(["TOP"]),
        equal_words=frozenset([frozenset(["This", "this"])]),
        equal_labels=frozenset([frozenset(["TOP", "ROOT"])]),
    )
    sentence = _sentence("(TOP (S (DT This)))", "(ROOT (S (DT this)))", parameters)
    assert _counts(sentence) == (1, 1, 1)


def test_a_quote_mark_is_kept_where_only_one_tree_would_delete_it():
    gold = "(S (NP (NNS dogs) (-NONE- *) (POS ')) (NN tail) (, ,))"
    predicted = "(S (NP (NNS dogs)) ('' ') (NN tail) (, ,))"
    assert _sentence(gold, predicted).status == "error"
    parameters = dataclasses.replace(evalb.COLLINS, quote_labels=frozenset(["POS", "''"]))
    sentence = _sentence(gold, predicted, parameters)
    assert _counts(sentence) == (1, 2, 2)
    assert (sentence.words, sentence.correct_tags) == (3, 2)
    sentence = _sentence("(S (NN a) ('' ') (NN b))", "(S (NN a) (NN b) (NN c))", parameters)
    assert sentence.problem == "2 gold words and 3 predicted ones"  # b is no quote mark


# Parameter files


def test_reads_a_parameter_file():
    text = """# a comment
##---##

DEBUG 0
MAX_ERROR 5
CUTOFF_LEN\t70  \x20
LABELED 0
DELETE_LABEL TOP
DELETE_LABEL ''
DELETE_LABEL_FOR_LENGTH -NONE-
QUOTE_LABEL POS
EQ_LABEL ADVP PRT
EQ_WORD  This this"""
    assert evalb.read_parameters(text.split("\n")) == evalb.Parameters(
        max_error=5,
        cutoff_length=70,
        labeled=False,
        delete_labels=frozenset(["TOP", "''"]),
        delete_labels_for_length=frozenset(["-NONE-"]),
        quote_labels=frozenset(["POS"]),
        equal_labels=frozenset([frozenset(["ADVP", "PRT"])]),
        equal_words=frozenset([frozenset(["This", "this"])]),
    )
    assert evalb.read_parameters([]) == evalb.Parameters()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("DELETE_LABLE TOP", "unknown keyword 'DELETE_LABLE'; expected one of DEBUG, MAX_ERROR"),
        ("EQ_LABEL ADVP", "EQ_LABEL takes 2 values, got 1"),
        ("DELETE_LABEL , :", "DELETE_LABEL takes 1 value, got 2"),
        ("CUTOFF_LEN forty", "CUTOFF_LEN takes a whole number, got 'forty'"),
    ],
)
def test_a_faulty_parameter_file_is_an_error_with_its_line(line, problem):
    with pytest.raises(errors.UserError, match=f"my.prm, line 2: {re.escape(problem)}"):
        evalb.read_parameters(["DEBUG 0", line], name="my.prm")


# Against EVALB itself


def _lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_evalb_s_sample_comes_out_to_the_digit(shared_data):
    folder = shared_data / "evalb"
    assert evalb.read_parameters(_lines(folder / "COLLINS.prm")) == evalb.COLLINS
    result = evalb.score(
        map(_parts, _lines(folder / "sample.gld")),
        map(_parts, _lines(folder / "sample.tst")),
        evalb.read_parameters(_lines(folder / "sample.prm")),
    )
    lines = evalb.report(result, per_sentence=True).splitlines()
    f_measures = [line for line in lines if "FMeasure" in line]
    assert f_measures == [  # newer than the sample's own results
        "Bracketing FMeasure       =  89.12",
        "Bracketing FMeasure       =  83.20",
    ]
    assert [line for line in lines if line not in f_measures] == _lines(folder / "sample.rsl")


def _treebank(shared_data):
    for name, text in archives.texts(shared_data / "wsj_sample" / "combined.tgz"):
        yield from trees.read(io.StringIO(text), name=name)


def test_right_branching_trees_score_as_by_evalb(shared_data):
    # the figures are EVALB's own (COLLINS.prm, its limit of 200 brackets a sentence raised)
    gold, predicted = [], []
    for tree in _treebank(shared_data):
        cleaned = trees.clean(tree)
        assert cleaned is not None
        *words, last = cleaned.preterminals()
        chain = trees.Tree("NP", (last,))
        for word in reversed(words):
            chain = trees.Tree("NP", (word, chain))
        gold.append(tree)
        predicted.append(chain)
    result = evalb.score(gold, predicted)
    summary = result.all
    assert (summary.num_sentences, summary.num_valid) == (3_914, 3_914)
    assert (summary.matched, summary.gold, summary.predicted) == (6_467, 77_373, 89_969)
    assert (summary.crossing, summary.words, summary.correct_tags) == (45_212, 83_355, 83_355)
    assert [f"{figure:.2f}" for figure in dataclasses.astuple(summary)[:8]] == (
        ["8.36", "7.19", "7.73", "0.00", "11.55", "4.45", "12.52", "100.00"]
    )
    short = result.up_to_cutoff
    assert short.num_sentences == 3_629
    assert [f"{figure:.2f}" for figure in dataclasses.astuple(short)[:8]] == (
        ["8.68", "7.55", "8.07", "0.00", "10.07", "4.79", "13.50", "100.00"]
    )


def test_cleaning_takes_away_nothing_that_evalb_counts(shared_data):
    gold, cleaned = [], []
    for tree in _treebank(shared_data):
        gold.append(trees.Tree("TOP", tree.children))
        cleaned.append(trees.clean(tree))
    result = evalb.score(gold, cleaned).all
    assert (result.num_valid, result.complete_match) == (3_914, 100)
    assert result.matched == 77_373 - 3_914  # the gold brackets above but for those without a label
