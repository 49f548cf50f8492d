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

# By rank; "no</w>" is learnt before "n o" is.
CODES = "#version: 0.2\na n\nd o\ndo g</w>\nr u\nan d</w>\nru n\ns s\n"
PIECES = ["a", "dog", "run@@", "s", "and", "x@@", "an@@", "do@@", "o", "x", "▁a", "ss@@", "ru@@"]


# As subword-nmt cuts it, and the tab, a symbol of its own, is white space to fairseq; "d@@", "@@",
# "s@@" and "q" are no pieces.
CUT = ["a", "dog", "run@@", "s", "an@@", "d@@", "@@", "x@@", "and", "x@@", "s@@", "s", "q"]
EXPECTED = [piece if piece in PIECES else "<unk>" for piece in CUT]


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
    peak = h.learning_rate_scale * (h.d_model * h.warmup_steps) ** -0.5
    assert peak == pytest.approx(0.0005)


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
    pieces = [vocab.piece(i) for i in vocab.encode("a dog runs  and\txand xss q")]
    # "and\txand" is one word until it is cut: its "and" is none at the end of a word.
    assert pieces == EXPECTED
    assert vocab.decode([vocab.encode(t)[0] for t in ("dog", "and")]) == "dog and"


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
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_cannot_be_imported_is_named_in_a_line(refused, tmp_path, name):
    value, message = CANNOT[name]
    foreign_numbers.write_fairseq(tmp_path, PIECES, **{name: value})
    with _no_torch():
        assert message in refused("fairseq")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("encoder.embed_positions.weight", "learned positions"),
        ("decoder.layers.0.conv.weight", "a convolution"),
        ("decoder.layers.2.fc1.bias", "it lacks"),
        ("layernorm_embedding.weight", "a norm of the embeddings"),
    ],
)
def test_other_layers_are_named(tmp_path, name, message):
    others = {name: np.ones([12], np.float32)}
    foreign_numbers.write_fairseq(tmp_path, PIECES, others=others)
    with pytest.raises(errors.UserError, match=message):
        imported.write(foreign_numbers.read_fairseq(tmp_path), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def _torch_save(content, path, **form):
    """Write what PyTorch makes of the content, its arrays as tensors."""
    torch = pytest.importorskip("torch", reason="needs PyTorch (the extra fairseq)")
    tensors = {name: torch.from_numpy(value) for name, value in content.get("model", {}).items()}
    torch.save({**content, "model": tensors}, path, **form)


@pytest.mark.parametrize("older", [False, True])
def test_pytorchs_file_is_read(tmp_path, older):
    foreign_numbers.write_fairseq(tmp_path, PIECES, older=older)
    path = tmp_path / "model.pt"
    content = foreign_numbers.load_fairseq(path)
    _torch_save(content, path, _use_new_zipfile_serialization=not older)
    found = torch_checkpoint.load(path)
    assert {n: x for n, x in found.items() if n != "model"} == {
        n: x for n, x in content.items() if n != "model"
    }
    assert found["model"].keys() == content["model"].keys()
    for name, value in content["model"].items():
        np.testing.assert_array_equal(found["model"][name], value)


def test_half_precision_is_read(tmp_path):
    torch = pytest.importorskip("torch", reason="needs PyTorch (the extra fairseq)")
    for kind in (torch.float16, torch.bfloat16):
        torch.save({"model": {"a": torch.tensor([1.5, -2], dtype=kind)}}, tmp_path / "model.pt")
        assert torch_checkpoint.load(tmp_path / "model.pt")["model"]["a"].tolist() == [1.5, -2]


class Call:
    """Pickled as a call of a function."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


@pytest.mark.parametrize("is_zip", [True, False])
def test_no_pickle_is_executed(tmp_path, is_zip):
    hacked, path = tmp_path / "hacked", tmp_path / "model.pt"
    for function, *arguments in (
        (os.system, f"touch {hacked}"),
        (open, str(hacked), "w"),
        (eval, f"open({str(hacked)!r}, 'w')"),
        (exec, f"open({str(hacked)!r}, 'w')"),
    ):
        content = {"args": argparse.Namespace(x=Call(function, *arguments))}
        _torch_save(content, path, _use_new_zipfile_serialization=is_zip)
        with pytest.raises(errors.UserError, match=r"asks for .*, which weights_only does not"):
            torch_checkpoint.load(path)
        assert not hacked.exists()


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "no file", "no model", "no tensor"])
def test_a_damaged_file_gives_one_line(tmp_path, damage):
    path = tmp_path / "model.pt"
    _torch_save({"model": {"a": np.ones(99, np.float32)}}, path)
    data = path.read_bytes()
    if damage == "no file":
        path.unlink()
    elif damage == "no model":
        _torch_save({"state": 1}, path)
    elif damage == "no tensor":
        pytest.importorskip("torch").save({"model": {"a": 1}}, path)
    else:
        path.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "text": b"hello"}[damage])
    with pytest.raises(
        errors.UserError, match=r"cannot read|not a checkpoint|no file|not a tensor"
    ):
        torch_checkpoint.load(path)


def test_without_pytorch_a_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        errors.UserError, match=r"cannot be imported .*: run pip install .*\[fairseq\]"
    ):
        torch_checkpoint.load(tmp_path / "model.pt")


def test_a_vocabulary_of_another_model_is_refused(tmp_path):
    foreign_numbers.write_fairseq(tmp_path, PIECES)
    (tmp_path / "dict.txt").write_text("a 1\n")
    with pytest.raises(errors.UserError, match="entries and the embedding"):
        foreign_numbers.read_fairseq(tmp_path)
    (tmp_path / "dict.txt").write_text("a\n")
    with pytest.raises(errors.UserError, match="no 'piece count'"):
        foreign_numbers.read_fairseq(tmp_path)
    (tmp_path / "dict.de.txt").write_text("b 1\n")
    (tmp_path / "dict.txt").write_text("a 1\n")
    with pytest.raises(errors.UserError, match="which vocabulary is the source's"):
        foreign_numbers.read_fairseq(tmp_path)
    with pytest.raises(errors.UserError, match="no vocabulary file"):
        foreign_numbers.read_fairseq(tmp_path, vocab="none.txt")
    (tmp_path / "dict.de.txt").unlink()
    foreign_numbers.write_fairseq(tmp_path, PIECES)
    (tmp_path / "codes").write_text("a b c d\n")
    with pytest.raises(errors.UserError, match="cuts no texts"):
        foreign_numbers.read_fairseq(tmp_path)
