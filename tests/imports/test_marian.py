"""Models of Marian, against its layers in NumPy, and what cannot be imported."""

from typing import Any

import foreign_numbers
import marian_numbers
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.bin import import_model
from t2t_lite.decode import translator
from t2t_lite.imports import imported, marian
from t2t_lite.text import marian_yaml


@pytest.mark.parametrize(
    "kind",
    [{}, {"pre_norm": True}, {"relu": True}]
    + [{"tied": tied} for tied in ("target", "none", "none, early")],
    ids=str,
)
def test_logits_are_marians(tmp_path, kind):
    theirs = marian_numbers.write(tmp_path, **kind)
    read = marian.read(tmp_path)
    imported.write(read, tmp_path / "run")
    model = translator.Translator.from_output_dir(tmp_path / "run").models[0]
    source, target = [5, 9, 2, 30, 1, 0], [7, 3, 40, 1, 0]
    expected = theirs.logits(source, target)
    rows = [[i + 1 for i in ids] for ids in (source, target)]  # PAD is in front
    padded = tf.constant([[*rows[0], 0, 0]]), tf.constant([rows[1]])
    found = model(*padded)[0].numpy()
    np.testing.assert_allclose(found[:, 1:], expected, atol=2e-5)
    # PAD has a probability of 0.
    np.testing.assert_allclose(
        tf.nn.log_softmax(found)[:, 1:], tf.nn.log_softmax(expected), atol=2e-5
    )
    assert (found[:, 0] < -90).all()


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    marian_numbers.write(folder)
    flags = ["--from=marian", f"--model={folder}", f"--output_dir={folder}/run"]
    assert import_model.main(["t2t-lite-import", *flags]) == 0
    return folder / "run"


def test_each_side_is_cut_by_its_own_model(run_dir):
    vocab = translator.Translator.from_output_dir(run_dir).vocabulary
    assert marian_yaml.UNK not in [vocab.pieces[i] for i in vocab.encode("a dog runs")]
    assert vocab.decode(vocab.targets.encode("A DOG  RUNS")) == "A DOG RUNS"
    assert set(vocab.encode("Q")) <= {vocab.encode("x Q")[0], 2}
    assert [vocab.pieces[i] for i in range(3)] == ["<pad>", "</s>", "<unk>"]


def test_vocab_yml_is_read_by_hand():
    text = (
        '</s>: 0\n"<unk>": 1\nyes: 2\n~: 3\n1.5: 4\n"\\"": 5\n\'\'\'\': 6\n: : 7\n"\\u2581a": 8\n'
    )
    text += '? abc\n: 9\n\u2581: 10\n"\\x85": 11\n#: 12\n'
    expected = ["</s>", "<unk>", "yes", "~", "1.5", '"', "'", ":", "\u2581a", "abc", "\u2581"]
    expected += ["\x85", "#"]
    spaces = ["\xa0", "\u2009", "\u2028", "\u3000", "\x1c"]  # as Marian writes them, unquoted
    text += "".join(f"{space}: {13 + i}\n" for i, space in enumerate(spaces)) + "\n  \n"
    assert marian_yaml.ordered(marian_yaml.read(text)) == [*expected, *spaces]
    for wrong in ("a: b\n", "a\n", ": 5\n", "</s>: 0\n<unk>: 2\n", "a: 0\nb: 1\n"):
        with pytest.raises(errors.UserError, match="vocabulary"):
            marian_yaml.ordered(marian_yaml.read(wrong))


CANNOT = {
    "type: s2s": "type: s2s",
    "transformer-decoder-autoreg: rnn": "transformer-decoder-autoreg: rnn",
    "lemma-dim-emb: 64": "lemma-dim-emb: 64",
    "transformer-ffn-activation: gelu": "activation is 'gelu'",
    "transformer-train-position-embeddings: true": "position-embeddings: true",
    "transformer-postprocess: nda": "another order of norms",
    "transformer-heads: 0": "transformer-heads is not a number",
    "enc-depth: 3": "weights have num_encoder_layers=2, its settings say 3",
    "dim-emb: 16": "weights have d_model=8, its settings say 16",
    "transformer-dim-ffn: 16": "weights have d_ff=12, its settings say 16",
    "right-left: true": "right-left: true",
}


@pytest.mark.parametrize(("setting", "message"), CANNOT.items(), ids=CANNOT)
def test_what_cannot_be_imported_is_named_in_a_line(refused, tmp_path, setting, message):
    name, _, value = setting.partition(": ")
    marian_numbers.write(tmp_path, **{name: value})
    assert message in refused("marian")


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "pickle", "objects", "int8", "extra"])
def test_a_damaged_or_hostile_file_gives_one_line(refused, tmp_path, damage):
    marian_numbers.write(tmp_path)
    path = tmp_path / "model.npz"
    data = path.read_bytes()
    touch = np.array([foreign_numbers.Call(open, f"{tmp_path}/hacked", "w")], object)
    arrays: dict[str, Any] = dict(np.load(path))
    if damage in ("cut", "empty", "text"):
        path.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "text": b"hello"}[damage])
    elif damage == "pickle":
        touch.dump(path)
    else:
        changes = {
            "objects": {"Wemb": touch},
            "int8": {"Wemb": arrays["Wemb"].astype(np.int8)},
            "extra": {"encoder_bi_cell_W": np.ones([2, 2], np.float32)},
        }
        np.savez(path, **(arrays | changes[damage]))
    message = "cannot be imported" if damage in ("int8", "extra") else "cannot read"
    assert message in refused("marian", path)
    assert not (tmp_path / "hacked").exists()


def test_a_vocabulary_of_another_model_is_refused(tmp_path):
    marian_numbers.write(tmp_path)
    with (tmp_path / "vocab.yml").open("a") as file:
        file.write("more: " + str(len((tmp_path / "vocab.yml").read_text().split("\n")) - 1))
    with pytest.raises(errors.UserError, match="entries and the embedding"):
        marian.read(tmp_path)
    (tmp_path / "decoder.yml").write_text("beam-size: 6\n")
    (tmp_path / "vocab.yml").write_text("a\n")
    with pytest.raises(errors.UserError, match=r"vocab.yml: a vocabulary's line"):
        marian.read(tmp_path)
    (tmp_path / "vocab.yml").unlink()
    with pytest.raises(errors.UserError, match="entries and the embedding"):  # of the .spm alone
        marian.read(tmp_path)
    (tmp_path / "source.spm").write_bytes(b"no model")
    for vocab, message in (
        (None, "no vocabularies"),
        ("vocab.txt", "give the vocabulary as --vocab"),
        ("none.spm", "no vocabulary file"),
        ("source.bpe", "cut by BPE .source.bpe"),
    ):
        with pytest.raises(errors.UserError, match=message):
            marian.read(tmp_path, vocab=vocab)


def test_the_search_of_decoder_yml_carries_over_or_is_said(tmp_path):
    marian_numbers.write(tmp_path)
    assert marian.read(tmp_path).hparams.imported.decoding == ""
    text = (
        "models:\n  - model.npz\nbeam-size: 6\nnormalize: 0.6\nword-penalty: 1\nallow-unk: false\n"
    )
    (tmp_path / "model.npz.decoder.yml").write_text(text)
    read = marian.read(tmp_path)
    assert (read.hparams.beam_size, read.hparams.alpha) == (6, 0.6)
    assert read.hparams.imported.decoding == "length_penalty=power,strict_ends=true"
    (remark,) = read.remarks
    assert "word-penalty: 1 does not carry over" in remark
    (tmp_path / "model.npz.decoder.yml").write_text("beam-size: 6\n")
    assert marian.read(tmp_path).hparams.alpha == 0


def test_other_forms_of_a_model_are_named(refused, tmp_path):
    marian_numbers.write(tmp_path)
    for path in tmp_path.glob("*.spm"):
        path.rename(path.with_suffix(".bpe"))
    assert "its texts are cut by BPE" in refused("marian")
    (tmp_path / "model.npz").rename(tmp_path / "model.bin")
    assert "model.bin is in the form that marian-conv writes" in refused("marian")
    (tmp_path / "config.json").write_text("{}")
    assert "give --from=opus_mt" in refused("marian")
