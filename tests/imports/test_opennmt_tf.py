"""Models of OpenNMT-tf, against its layers in NumPy, and what cannot be imported."""

import io
from typing import Any

import exports
import foreign_numbers
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.bin import import_model
from t2t_lite.decode import translator
from t2t_lite.imports import imported, opennmt_tf

SENTENCES = ["a dog runs in the park", "the man sees a red house", "two dogs sleep"] * 20


@pytest.fixture(scope="module")
def spm():
    model, settings = io.BytesIO(), {"vocab_size": 34, "hard_vocab_limit": False, "num_threads": 1}
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(SENTENCES), model_writer=model, minloglevel=2, **settings
    )
    return model.getvalue()


def _pieces(spm):
    loaded = sentencepiece.SentencePieceProcessor(model_proto=spm)
    return [loaded.IdToPiece(i) for i in range(3, loaded.GetPieceSize())]


@pytest.mark.parametrize(
    "kind",
    [{}, {"pre_norm": False}, {"shared": False}, {"swish": True}, {"softmax_bias": False}],
    ids=str,
)
def test_logits_are_opennmt_tfs(tmp_path, kind):
    model = foreign_numbers.write_opennmt_tf(tmp_path, list("abcdefgh"), **kind)
    imported.write(opennmt_tf.read(tmp_path), tmp_path / "run")
    found = translator.Translator.from_output_dir(tmp_path / "run").models[0]
    source, target = [5, 9, 11, 3], [7, 4, 11, 2]
    # <blank>, </s>, <unk>, <s> are 0, 2, 11, 1 there; the input's </s> is hidden.
    order = [0, 2, 11, 1, *range(3, 11)]
    ids = [[order.index(i) for i in side] for side in (source, target)]
    padded = tf.constant([[*ids[0], 1, 0, 0]])
    logits = found(padded, tf.constant([ids[1]]))[0].numpy()
    np.testing.assert_allclose(logits, model.logits(source, target)[:, order], atol=2e-5)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory, spm):
    folder = tmp_path_factory.mktemp("opennmt")
    foreign_numbers.write_opennmt_tf(folder, _pieces(spm))
    (folder / "spm.model").write_bytes(spm)
    flags = ["--from=opennmt_tf", f"--model={folder}", f"--output_dir={folder}/run"]
    assert import_model.main(["t2t-lite-import", *flags]) == 0
    return folder / "run"


TEXTS = ["a dog runs", " the  man\tsees ☃", "", "dogs, two"]


def test_an_output_dir_cuts_texts_by_its_model(run_dir, spm):
    model = translator.Translator.from_output_dir(run_dir)
    assert model.models[0].hparams.num_heads == 2
    pieces = [model.vocabulary.pieces[i] for i in model.vocabulary.encode("two dogs")]
    cutter = sentencepiece.SentencePieceProcessor(model_proto=spm)
    assert pieces == cutter.Encode("two dogs", out_type=str)
    assert [model.vocabulary.pieces[i] for i in range(4)] == ["<blank>", "</s>", "<unk>", "<s>"]


@pytest.mark.slow
def test_its_export_takes_text(run_dir, tmp_path):
    exports.says_the_same(run_dir, tmp_path, TEXTS, extra_length=4, beam_size=3)


def test_an_empty_input_does_not_depend_on_its_batch(run_dir):
    model = translator.Translator.from_output_dir(run_dir, extra_length=5)
    (alone,) = model.translate([""])
    batch = model.translate(["", TEXTS[1]])
    assert batch[0].score == pytest.approx(alone.score, abs=1e-5)


def test_words_between_blanks_without_a_tokenizer(tmp_path):
    foreign_numbers.write_opennmt_tf(tmp_path, ["dog", "■s", "a", "5\u00a0km"])
    imported.write(opennmt_tf.read(tmp_path), tmp_path / "run")
    vocab = translator.Translator.from_output_dir(tmp_path / "run").vocabulary
    assert [vocab.pieces[i] for i in vocab.encode("a  dog ■s cat")] == ["a", "dog", "■s", "<unk>"]
    assert vocab.decode(vocab.encode("a dog ■s")) == "a dog ■s"
    text = "a\t5\u00a0km"
    assert vocab.decode(vocab.encode(text)) == "a 5\u00a0km"
    assert vocab.tokenizer().tokenize(tf.constant([text])).to_list() == [vocab.encode(text)]


CATALOG = 'model = lambda: models.get_model_from_catalog("{}")\n'


def test_heads_are_those_of_the_description_or_the_catalog_and_nothing_is_executed(tmp_path):
    description = tmp_path / "model_description.py"
    foreign_numbers.write_opennmt_tf(
        tmp_path, list("abcd"), description=CATALOG.format("TransformerTiny")
    )
    assert opennmt_tf._settings(tmp_path)["num_heads"] == 2
    description.write_text(f"open('{tmp_path}/hacked', 'w')\nmodel = Transformer(num_heads=4)\n")
    read = opennmt_tf.read(tmp_path)
    assert (read.hparams.num_heads, read.remarks) == (4, [])
    assert not (tmp_path / "hacked").exists()
    with pytest.raises(errors.UserError, match="--num_heads=2, its settings say 4"):
        opennmt_tf.read(tmp_path, num_heads=2)
    description.unlink()
    read = opennmt_tf.read(tmp_path, num_heads=4)
    assert read.hparams.d_k == 2
    assert "no model_description.py beside the checkpoint" in read.remarks[0]
    for num_heads, message in ((None, "how many heads"), (3, "3 heads do not divide")):
        with pytest.raises(errors.UserError, match=message):
            opennmt_tf.read(tmp_path, num_heads=num_heads)


DESCRIPTIONS = {
    CATALOG.format("LuongAttention"): "only a Transformer",
    "Transformer(num_heads=2, position_encoder_class=None)": "its positions are",
    "Transformer(num_heads=2, ffn_activation=onmt.layers.gelu)": "activation is 'gelu'",
    "Transformer(num_heads=": "is damaged",
    CATALOG.format("TransformerTiny"): "weights have d_model=8, its settings say 64",
    "Transformer(num_heads=2, ffn_inner_dim=9)": "weights have d_ff=12, its settings say 9",
    "Transformer(num_heads=2, num_layers=3)": "num_encoder_layers=2, its settings say 3",
    "Transformer(num_heads=2, num_layers=(2, 1))": "num_decoder_layers=2, its settings say 1",
    "M(SelfAttentionEncoder(num_layers=5, num_heads=2))": "encoder_layers=2, its settings say 5",
}


LAYERS = {
    "encoder.layers.0.self_attention.layer.relative_position_keys": "relative positions",
    "encoder.position_encoder.position_embedding": "learned positions",
    "decoder.layers.0.attention.1.layer.linear_keys.kernel": "several sources",
    "decoder.cell.kernel": "an RNN",
}


@pytest.mark.parametrize("name", [*DESCRIPTIONS, *LAYERS])
def test_what_cannot_be_imported_is_named_in_a_line(refused, tmp_path, name):
    ones: Any = np.ones([8, 8], np.float32)
    more = {"description": name} if name in DESCRIPTIONS else {name: ones}
    foreign_numbers.write_opennmt_tf(tmp_path, list("abcd"), **more)
    assert {**DESCRIPTIONS, **LAYERS}[name] in refused("opennmt_tf")


@pytest.mark.parametrize("damage", ["cut", "empty", "foreign"])
def test_a_damaged_checkpoint_gives_one_line(refused, tmp_path, damage):
    foreign_numbers.write_opennmt_tf(tmp_path, list("abcd"))
    index = tmp_path / "ckpt-7.index"
    data = index.read_bytes()
    if damage == "foreign":
        foreign_numbers.golden_numbers.write_tensors(tmp_path / "ckpt-7", {"x": np.ones([2])})
    else:
        index.write_bytes(data[: len(data) // 2] if damage == "cut" else b"")
    line = refused("opennmt_tf")
    assert "cannot read the checkpoint" in line or "not a checkpoint of OpenNMT-tf" in line


def test_other_vocabularies_are_refused(tmp_path):
    foreign_numbers.write_opennmt_tf(tmp_path, list("abcd"))
    path, target, spm = (tmp_path / x for x in ("vocab.txt", "target_vocab.txt", "spm.model"))
    text = path.read_text()
    for source, message in (
        (f"{text}more\n", "9 entries and .* 8 rows"),
        ("a\n", "not a vocabulary"),
    ):
        path.write_text(source)
        with pytest.raises(errors.UserError, match=message):
            opennmt_tf.read(tmp_path)
    path.write_text(text)
    target.write_text(text.replace("\na\n", "\nx\n"))
    spm.write_bytes(b"none")
    for vocab, message in (
        (None, "which vocabulary is the source's"),
        (f"{path},{target}", "one embedding for both sides"),
        (f"{path},{spm}", "cuts no texts"),
    ):
        with pytest.raises(errors.UserError, match=message):
            opennmt_tf.read(tmp_path, vocab=vocab)
