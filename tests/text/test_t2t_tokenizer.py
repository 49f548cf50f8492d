"""Tensor2tensor's vocabularies in a graph, against those in Python."""

import random
import sys

import pytest
import tensorflow as tf

from t2t_lite.text import any_vocabulary, t2t_vocabulary, text_files

ESCAPES = "\\_u;0123456789"
# "<pad>" can be written in a text too: tensor2tensor takes it for its PAD.
SMALL = ["<pad>", "<EOS>", *ESCAPES, *"<>padEOSbc n", "ab", "abc_", "ab ", "\\u", "10;", "ab", '"']
# What cuts and escapes have to do with.
CHARACTERS = 'ab c_\\u;109<pad>E\t\n\0"\u00e9\u3000\u2028\u0661\u4e00\u00bd\u0301\U0001f600\uffff'


@pytest.fixture(scope="module")
def small():
    lines = [f"'{piece}'" for piece in SMALL]
    return t2t_vocabulary.SubwordVocabulary("\n".join(lines).encode())


@pytest.fixture(scope="module")
def tokenizer(small):
    return small.tokenizer()


def _ids(tokenizer, texts):
    return tokenizer.tokenize(tf.constant([text.encode() for text in texts])).to_list()


def _texts(tokenizer, rows):
    ids = tf.ragged.constant(rows, dtype=tf.int32, ragged_rank=1).to_tensor()
    return [text.decode() for text in tokenizer.detokenize(ids).numpy()]


def test_a_text_is_cut_as_by_hand(small, tokenizer):
    (ids,) = _ids(tokenizer, ["abcab  ab é_"])
    # "é" is a letter, "_" is none: each is a run, and the space between two runs is left out.
    pieces = ["ab", "c", "ab", "_", " ", " ", "_", "ab", "_", "\\", "2", "3", "3", ";", "_"]
    assert [small.piece(i) for i in ids] == [*pieces, "\\u", "_"]


def test_any_text_is_cut_as_in_python(small, tokenizer):
    drawn = random.Random(1)
    texts = ["".join(drawn.choices(CHARACTERS, k=drawn.randint(0, 12))) for _ in range(1_500)]
    rows = _ids(tokenizer, texts)
    assert rows == small.encode_batch(texts)
    assert _texts(tokenizer, rows) == [small.decode(row) for row in rows]


def test_any_ids_are_spelt_as_in_python(small, tokenizer):
    drawn = random.Random(2)
    tokens = [-1, *range(len(SMALL) + 2)]
    rows = [drawn.choices(tokens, k=drawn.randint(0, 20)) for _ in range(1_500)]
    assert _texts(tokenizer, rows) == [small.decode(row) for row in rows]


def test_a_space_that_is_not_in_the_alphabet_is_left_out_too():
    lines = [f"'{piece}'" for piece in ["<pad>", "<EOS>", *ESCAPES, *"<>padEOS"]]
    vocab = t2t_vocabulary.SubwordVocabulary("\n".join(lines).encode())
    texts = ["a d", " a", "a ", "a  d", " ", "a d a "]
    assert _ids(vocab.tokenizer(), texts) == vocab.encode_batch(texts)
    assert "".join(map(vocab.piece, vocab.encode("a "))) == "a_\\32;_"


def test_letters_are_pythons(small, tokenizer):
    points = [i for i in range(sys.maxunicode + 1) if not 0xD800 <= i < 0xE000]
    texts = [f"a{chr(i)}b" for i in random.Random(1).sample(points, 5_000)]
    assert _ids(tokenizer, texts) == small.encode_batch(texts)


def test_an_escaped_number_that_is_no_character(small, tokenizer):
    texts = ["\\1114112;", "\\55296;", "\\99999999999999999999;", "\\0065;", "\\;", "\\;5", "\\"]
    pieces = {piece: i for i, piece in enumerate(SMALL)}
    rows = [[pieces[c] for c in text] for text in texts]
    expected = ["\u3013", "\u3013", "\u3013", "A", "\\;", "\\;5", "\\"]
    assert [small.decode(row) for row in rows] == expected
    assert _texts(tokenizer, rows) == expected


def test_no_text_at_all(tokenizer):
    assert _ids(tokenizer, [""]) == [[]]
    assert tokenizer.tokenize(tf.constant([], tf.string)).to_list() == []
    assert _texts(tokenizer, [[]]) == [""]
    assert tokenizer.detokenize(tf.zeros([0, 3], tf.int32)).shape == [0]


@pytest.mark.parametrize("unknown", [b"UNK\n", b""])
def test_tokens_are_those_between_blanks(unknown):
    vocab = t2t_vocabulary.TokenVocabulary(b"<pad>\n<EOS>\nthe\nWel@@\nt\n" + unknown)
    tokenizer = vocab.tokenizer()
    texts = [" the\u2003 Wel@@\tt ", "", " \n"]
    assert _ids(tokenizer, texts) == vocab.encode_batch(texts) == [[2, 3, 4], [], []]
    assert _ids(tokenizer, ["the x t"]) == [[2, 5, 4] if unknown else [2, 4]]
    assert _texts(tokenizer, [[0, 2, 3, 900, 4, 1, 2], [], [4]]) == ["the Wel@@ t", "", "t"]


CORPORA = {
    "multi30k": "train.de",
    "tatoeba": "train.en-fr.fr",
    "newstest": "newstest2012.en-fr.fr",
    "libreoffice_help": "train.en-de.de",
}


@pytest.mark.parametrize("size", ["8192", "32768"])
@pytest.mark.parametrize(("folder", "name"), CORPORA.items(), ids=CORPORA)
def test_real_text_is_cut_as_in_python(shared_data, folder, name, size):
    (path,) = (shared_data / "t2t").rglob(f"vocab.*.{size}.subwords")
    vocab = any_vocabulary.load(path)
    tokenizer = vocab.tokenizer()
    path = text_files.find(shared_data / folder, name)
    assert path is not None
    lines = [*text_files.read_lines(path)][:300]
    rows = _ids(tokenizer, lines)
    assert rows == vocab.encode_batch(lines)
    assert _texts(tokenizer, rows) == lines
