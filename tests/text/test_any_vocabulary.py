"""Every kind of vocabulary by one interface, and without TensorFlow."""

import json
import subprocess
import sys

import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors
from t2t_lite.text import any_vocabulary

PIECES = ["<pad>", "</s>", "<unk>", "a", "dog", "do@@", "g", "runs"]
SUBWORDS = ["<pad>_", "<EOS>_", "a_", "dog", "_", "runs_", " ", *"\\u;0123456789"]
FILES = {
    "vocab.toy.300.model": lambda: tiny_run.subwords().model_bytes,
    "vocab.subwords": lambda: "".join(f"'{piece}'\n" for piece in SUBWORDS).encode(),
    "vocab.bpe.32000": lambda: b"<pad>\n<EOS>\na\ndog\nruns\n",
    "dict.pieces": lambda: json.dumps({"source": {"pieces": PIECES}}).encode(),
    "codes.pieces": lambda: json.dumps(
        {
            "source": {"pieces": PIECES, "codes": "#version: 0.2\nd o\nr u\nru n\nrun s</w>\n"},
            "target": {"pieces": PIECES},
        }
    ).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_each_kind_has_the_same_interface(tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name]())
    vocab = any_vocabulary.load(tmp_path / name)
    ids = vocab.encode("a dog runs")
    assert vocab.encode_batch(["a dog runs", ""]) == [ids, []]
    assert vocab.decode([0, *ids, 1, *ids]) == "a dog runs"
    assert set(ids) <= set(range(vocab.size)) - set(vocab.special_ids)
    assert vocab.targets.targets is vocab.targets
    again = any_vocabulary.from_bytes(vocab.model_bytes)
    assert (type(again), again.fingerprint) == (type(vocab), vocab.fingerprint)
    tokenizer = vocab.tokenizer()
    assert tokenizer.tokenize(["a dog runs", ""]).to_list() == [ids, []]
    assert tokenizer.detokenize(tf.constant([ids])).numpy() == [b"a dog runs"]


def test_no_kind_needs_tensorflow(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content())
    code = (
        "import sys\n"
        "from t2t_lite.text import any_vocabulary\n"
        "for path in sys.argv[1:]:\n"
        "    vocab = any_vocabulary.load(path)\n"
        "    assert vocab.decode(vocab.encode('a dog runs')) == 'a dog runs'\n"
        "sys.exit('tensorflow' in sys.modules)"
    )
    paths = [tmp_path / name for name in FILES]
    subprocess.run([sys.executable, "-c", code, *paths], check=True, timeout=60)


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(errors.UserError, match="no vocabulary file"):
        any_vocabulary.load(tmp_path / "vocab.model")
    for content in (b"", b"text", b"\n\n", b"'<pad>_'\n\xff\xfe\n", b"<pad>\n<EOS>\n\xff"):
        (tmp_path / "vocab.x.subwords").write_bytes(content)
        with pytest.raises(errors.UserError, match=r"vocab.x.subwords is not a vocabulary"):
            any_vocabulary.load(tmp_path / "vocab.x.subwords")
    (tmp_path / "vocab.x.subwords").write_bytes(b"'<pad>'\n'<EOS>'\n'a\0_'\n")
    with pytest.raises(errors.UserError, match="NUL"):
        any_vocabulary.load(tmp_path / "vocab.x.subwords")
