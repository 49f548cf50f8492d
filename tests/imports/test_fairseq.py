"""Models of fairseq, against its layers in NumPy, and what cannot be imported."""

import argparse
import os
import sys
import unittest.mock

import exports
import foreign_numbers
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.bin import import_model
from t2t_lite.decode import translator
from t2t_lite.imports import imported, torch_checkpoint
from t2t_lite.text import piece_vocabulary

# By rank; "no</w>" is learnt before "n o" is.
CODES = "#version: 0.2\na n\nd o\ndo g</w>\nr u\nan d</w>\nru n\ns s\n"
PIECES = ["a", "dog", "run@@", "s", "and", "x@@", "an@@", "do@@", "o", "x", "▁a", "ss@@", "ru@@"]


def _no_torch():
    return unittest.mock.patch.object(torch_checkpoint, "load", foreign_numbers.load_fairseq)


@pytest.mark.parametrize(
    "kind",
    [{}, {"pre_norm": True}, {"shared": False}, {"older": True}, {"older": True, "shared": False}]
    + [{"swish": True, "older": True, "pre_norm": True}],
    ids=str,
)
def test_logits_are_fairseqs(tmp_path, kind):
    model = foreign_numbers.write_fairseq(tmp_path, PIECES, **kind)
    read = foreign_numbers.read_fairseq(tmp_path)
    assert read.hparams.embeddings == ("shared" if kind.get("shared", True) else "separate")
    imported.write(read, tmp_path / "run")
    found = translator.Translator.from_output_dir(tmp_path / "run").models[0]
    source, target = [5, 9, 3, 12, 2], [7, 4, 3, 2]
    # <pad>, </s>, <unk>, <s> are 1, 2, 3, 0 there.
    here = {1: 0, 2: 1, 3: 2, 0: 3}
    ids = [[here.get(i, i) for i in side] for side in (source, target)]
    logits = found(tf.constant([[*ids[0], 0, 0]]), tf.constant([ids[1]]))[0].numpy()
    order = [1, 2, 3, 0, *range(4, logits.shape[1])]
    np.testing.assert_allclose(logits, model.logits(source, target)[:, order], atol=2e-5)


def test_what_is_told_of_the_training_is_kept(tmp_path):
    foreign_numbers.write_fairseq(tmp_path, PIECES)
    read = foreign_numbers.read_fairseq(tmp_path)
    h = read.hparams
    assert (read.step, h.batch_tokens, h.warmup_steps, h.dropout) == (7, 7168, 4000, 0.3)
    assert h.learning_rate_scale * (h.d_model * h.warmup_steps) ** -0.5 == pytest.approx(0.0005)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fairseq")
    foreign_numbers.write_fairseq(folder, PIECES)
    (folder / "bpe.codes").write_text(CODES)
    flags = ["--from=fairseq", f"--model={folder}", f"--output_dir={folder}/run"]
    with _no_torch():
        assert import_model.main(["t2t-lite-import", *flags]) == 0
    return folder / "run"


def test_text_is_cut_as_by_subword_nmt(run_dir):
    vocab = translator.Translator.from_output_dir(run_dir).vocabulary
    pieces = " ".join(vocab.pieces[i] for i in vocab.encode("a dog runs  and\txand xss q"))
    # "and\txand" is one word until it is cut: its "and" is none at the end of a word. The tab, a
    # symbol of its own, is white space to fairseq; "d@@", "@@", "s@@" and "q" are no pieces.
    assert pieces == "a dog run@@ s an@@ <unk> <unk> x@@ and x@@ <unk> s <unk>"
    assert vocab.decode([vocab.encode(t)[0] for t in ("dog", "and")]) == "dog and"


def test_subword_nmts_filter_splits_pieces_that_are_too_rare(tmp_path):
    foreign_numbers.write_fairseq(tmp_path, PIECES)
    (tmp_path / "codes").write_text(CODES)
    (tmp_path / "vocab.en").write_text("and 3\nan@@ 4\nru@@ 9\n")
    paths = [f"{tmp_path}/{name}" for name in ("dict.txt", "codes", "vocab.en")]
    for threshold, expected in ((None, "and ru@@ <unk>"), (4, "an@@ <unk> ru@@ <unk>")):
        read = foreign_numbers.read_fairseq(
            tmp_path, vocab=",".join(paths), vocabulary_threshold=threshold
        )
        vocab = piece_vocabulary.PieceVocabulary(read.vocabulary)
        found = [vocab.pieces[i] for i in vocab.encode("and run")]
        assert (" ".join(found), read.remarks) == (expected, [])
    read = foreign_numbers.read_fairseq(tmp_path, vocab=",".join(paths[:2]))
    assert "if subword-nmt had --vocabulary and" in read.remarks[0]
    for vocab in (",".join(paths[:2]), ",".join(paths[::2])):
        with pytest.raises(errors.UserError, match="--vocabulary_threshold is for the codes"):
            foreign_numbers.read_fairseq(tmp_path, vocab=vocab, vocabulary_threshold=5)


TEXTS = ["a dog runs", " and  a\tdog ☃", "", "xx ss dogs"]


@pytest.mark.slow
def test_an_output_dir_decodes_and_its_export_takes_text(run_dir, tmp_path):
    exports.says_the_same(run_dir, tmp_path, TEXTS, extra_length=4, beam_size=3)


CANNOT = {
    "task": ("translation_multi_simple_epoch", "another task"),
    "encoder_learned_pos": (True, "learned positions"),
    "adaptive_softmax_cutoff": ([1, 2], "an adaptive softmax"),
    "no_scale_embedding": (True, "embeddings of another scale"),
    "activation_fn": ("gelu", "activation is 'gelu'"),
    "decoder_attention_heads": (4, "how many heads"),
    "encoder_embed_dim": (16, "weights have d_model=8, its settings say 16"),
    "encoder_ffn_embed_dim": (16, "weights have d_ff=12, its settings say 16"),
    "decoder_layers": (3, "weights have num_decoder_layers=2, its settings say 3"),
}


LAYERS = {
    "encoder.embed_positions.weight": "learned positions",
    "decoder.layers.0.conv.weight": "a convolution",
    "decoder.layers.2.fc1.bias": "it lacks",
    "layernorm_embedding.weight": "a norm of the embeddings",
}


@pytest.mark.parametrize("name", [*CANNOT, *LAYERS])
def test_what_cannot_be_imported_is_named_in_a_line(refused, tmp_path, name):
    if name in CANNOT:
        value, message = CANNOT[name]
        foreign_numbers.write_fairseq(tmp_path, PIECES, **{name: value})
    else:
        message, others = LAYERS[name], {name: np.ones([12], np.float32)}
        foreign_numbers.write_fairseq(tmp_path, PIECES, others=others)
    with _no_torch():
        assert message in refused("fairseq")


def _torch_save(content, path, half=None, **form):
    """Write what PyTorch makes of the content, its arrays as tensors, and one more."""
    torch = pytest.importorskip("torch", reason="needs PyTorch (the extra fairseq)")
    tensors = {name: torch.from_numpy(value) for name, value in content.get("model", {}).items()}
    tensors |= {} if half is None else {"half": half}
    torch.save({**content, "model": tensors}, path, **form)


@pytest.mark.parametrize("older", [False, True])
def test_pytorchs_file_is_read(tmp_path, older):
    foreign_numbers.write_fairseq(tmp_path, PIECES, older=older)
    path = tmp_path / "model.pt"
    content = foreign_numbers.load_fairseq(path)
    half = pytest.importorskip("torch").tensor([1.5, -2]).bfloat16()
    _torch_save(content, path, half=half, _use_new_zipfile_serialization=not older)
    found = torch_checkpoint.load(path)
    weights, expected = found.pop("model"), content.pop("model")
    assert found == content
    assert weights.pop("half").tolist() == [1.5, -2]
    assert weights.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(weights[name], value)


@pytest.mark.parametrize("is_zip", [True, False])
def test_no_pickle_is_executed(tmp_path, is_zip):
    hacked, path = tmp_path / "hacked", tmp_path / "model.pt"
    for function, argument in (
        (os.system, f"touch {hacked}"),
        (os.mkdir, str(hacked)),
        (exec, f"open({str(hacked)!r}, 'w')"),
    ):
        content = {"args": argparse.Namespace(x=foreign_numbers.Call(function, argument))}
        _torch_save(content, path, _use_new_zipfile_serialization=is_zip)
        with pytest.raises(errors.UserError, match=r"asks for .*, which weights_only does not"):
            torch_checkpoint.load(path)
        assert not hacked.exists()


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "no file", "no model", "no tensor"])
def test_a_damaged_file_gives_one_line(tmp_path, damage):
    torch, path = pytest.importorskip("torch"), tmp_path / "model.pt"
    torch.save({"model": {"a": 1 if damage == "no tensor" else torch.ones(99)}}, path)
    data = path.read_bytes()
    if damage == "no file":
        path.unlink()
    elif damage == "no model":
        torch.save({"state": 1}, path)
    elif damage != "no tensor":
        path.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "text": b"hello"}[damage])
    expected = r"cannot read|not a checkpoint|no file|not a tensor"
    with pytest.raises(errors.UserError, match=expected):
        torch_checkpoint.load(path)


def test_without_pytorch_a_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    expected = r"cannot be imported .*: run pip install .*\[fairseq\]"
    with pytest.raises(errors.UserError, match=expected):
        torch_checkpoint.load(tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"dict.txt": "a 1\n"}, "entries and the embedding"),
        ({"dict.txt": "a\n"}, "no 'piece count'"),
        ({"dict.txt": "a 1\n", "dict.de.txt": "b 1\n"}, "which vocabulary is the source's"),
        ({"codes": "a b c d\n"}, "cuts no texts"),
    ],
)
def test_a_vocabulary_of_another_model_is_refused(tmp_path, files, message):
    foreign_numbers.write_fairseq(tmp_path, PIECES)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(errors.UserError, match=message):
        foreign_numbers.read_fairseq(tmp_path)
