"""Models of tensor2tensor, from checkpoints as it writes them, and what cannot be imported.

That a model which was imported computes what tensor2tensor itself did is tested beside the model
(model/test_t2t_golden.py) and its search (decode/test_t2t_search.py): golden_numbers imports it.
"""

import json
import pathlib

import golden_numbers
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.bin import import_model
from t2t_lite.decode import translator
from t2t_lite.imports import imported, tensor2tensor
from t2t_lite.model import transformer
from t2t_lite.run import checkpoint, output_dir

SPACE = "transformer/body/target_space_embedding/kernel"


def _import(*flags):
    return import_model.main(["t2t-lite-import", "--from=tensor2tensor", *flags])


def _arrays(name="t2t_paper"):
    return np.load(golden_numbers.DIRECTORY / f"{name}.npz")


def _logits(read, arrays):
    model = transformer.Transformer(read.hparams, read.vocab_size)
    golden_numbers.assign(model, read.weights)
    return model(tf.constant(arrays["inputs"]), tf.constant(arrays["targets"])).numpy()


def test_an_output_dir_is_written_that_decodes(tmp_path, capsys):
    prefix = golden_numbers.write_checkpoint(tmp_path, "t2t_paper")
    run = tmp_path / "run"
    assert _import(f"--model={prefix}", f"--output_dir={run}") == 0
    assert "2 + 2 layers of 32, 4 heads, 61 ids" in capsys.readouterr().out
    written = output_dir.read(run)
    assert (written.run.problem, written.run.task) == ("translate_ende_wmt8k", "translation")
    assert checkpoint.identity_of(f"{run}/ckpt-3") == written.identity
    assert (written.hparams.dropout, written.hparams.warmup_steps) == (0.0, 4000)
    assert written.hparams.learning_rate_scale == pytest.approx(1.0)  # transformer_base_v1's
    model = translator.Translator.from_output_dir(run, extra_length=5)
    found = model.models[0](*(tf.constant(_arrays()[side]) for side in ("inputs", "targets")))
    np.testing.assert_allclose(found, _arrays()["logits"], atol=2e-5)
    assert len(model.translate(["αβγ δ", "ζ_\\ ☃"])) == 2
    # What is there stays.
    assert _import(f"--model={prefix}", f"--output_dir={run}") == 1
    assert "is there already" in capsys.readouterr().err


def test_the_model_and_the_output_dir_may_be_the_folder_one_is_in(tmp_path, monkeypatch):
    golden_numbers.write_checkpoint(tmp_path, "t2t_paper")
    monkeypatch.chdir(tmp_path)
    assert _import("--model=.", "--output_dir=run") == 0
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert _import("--model=..", "--output_dir=.") == 0
    here = pathlib.Path.cwd()
    assert here.samefile(tmp_path / "here")
    assert {path.name for path in here.iterdir()} == {p.name for p in (tmp_path / "run").iterdir()}
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("told", [True, False])
def test_the_target_space_that_was_trained_is_added_to_the_source(tmp_path, told):
    arrays = _arrays()
    space, moments = int(arrays["target_space/id"]), np.zeros([32, 32], np.float32)
    moments[space] = 1e-9
    others = {SPACE: arrays["target_space/kernel"]}
    others |= {} if told else {f"training/{SPACE}/Adam": moments}
    golden_numbers.write_checkpoint(tmp_path, "t2t_paper", **others)
    read = tensor2tensor.read(tmp_path, target_space=space if told else None)
    np.testing.assert_allclose(_logits(read, arrays), arrays["target_space/logits"], atol=2e-5)


def _renamed(prefix, rename):
    """Write a checkpoint anew with other names: {name: array} -> {name: array}."""
    reader = tf.train.load_checkpoint(str(prefix))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    golden_numbers.write_tensors(prefix, rename(tensors))


def test_separate_matrices_and_older_scopes_are_known(tmp_path):
    older = "transformer/parallel_0_3/transformer/"

    def rename(tensors):
        renamed = {}
        for name, value in tensors.items():
            if "/shared/" in name:
                for part, factor in (("input_emb", 1), ("target_emb", 1), ("softmax", 2)):
                    renamed[name.replace("shared", part)] = factor * value
            elif "/ffn/" in name and name.endswith("kernel"):  # convolutions of width one
                renamed[name.replace("transformer/", older, 1)] = value[None, None]
            else:
                renamed[name] = value
        return renamed

    arrays = _arrays()
    _renamed(golden_numbers.write_checkpoint(tmp_path, "t2t_paper"), rename)
    read = tensor2tensor.read(tmp_path)
    assert read.hparams.embeddings == "separate"
    np.testing.assert_allclose(_logits(read, arrays), 2 * arrays["logits"], atol=4e-5)


def test_without_hparams_json_the_flags_tell_the_heads(tmp_path):
    golden_numbers.write_checkpoint(tmp_path, "t2t_prenorm")
    (tmp_path / "hparams.json").unlink()
    with pytest.raises(errors.UserError, match="how many heads"):
        tensor2tensor.read(tmp_path)
    read = tensor2tensor.read(tmp_path, num_heads=8)
    assert read.hparams.d_k == 4
    assert "no hparams.json is beside the checkpoint" in read.remarks[0]
    flags = (tmp_path / "flags.txt").read_text()
    for more, heads in (
        ("--hparams_set=transformer_small", 4),
        ("--hparams=batch_size=1,num_heads=2", 2),
        ("--hparams_set=transformer_big_enfr", 16),
    ):
        (tmp_path / "flags.txt").write_text(f"{flags}{more}\n")
        assert tensor2tensor.read(tmp_path).hparams.num_heads == heads
    (tmp_path / "flags.txt").write_text(f"{flags}--hparams=num_heads=2,pos=emb\n")
    with pytest.raises(errors.UserError, match="positions of another kind"):
        tensor2tensor.read(tmp_path)


def test_a_larger_matrix_than_the_vocabulary_keeps_its_rows(tmp_path):
    golden_numbers.write_checkpoint(tmp_path, "t2t_paper")
    path = tmp_path / "vocab.golden.subwords"
    path.write_text("\n".join(path.read_text().split("\n")[:-3]))
    read = tensor2tensor.read(tmp_path)
    assert (read.vocab_size, read.hparams.vocab_multiple) == (58, 61)
    np.testing.assert_allclose(_logits(read, _arrays()), _arrays()["logits"], atol=2e-5)


def test_a_vocabulary_is_sought_in_the_data_too(tmp_path):
    golden_numbers.write_checkpoint(tmp_path, "t2t_paper")
    beside = tensor2tensor.read(tmp_path).vocabulary
    (tmp_path / "data").mkdir()
    (tmp_path / "vocab.golden.subwords").rename(tmp_path / "data" / "vocab.golden.subwords")
    with (tmp_path / "flags.txt").open("a") as file:
        file.write(f"--data_dir={tmp_path}/data\n")
    assert tensor2tensor.read(tmp_path).vocabulary == beside


def test_a_newer_checkpoint_and_a_vocabulary_of_tokens(tmp_path):
    golden_numbers.write_checkpoint(tmp_path, "t2t_paper")
    for file in list(tmp_path.glob("model.ckpt-3.*")):
        (tmp_path / file.name.replace("-3.", "-20.", 1)).write_bytes(file.read_bytes())
    (tmp_path / "tokens").write_text("<pad>\n<EOS>\n" + "\n".join(map(str, range(59))) + "\n")
    assert tensor2tensor.read(tmp_path).step == 3  # as the newer checkpoint says
    read = tensor2tensor.read(tmp_path, vocab=tmp_path / "tokens")
    imported.write(read, tmp_path / "run")
    model = translator.Translator.from_output_dir(tmp_path / "run", extra_length=1)
    assert model.vocabulary.encode("5 58") == [7, 60]


CANNOT = {
    "relative positions": ({"self_attention_type": "dot_product_relative"}, "of another kind"),
    "learned positions": ({"pos": "emb"}, "positions of another kind"),
    "experts": ({"ffn_layer": "local_moe"}, "feed-forward of another kind"),
    "order": ({"layer_preprocess_sequence": "n"}, "another order of norms"),
    "heads": ({"num_heads": 3}, "3 heads do not divide"),
    "text for a number": ({"batch_size": "many"}, "batch_size cannot be 'many'"),
    "out of range": ({"attention_dropout": 7}, "attention_dropout"),
    "layers": ({"num_hidden_layers": 3}, "num_encoder_layers=2, its settings say 3"),
    "decoder": ({"num_decoder_layers": 1}, "num_decoder_layers=2, its settings say 1"),
    "width": ({"hidden_size": 64}, "d_model=32, its settings say 64"),
    "hidden": ({"filter_size": 1}, "d_ff=64, its settings say 1"),
}


@pytest.mark.parametrize(("values", "message"), CANNOT.values(), ids=CANNOT)
def test_what_cannot_be_imported_is_named_in_a_line(refused, tmp_path, values, message):
    golden_numbers.write_checkpoint(tmp_path, "t2t_paper")
    path = tmp_path / "hparams.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    assert message in refused("tensor2tensor")


def _without(part):
    return lambda tensors: {name: value for name, value in tensors.items() if part not in name}


def _changed(change, part=""):
    return lambda t: {n: change(v) if part in n and v.ndim else v for n, v in t.items()}


def _with(name):
    return lambda tensors: {**tensors, name: np.ones([3, 8], np.float32)}


CHANGES = [
    (_with("transformer/body/encoder/layer_0/self_attention/key_relative_embeddings"), "relative"),
    (_with("transformer/lstm/kernel"), "an RNN"),
    (_without("/k/kernel"), "missing"),
    (_without("decoder/layer_1/ffn/layer_post"), "it lacks decoder_1/feed_forward_norm"),
    (_without("weights_4"), "more than the embedding"),
    (_changed(lambda v: v * np.nan), "finite"),
    (_changed(lambda v: v.astype(np.int32)), "holds no floats"),
    (_changed(np.ravel, "encdec_attention/multi"), "lacks the matrix|do not fit"),
    (
        lambda t: t | {n.replace("modality", "modality_7"): v for n, v in t.items() if "shar" in n},
        "vocabulary for each side",
    ),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=[message for _, message in CHANGES])
def test_weights_of_another_model_are_named(tmp_path, change, message):
    _renamed(golden_numbers.write_checkpoint(tmp_path, "t2t_paper"), change)
    with pytest.raises(errors.UserError, match=message):
        imported.write(tensor2tensor.read(tmp_path), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_file_gives_one_line(refused, tmp_path, suffix, damage):
    path = golden_numbers.write_checkpoint(tmp_path, "t2t_paper").with_suffix(f".ckpt-3.{suffix}")
    data = path.read_bytes()
    changed = bytes(255 - b if i % 997 == 50 else b for i, b in enumerate(data))
    path.write_bytes({"cut": data[: len(data) // 2], "changed": changed, "empty": b""}[damage])
    assert "cannot read the checkpoint" in refused("tensor2tensor")


def test_what_is_missing_is_said(tmp_path):
    def refused(message, model=tmp_path, **flags):
        with pytest.raises(errors.UserError, match=message):
            tensor2tensor.read(model, **flags)

    refused("there is no checkpoint", tmp_path / "nowhere")
    refused("holds no checkpoint")
    golden_numbers.write_checkpoint(tmp_path, "t2t_paper")
    refused("no vocabulary file", vocab=tmp_path / "none")
    (tmp_path / "vocab.golden.subwords").unlink()
    refused("give the vocabulary as --vocab")
    (tmp_path / "hparams.json").write_text('{"num_heads": ')
    refused("is damaged")


def test_a_real_checkpoint_is_imported(shared_data, tmp_path, capsys):
    folder = shared_data / "t2t"
    (vocab,) = folder.glob("vocab.*")
    run = tmp_path / "run"
    assert _import(f"--model={folder / 'ckpt'}", f"--vocab={vocab}", f"--output_dir={run}") == 0
    assert "2 + 2 layers of 16, 2 heads, 8,190 ids" in capsys.readouterr().out
    model = translator.Translator.from_output_dir(run, extra_length=2)
    kernel = tf.train.load_checkpoint(str(folder / "ckpt" / "model.ckpt-1")).get_tensor(SPACE)
    # Tensor2tensor's number 8 is German.
    np.testing.assert_array_equal(model.models[0].source.vector, kernel[8])
    assert model.translate(["A dog runs."])[0].text
