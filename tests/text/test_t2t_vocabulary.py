"""Tensor2tensor's vocabularies, against what tensor2tensor itself encoded."""

import pytest

from t2t_lite import errors
from t2t_lite.data import shards
from t2t_lite.text import any_vocabulary, t2t_vocabulary, vocabulary

FILE = "vocab.translate_ende_wmt32k.32768.subwords"


@pytest.fixture(scope="module")
def vocab(shared_data):
    loaded = any_vocabulary.load(shared_data / "t2t" / "data" / FILE)
    assert isinstance(loaded, t2t_vocabulary.SubwordVocabulary)
    return loaded


@pytest.mark.parametrize("split", ["train", "dev"])
def test_encode_of_decode_is_what_t2t_wrote(vocab, shared_data, split):
    name = shards.name("translate_ende_wmt32k", split, 0, 1)
    examples = list(shards.read_examples([shared_data / "t2t" / "data" / name]))
    assert len(examples) == 10
    for ids in (one[side] for one in examples for side in ("inputs", "targets")):
        assert [*vocab.encode(vocab.decode(ids)), vocabulary.EOS_ID] == ids


@pytest.mark.parametrize(
    "text", ["Hallo, Welt_\\ ☃", "  two  spaces ", " x", "x ", "\n", "", "a_b\\u1;2", "日本 3a"]
)
def test_decode_of_encode_is_the_text(vocab, text):
    assert vocab.decode(vocab.encode(text)) == text


def test_subtokens_are_the_longest_from_the_left():
    lines = ["'<pad>_'", "'<EOS>_'", "'ab'", "'abc'", "'_'", "'a'", "'b'", "'c'", "'d_'"]
    escapes = [f"'{c}'" for c in "\\u;0123456789"]
    vocab = t2t_vocabulary.SubwordVocabulary("\n".join(lines + escapes).encode())
    assert [vocab.piece(i) for i in vocab.encode("abcd ab")] == ["abc", "d_", "ab", "_"]
    assert vocab.size == 22
    # "é" is not in the alphabet: its number is spelt
    assert "".join(vocab.piece(i) for i in vocab.encode("é")) == "\\233;_"


TOKENS = b"<pad>\n<EOS>\nthe\nWel@@\nt\n,\nUNK\n"


def test_tokens_are_those_between_blanks(tmp_path):
    path = tmp_path / "vocab.bpe.32000"
    path.write_bytes(TOKENS)
    vocab = any_vocabulary.load(path)
    assert isinstance(vocab, t2t_vocabulary.TokenVocabulary)
    assert vocab.encode("the  Wel@@ t, Wel@@ t") == [2, 3, 6, 3, 4]
    assert vocab.decode([0, 2, 3, 4, 900, 1, 5]) == "the Wel@@ t"
    assert (vocab.size, vocab.piece(3)) == (7, "Wel@@")
    assert vocab.encode("") == []
    without = t2t_vocabulary.TokenVocabulary(TOKENS.removesuffix(b"UNK\n"))
    assert (without.size, without.encode("the")) == (6, [2])
    with pytest.raises(errors.UserError, match="neither 'a' nor UNK"):
        without.encode("the a")


def test_lines_may_end_as_on_windows(tmp_path):
    for name, content in [("vocab.x.8", TOKENS), ("y.subwords", b"'<pad>_'\n'<EOS>_'\n'the_'\n")]:
        (tmp_path / name).write_bytes(content.replace(b"\n", b"\r\n"))
        assert any_vocabulary.load(tmp_path / name).decode([2]) == "the"
