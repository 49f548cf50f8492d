"""Parsing: trees in Python and in the graph, what a translator makes of them, and their score."""

import random

import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import options, translator
from t2t_lite.parsing import tree_grammar, trees
from t2t_lite.tasks import parsing
from t2t_lite.text import sentencepiece_vocabulary

GOLD = [
    "(S (NP (PRP It)) (VP (VBD rained)) (. .))",
    "(S (NP (DT The) (NN dog)) (VP (VBZ runs)) (. .))",
]


def test_outputs_are_scored_whatever_their_tags():
    untagged = [tree.replace("VBD", "XX").replace("(. .)", "(XX .)") for tree in GOLD]
    perfect = parsing.score(untagged, GOLD).all
    assert (perfect.f1, perfect.num_valid) == (100.0, 2)
    wrong = "(S (NP (XX The)) (VP (XX dog) (XX runs)) (. .))"
    score = parsing.score([GOLD[0], wrong], GOLD).all
    # S, NP, VP of the first and S of the second
    assert (score.matched, score.gold, score.predicted) == (4, 6, 6)
    outputs = ["(S (NP (XX It)))", "", "no tree", GOLD[0].replace("rained", "snowed")]
    score = parsing.score(outputs, [*GOLD, *GOLD[:1] * 2]).all
    assert (score.num_errors, score.num_skipped, score.num_valid) == (3, 1, 0)


def _texts(tensor):
    return [text.decode() for text in tensor.numpy()]


def test_random_linear_forms_become_the_same_trees_in_the_graph():
    symbols = ["(S", ")S", "(NP", ")NP", ")VP", "(VP", *["XX"] * 3, "NN", "(", ")", "))", "((X"]
    rng = random.Random(0)
    linears, texts, expected = [], [], []
    for _ in range(1_000):
        words = rng.choices(["dog", ",", "“", "-LRB-", "☃"], k=rng.randint(1, 8))
        form = " ".join(rng.choices(symbols, k=rng.randrange(40)))
        linear = trees.repair(form, len(words)).linear
        linears.append(f" {linear}")
        texts.append(" ".join(words))
        expected.append(str(trees.delinearize(linear, words)))
    assert _texts(parsing.delinearize(tf.constant(linears), tf.constant(texts))) == expected


def test_texts_are_the_same_in_the_graph():
    assert _texts(parsing.delinearize(tf.constant([""]), tf.constant(["a dog"]))) == [""]
    empty = tf.zeros([0], tf.string)
    assert parsing.delinearize(empty, empty).shape == [0]
    texts = [" (a)\tb\u2581c \u00a0d\r\n", "", "x\v\fy  z", "( (", "☃\x00\x1f a"]
    in_graph = tiny_run.tree_task().graph_inputs(tf.constant(texts))
    assert _texts(in_graph) == [trees.sentence(text) for text in texts]


def _parser(**changes):
    task = tiny_run.tree_task()
    decode_options = options.for_model(tiny_run.HPARAMS, **{"alpha": 0.3, **changes})
    model = tiny_run.model(vocab_size=task.vocabulary.size)
    return translator.Translator(model, task, decode_options)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_an_untrained_model_parses_any_input_whatever_the_batch(beam_size):
    rng = random.Random(beam_size)
    alphabet = "abcdefgh .,()♥é\u2581\u00a0"
    texts = ["".join(rng.choices(alphabet, k=rng.randint(1, 60))) for _ in range(200)]
    parser = _parser(beam_size=beam_size)
    results = parser.translate(texts)
    assert [parser.translate([text])[0].text for text in texts[:3]] == [r.text for r in results[:3]]
    for text, result in zip(texts, results):
        if not text.strip():
            assert result.text == ""
            continue
        assert (result.repairs, result.finished) == (0, True)
        assert trees.parse(result.text).words() == trees.sentence(text).split(" ")


def test_free_search_is_repaired_and_counted():
    texts = ["a dog runs", "he sleeps", "two dogs run in the park"]
    for text, result in zip(texts, _parser(constrained=False).translate(texts)):
        assert result.repairs
        assert trees.parse(result.text).words() == text.split(" ")


def test_a_given_tree_is_spelt_as_the_parser_learnt_it():
    raw = "( (S (NP-SBJ (DT a) (NN dog) (-NONE- *T*-1)) (VP (VBZ runs))) )"
    assert tiny_run.tree_task().target_text(raw) == " (S (NP XX XX )NP (VP XX )VP )S"
    # XX is a tag too: of foreign words, or of what a treebank gave none.
    symbols = [" (S", " )S", " (NP", " )NP", " (VP", " )VP", " DT", " NN", " VBZ", " XX"]
    model = sentencepiece_vocabulary.train(tiny_run.SENTENCES * 10, 300, symbols=symbols)
    tagger = parsing.ParsingWithTags(sentencepiece_vocabulary.SentencePieceVocabulary(model))
    assert tagger.target_text(raw) == " (S (NP DT NN )NP (VP VBZ )VP )S"
    with pytest.raises(errors.UserError, match="it has no words"):
        tagger.target_text("(S (-NONE- *))")
    with pytest.raises(errors.UserError, match=r"'\(S' is not a tree"):
        tagger.encode_targets(["(S (NP (NN a)))", "(S"], 99)


@pytest.mark.parametrize("limit", range(2, 12))
def test_long_input_is_parsed_as_far_as_it_is_read(limit):
    """A cut before a word in bytes leaves no empty word."""
    result = _parser(max_source_length=limit, beam_size=2).translate(["a \u2603 b \u2603\u2603"])[0]
    words = trees.parse(result.text).words()
    assert result.repairs == 0
    assert result.truncated
    assert words[:-1] == ["a", "\u2603", "b"][: len(words) - 1]


def test_the_deepest_bracket_is_no_end(monkeypatch):
    """With few hypotheses alive, dead ones go on with what is not allowed, and harm none."""
    monkeypatch.setattr(tree_grammar, "MAX_DEPTH", 2)
    for beam_size in (5, 21):
        parser = _parser(beam_size=beam_size, return_beams=beam_size)
        for result in parser.translate(["a", "he sleeps", "a dog runs"]):
            assert result.hypotheses
            assert not any(hypothesis.repairs for hypothesis in result.hypotheses)


@pytest.mark.parametrize("change", [{"sampling": True}, {"prefix": "(S"}, {"min_length": 3}])
def test_what_does_not_go_with_a_grammar_is_refused(change):
    with pytest.raises(errors.UserError, match="constrained=false"):
        _parser(**change)
    with pytest.raises(errors.UserError, match="at least 2"):
        _parser(max_source_length=1)
