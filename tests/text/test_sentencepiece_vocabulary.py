"""The vocabulary loses nothing, and its graph form agrees with it."""

import pytest

from t2t_lite import errors
from t2t_lite.text import sentencepiece_vocabulary, text_files, vocabulary

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
    assert vocab.pieces[vocab.space_id] == vocabulary.SPACE
    ids = vocab.encode("hat")
    assert vocab.decode([0, *ids, 0, 1, *ids]) == "hat"
    assert vocab.decode([*ids, 340]) == "hat\ufffd"
    assert vocab.decode([-1]) == "\ufffd"
    # what is lost
    assert [vocab.decode(vocab.encode(text)) for text in ("a\u2581b", "a\ud800b")] == [
        "a b",
        "a\ufffdb",
    ]
    # unknown characters are spelt in bytes
    assert [token - vocab.byte_ids.start for token in vocab.encode("☃")] == list("☃".encode())


def test_decode_of_encode_is_the_text_in_a_graph_too(vocab, shared_data):
    lines = text_files.read_lines(shared_data / "newstest" / "newstest2013.en-fr.fr.gz")
    texts = [*CORPUS[:4], *ODD, *lines]
    rows = vocab.encode_batch(texts)
    assert [vocab.decode(row) for row in rows] == texts
    special = {vocabulary.PAD_ID, vocabulary.EOS_ID, vocabulary.UNK_ID}
    assert all(special.isdisjoint(row) for row in rows)
    tokenizer = vocab.tokenizer()
    in_graph = tokenizer.tokenize(texts)
    assert in_graph.to_list() == rows
    assert [text.decode() for text in tokenizer.detokenize(in_graph).numpy()] == texts


def test_a_small_corpus_gets_the_largest_vocabulary_it_supports():
    size = _trained(["ab ab ab"], 4000).size
    # 3 control symbols, 256 bytes, "a", "b", the space, "ab", " ab"; perhaps " a"
    assert 263 <= size <= 265


def test_symbols_are_one_id_take_the_space_before_them_and_the_longest_wins():
    symbols = [" (S", " (SBAR", " )S", " ,", ' "', " ''"]
    vocab = _trained([*CORPUS, "a (S, b"], 340, symbols=symbols)
    text = " (SBAR (S , \" '' )S"
    assert [vocab.pieces[token] for token in vocab.encode(text)] == [
        *("▁(SBAR", "▁(S", "▁,", '▁"', "▁''", "▁)S")
    ]
    assert vocab.decode(vocab.encode(text)) == text
    assert len(vocab.encode("(S")) > 1  # without the space
    assert _trained(CORPUS, 340, symbols=["(NP", ")"]).encode("(NP)(NP)") == [3, 4, 3, 4]


@pytest.mark.parametrize(
    ("corpus", "size", "message"),
    [
        ([], 400, "empty"),
        (CORPUS, 200, "at least 260"),
        (["".join(map(chr, range(0x4E00, 0x5000)))], 300, "at least"),
    ],
)
def test_impossible_vocabularies_are_refused(corpus, size, message):
    with pytest.raises(errors.UserError, match=message):
        sentencepiece_vocabulary.train(corpus, size)
