"""Tensor2tensor's vocabularies, against what tensor2tensor itself encoded."""

import pytest

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


def test_decode_of_encode_is_the_text(vocab):
    texts = ["Hallo, Welt_\\ ☃", "  two  spaces ", " x", "x ", "\n", "", "a_b\\u1;2", "日本 3a"]
    assert [vocab.decode(ids) for ids in vocab.encode_batch(texts)] == texts


TOKENS = b"<pad>\n<EOS>\nthe\nWel@@\nt\n,\nUNK\n"


def test_lines_may_end_as_on_windows(tmp_path):
    for name, content in [("vocab.x.8", TOKENS), ("y.subwords", b"'<pad>_'\n'<EOS>_'\n'the_'\n")]:
        (tmp_path / name).write_bytes(content.replace(b"\n", b"\r\n"))
        assert any_vocabulary.load(tmp_path / name).decode([2]) == "the"
