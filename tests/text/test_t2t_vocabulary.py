"""Tensor2tensor's vocabularies: what tensor2tensor itself encoded, and a graph as Python."""

import random
import sys

import pytest
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.data import shards
from t2t_lite.text import any_vocabulary, t2t_vocabulary, text_files, vocabulary

ESCAPES = "\\_u;0123456789"
# "<pad>" can be written in a text too: tensor2tensor takes it for its PAD.
SMALL = ["<pad>", "<EOS>", *ESCAPES, *"<>padEOSbc n", "ab", "abc_", "ab ", "\\u", "10;", "ab", '"']
# What cuts and escapes have to do with.
CHARACTERS = 'ab c_\\u;109<pad>E\t\n\0"\u00e9\u3000\u2028\u0661\u4e00\u00bd\u0301\U0001f600\uffff'


@pytest.fixture(scope="module")
def small():
    lines = [f"'{piece}'" for piece in SMALL]
    return t2t_vocabulary.SubwordVocabulary("\n".join(lines).encode())


def _ids(tokenizer, texts):
    return tokenizer.tokenize(tf.constant([text.encode() for text in texts])).to_list()


def _texts(tokenizer, rows):
    ids = tf.ragged.constant(rows, dtype=tf.int32, ragged_rank=1).to_tensor()
    return [text.decode() for text in tokenizer.detokenize(ids).numpy()]


def test_a_text_is_cut_as_by_hand(small):
    (ids,) = _ids(small.tokenizer(), ["abcab  ab é_"])
    # "é" is a letter, "_" is none: each is a run, and the space between two runs is left out.
    pieces = ["ab", "c", "ab", "_", " ", " ", "_", "ab", "_", "\\", "2", "3", "3", ";", "_"]
    assert [small.pieces[i] for i in ids] == [*pieces, "\\u", "_"]


def test_any_text_and_any_ids_are_read_as_in_python(small):
    tokenizer = small.tokenizer()
    drawn = random.Random(1)
    texts = ["".join(drawn.choices(CHARACTERS, k=drawn.randint(0, 12))) for _ in range(1_500)]
    points = [i for i in range(sys.maxunicode + 1) if not 0xD800 <= i < 0xE000]
    texts += [f"a{chr(i)}b" for i in drawn.sample(points, 5_000)]  # what is a letter
    rows = _ids(tokenizer, texts)
    assert rows == small.encode_batch(texts)
    tokens = [-1, *range(len(SMALL) + 2)]
    rows += [drawn.choices(tokens, k=drawn.randint(0, 20)) for _ in range(1_500)]
    assert _texts(tokenizer, rows) == [small.decode(row) for row in rows]
    assert tokenizer.tokenize(tf.constant([], tf.string)).to_list() == []
    assert tokenizer.detokenize(tf.zeros([0, 3], tf.int32)).shape == [0]


def test_an_escaped_number_that_is_no_character(small):
    texts = ["\\1114112;", "\\55296;", "\\99999999999999999999;", "\\0065;", "\\;", "\\;5", "\\"]
    pieces = {piece: i for i, piece in enumerate(SMALL)}
    rows = [[pieces[c] for c in text] for text in texts]
    expected = ["\u3013", "\u3013", "\u3013", "A", "\\;", "\\;5", "\\"]
    assert [small.decode(row) for row in rows] == expected
    assert _texts(small.tokenizer(), rows) == expected


@pytest.mark.parametrize("unknown", [b"UNK\n", b""])
def test_tokens_are_those_between_blanks(unknown):
    vocab = t2t_vocabulary.TokenVocabulary(b"<pad>\n<EOS>\nthe\nWel@@\nt\n" + unknown)
    tokenizer = vocab.tokenizer()
    texts = [" the\u2003 Wel@@\tt ", "", " \n"]
    assert _ids(tokenizer, texts) == vocab.encode_batch(texts) == [[2, 3, 4], [], []]
    assert _ids(tokenizer, ["the x t"]) == [[2, 5, 4] if unknown else [2, 4]]
    assert _texts(tokenizer, [[0, 2, 3, 900, 4, 1, 2], [], [4]]) == ["the Wel@@ t", "", "t"]
    assert vocab.decode([0, 2, 3, 900, 4, 1, 2]) == "the Wel@@ t"
    if unknown:
        assert vocab.encode("the x t") == [2, 5, 4]
    else:
        with pytest.raises(errors.UserError, match="neither 'x' nor UNK"):
            vocab.encode("the x t")


@pytest.mark.parametrize("token", [b"km", "5\u00a0km".encode()])
def test_white_space_within_a_token_does_not_separate(token):
    vocab = t2t_vocabulary.TokenVocabulary(b"<pad>\n<EOS>\n" + token + b"\nUNK\n")
    expected = [3, 2] if token == b"km" else [2]
    assert vocab.encode("5\u00a0km") == expected
    assert _ids(vocab.tokenizer(), ["5\u00a0km", "a\tb"]) == [expected, [3, 3]]


ODD = ["Hallo, Welt_\\ ☃", "  two  spaces ", " x", "x ", "\n", "", "a_b\\u1;2", "日本 3a"]


@pytest.mark.parametrize("size", ["8192", "32768"])
@pytest.mark.parametrize(
    ("folder", "name"),
    [("newstest", "newstest2012.en-fr.fr"), ("libreoffice_help", "train.en-de.de")],
)
def test_real_text_is_cut_as_in_python(shared_data, folder, name, size):
    (path,) = (shared_data / "t2t").rglob(f"vocab.*.{size}.subwords")
    vocab = any_vocabulary.load(path)
    tokenizer = vocab.tokenizer()
    path = shared_data / folder / f"{name}.gz"
    lines = [*ODD, *text_files.read_lines(path)][:300]
    rows = _ids(tokenizer, lines)
    assert rows == vocab.encode_batch(lines)
    assert _texts(tokenizer, rows) == lines


@pytest.mark.parametrize("split", ["train", "dev"])
def test_encode_of_decode_is_what_t2t_wrote(shared_data, split):
    folder, name = shared_data / "t2t" / "data", "translate_ende_wmt32k"
    vocab = any_vocabulary.load(folder / f"vocab.{name}.32768.subwords")
    examples = list(shards.read_examples([folder / shards.name(name, split, 0, 1)]))
    assert len(examples) == 10
    for ids in (one[side] for one in examples for side in ("inputs", "targets")):
        assert [*vocab.encode(vocab.decode(ids)), vocabulary.EOS_ID] == ids


def test_lines_may_end_as_on_windows(tmp_path):
    contents = {"vocab.x.8": b"<pad>\n<EOS>\nthe\n", "y.subwords": b"'<pad>_'\n'<EOS>_'\n'the_'\n"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content.replace(b"\n", b"\r\n"))
        assert any_vocabulary.load(tmp_path / name).decode([2]) == "the"
