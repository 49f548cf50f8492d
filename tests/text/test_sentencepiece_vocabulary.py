"""The vocabulary loses nothing, and its graph form agrees with it."""

import numpy as np
import pytest

from t2t_lite import errors
from t2t_lite.text import sentencepiece_vocabulary, vocabulary

CORPUS = [
    "Two dogs are playing in the snow.",
    "Zwei Hunde spielen im Schnee.",
    "Der Mann, der lacht, trägt einen grünen Hut.",
    "The man who laughs wears a green hat.",
] * 5
ODD = [
    "",
    " ",
    "  two  spaces ",
    "tab\tand\nnewline\r\x0c\x00",
    "☃ 🎉👩‍👩‍👧 \u2028 ﬁ Å",
    "x" * 10_000,
    "日本語とドイツ語",
    "<pad></s><unk><0x41>",
]


def _trained(*args, **kwargs):
    model = sentencepiece_vocabulary.train(*args, **kwargs)
    assert sentencepiece_vocabulary.train(*args, **kwargs) == model  # whenever it is trained
    return sentencepiece_vocabulary.SentencePieceVocabulary(model)


@pytest.fixture(scope="module")
def vocab():
    return _trained(CORPUS, 340)


def test_ids_are_where_all_vocabularies_have_them(vocab):
    assert (vocab.size, vocab.pieces[:3]) == (340, ["<pad>", "</s>", "<unk>"])
    assert vocab.piece(vocab.space_id) == vocabulary.SPACE


@pytest.mark.parametrize("text", [*CORPUS[:4], *ODD])
def test_decode_of_encode_is_the_text(vocab, text):
    ids = vocab.encode(text)
    assert vocab.decode(ids) == text
    special = {vocabulary.PAD_ID, vocabulary.EOS_ID, vocabulary.UNK_ID}
    assert not special.intersection(ids)


def test_round_trip_on_real_text(vocab, shared_data):
    from t2t_lite.text import text_files

    lines = list(text_files.read_lines(shared_data / "newstest" / "newstest2013.en-fr.fr.gz"))
    assert [vocab.decode(ids) for ids in vocab.encode_batch(lines)] == lines


@pytest.mark.parametrize(("text", "comes_back"), [("a\u2581b", "a b"), ("a\ud800b", "a\ufffdb")])
def test_what_is_lost_is_as_documented(vocab, text, comes_back):
    assert vocab.decode(vocab.encode(text)) == comes_back


def test_decode_stops_at_eos_and_clips(vocab):
    ids = vocab.encode("hat")
    assert vocab.decode([0, *ids, 0, 1, *ids]) == "hat"
    assert vocab.decode([*ids, 340]) == "hat\ufffd"
    assert vocab.decode([-1]) == "\ufffd"


def test_unknown_characters_are_spelt_in_bytes(vocab):
    ids = vocab.encode("☃")
    assert [token - vocab.byte_ids.start for token in ids] == list("☃".encode())


def test_a_small_corpus_gets_the_largest_vocabulary_it_supports():
    size = _trained(["ab ab ab"], 4000).size
    # 3 control symbols, 256 bytes, "a", "b", the space, "ab", " ab"; perhaps " a"
    assert 263 <= size <= 265


def test_symbols_are_one_id_each():
    vocab = _trained(CORPUS, 340, symbols=["(NP", ")"])
    assert vocab.encode("(NP)(NP)") == [3, 4, 3, 4]
    assert vocab.decode([3, 4]) == "(NP)"


def test_symbols_take_the_space_before_them_and_the_longest_wins():
    symbols = [" (S", " (SBAR", " )S", " ,", ' "', " ''"]
    vocab = _trained([*CORPUS, "a (S, b"], 340, symbols=symbols)
    text = " (SBAR (S , \" '' )S"
    assert [vocab.piece(token) for token in vocab.encode(text)] == [
        *("▁(SBAR", "▁(S", "▁,", '▁"', "▁''", "▁)S")
    ]
    assert vocab.decode(vocab.encode(text)) == text
    assert len(vocab.encode("(S")) > 1  # without the space


def test_text_ends_at_eos_and_has_no_padding():
    assert list(vocabulary.text_ids(np.array([0, 5, 6, 0, 1, 7]))) == [5, 6]
    assert list(vocabulary.text_ids([5, -1])) == [5, -1]


@pytest.mark.parametrize(
    ("corpus", "size", "message"),
    [
        ([], 400, "empty"),
        ([" "], 400, "empty"),
        (CORPUS, 200, "at least 260"),
        (["".join(map(chr, range(0x4E00, 0x5000)))], 300, "at least"),
    ],
)
def test_impossible_vocabularies_are_refused(corpus, size, message):
    with pytest.raises(errors.UserError, match=message):
        sentencepiece_vocabulary.train(corpus, size)


def test_graph_tokenizer_agrees(vocab):
    texts = [*CORPUS[:4], *ODD]
    tokenizer = vocab.tokenizer()
    in_graph = tokenizer.tokenize(texts)
    assert in_graph.to_list() == vocab.encode_batch(texts)
    assert [text.decode() for text in tokenizer.detokenize(in_graph).numpy()] == texts
