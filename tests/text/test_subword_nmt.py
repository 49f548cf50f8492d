"""Subword-nmt's merges: by hand, and in a graph as in Python."""

import json
import random

import pytest
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.text import any_vocabulary, piece_vocabulary, subword_nmt

CODES = "#version: 0.2\na a\na b</w>\nb c\naa a\nc aa\nb aa\nx </w>\nc\u3000 a\n"


def test_a_word_is_cut_as_by_hand():
    codes = subword_nmt.Codes(CODES)
    # "a a" joins from the left; then "b c", "aa a", "c aa" by rank, wherever they stand.
    assert codes.cut("aaaaa") == "aa@@ aa@@ a"
    assert codes.cut("aaab  bcaa") == "aa@@ ab bc@@ a@@ a"
    assert codes.cut("a ☃ab") == "a ☃@@ ab"
    assert codes.cut(" \n") == ""
    assert subword_nmt.joined(codes.cut("aaab bcaa").split()) == "aaab bcaa"
    assert subword_nmt.joined(["aa@@", "b@@"]) == "aab"


def test_older_files_and_fast_bpes():
    # Before version 0.2 the end of a word is a symbol.
    older = subword_nmt.Codes("b </w>\na b</w>\n")
    assert (older.end_is_apart, older.cut("ab")) == (True, "ab")
    fast = subword_nmt.Codes("a b</w> 17\nx y 3\n")
    assert (fast.end_is_apart, fast.cut("ab")) == (False, "ab")
    with pytest.raises(ValueError, match="two parts"):
        subword_nmt.Codes("a b c d\n")


def test_a_filter_takes_back_merges():
    # "dogs" is the cases' own: d@@ o@@ g@@ s by subword-nmt's --vocabulary-threshold.
    merges = "#version: 0.2\nd o\ng s</w>\ndo gs</w>\nc a\nca t\ncat s</w>\n"
    for allowed, expected in (
        (["cats", "do@@", "gs"], "do@@ gs cats c@@ a@@ t"),
        (["ca@@", "cat@@", "s"], "d@@ o@@ g@@ s cat@@ s ca@@ t"),
        (["gs", "ca@@"], "d@@ o@@ gs ca@@ t@@ s ca@@ t"),
    ):
        assert subword_nmt.Codes(merges, allowed).cut("dogs cats cat") == expected
    assert subword_nmt.Codes("b </w>\na b</w>\n", ["a@@"]).cut("ab b") == "a@@ b@@ b"


@pytest.mark.parametrize("form", [{}, {"ascii_space": True}, {"code_pieces": ["a@@", "bc@@"]}])
@pytest.mark.parametrize("codes", [CODES, CODES.removeprefix("#version: 0.2\n")])
def test_any_text_is_cut_in_a_graph_as_in_python(codes, form):
    pieces = ["<pad>", "</s>", "<unk>", "a", "b", "aa@@", "ab", "bc@@", "☃@@", "a@@", "c@@", "x"]
    side = piece_vocabulary.side([*pieces, "a\u00a0@@", "a@@\u00a0"], codes=codes, **form)
    vocab = piece_vocabulary.PieceVocabulary(piece_vocabulary.joined(side, side))
    drawn = random.Random(1)
    characters = "aaaaabbcx \t\n\r\u3000\u00a0☃@"
    texts = ["".join(drawn.choices(characters, k=drawn.randint(0, 14))) for _ in range(800)]
    expected = vocab.encode_batch(texts)
    assert len({i for row in expected for i in row}) > 6
    tokenizer = vocab.tokenizer()
    found = tokenizer.tokenize(tf.constant([text.encode() for text in texts]))
    assert found.to_list() == expected
    spelt = tokenizer.detokenize(found.to_tensor()).numpy()
    assert [text.decode() for text in spelt] == [vocab.decode(row) for row in expected]


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "dict.txt.pieces"
    pieces = ["<pad>", "</s>", "<unk>", "a"]
    for wrong in ({"other": "x"}, {"pieces": [1]}, {"codes": "a b c d"}, {"model": "AAAA"}):
        side = {"pieces": pieces, **wrong}
        for content in ({"source": side}, {"source": {"pieces": pieces}, "target": side}):
            path.write_text(json.dumps(content))
            with pytest.raises(errors.UserError, match="not a vocabulary"):
                any_vocabulary.load(path)
    path.write_text(json.dumps({"source": {"pieces": pieces}}))
    assert any_vocabulary.load(path).encode("a b") == [3, 2]
