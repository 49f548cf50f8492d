"""Models of transformers' MarianMTModel: stored numbers, and itself where it is installed."""

import json
import pathlib
import shutil
import sys
import types
from typing import Any

import h5py
import hugging_face
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.bin import import_model
from t2t_lite.decode import translator
from t2t_lite.imports import imported, opus_mt
from t2t_lite.run import output_dir

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "opus_mt"
# Shared vocabularies and swish, as most models; separate ones and ReLU, as the newer tc-big ones.
KINDS = {
    "shared": {"scale": 2.2},
    "separate": {
        "own": True,
        "end": 5.6,
        "scale": 2.6,
        "activation": "relu",
        "d_model": 24,
        "encoder_layers": 3,
        "encoder_attention_heads": 6,
        "decoder_attention_heads": 6,
    },
}


def _imported(folder: pathlib.Path, run: pathlib.Path) -> translator.Translator:
    imported.write(opus_mt.read(folder), run)
    return translator.Translator.from_output_dir(run)


def _compare(folder: pathlib.Path, run: pathlib.Path, texts: list[str], theirs: dict) -> None:
    """Compare ids, logits and the outputs that end; an import of `folder` becomes `run`."""
    model = _imported(folder, run)
    pad = json.loads((folder / "config.json").read_text())["pad_token_id"]
    places = [pad, 0, 1, *range(2, pad)]  # of PAD, EOS, UNK and the others
    here = {number: i for i, number in enumerate(places)}
    for text, ids, output, logits in zip(
        texts, theirs["inputs"], theirs["1 1.0"]["ids"], theirs["logits"]
    ):
        assert model.vocabulary.encode(text) == [here[i] for i in ids[:-1]]
        pair = [[here[i] for i in ids]], [[here[i] for i in output]]
        found = model.models[0](*map(tf.constant, pair))[0].numpy()
        # PAD is never an output, and takes no part in the softmax if that is renormalised.
        np.testing.assert_allclose(found[:, 1:], np.array(logits)[:, places[1:]], atol=1e-4)
    for beams, penalty in hugging_face.BEAMS:
        name = f"{beams} {penalty}"
        expected = theirs[name]
        model = translator.Translator.from_output_dir(run, beam_size=beams, alpha=penalty)
        found = model.translate(texts)
        # Theirs ends at 64 tokens, ours at 64 more than the input has.
        ended = [i for i, ids in enumerate(expected["ids"]) if len(ids) < 63]
        assert len(ended) > len(texts) // 3
        same = [i for i in ended if [here[x] for x in expected["ids"][i]] == [*found[i].ids]]
        assert len(same) >= 0.98 * len(ended), name
        assert [found[i].text.strip() for i in same] == [expected["texts"][i] for i in same]
        if beams > 1:
            scores = [found[i].score for i in ended]  # a difference is a near-tie
            np.testing.assert_allclose(scores, [expected["scores"][i] for i in ended], atol=1e-3)


@pytest.mark.parametrize("form", ["model.safetensors", "tf_model.h5"])
def test_stored_numbers_of_transformers(tmp_path, form):
    folder = tmp_path / "model"
    shutil.copytree(GOLDEN, folder)
    if form == "tf_model.h5":
        _to_h5(folder)
    expected = json.loads((GOLDEN / "expected.json").read_text())
    _compare(folder, tmp_path / "run", expected.pop("texts"), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_itself(tmp_path, kind):
    pytest.importorskip("transformers", reason="transformers is not installed")
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    folder = tmp_path / "model"
    model = hugging_face.write(folder, **KINDS[kind])
    texts = hugging_face.ENGLISH
    expected = hugging_face.answers(model, folder, texts)
    _compare(folder, tmp_path / "run", texts, expected)
    weights = opus_mt.read(folder).weights
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    again = opus_mt.read(folder).weights
    assert weights.keys() == again.keys()
    assert all(np.array_equal(weights[name], again[name]) for name in weights)


def _to_h5(folder: pathlib.Path) -> None:
    """Turn model.safetensors into tf_model.h5, in the layout of TFMarianMTModel.save_pretrained."""
    weights = opus_mt._safetensors(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    with h5py.File(folder / "tf_model.h5", "w") as file:
        for name, value in weights.items():
            parts = name.removeprefix("model.").replace("layers.", "layers/").split(".")
            if name == "final_logits_bias":
                file[f"{name}/{name}:0"] = value
            elif "embed_tokens" in name or "shared" in name or "lm_head" in name:
                if "model/model.shared/model.shared/embeddings:0" not in file:
                    file["model/model.shared/model.shared/embeddings:0"] = value
            else:
                *parts, kind = [part.replace("layers/", "layers.") for part in parts]
                kinds = {"weight": "gamma", "bias": "beta"} if "norm" in name else {}
                kinds = kinds or {"weight": "kernel", "bias": "bias"}
                value = value.T if kinds[kind] == "kernel" else value
                file["/".join(["model/tf_marian_mt_model/model", *parts, f"{kinds[kind]}:0"])] = (
                    value
                )


CANNOT = {
    "config.json": {
        "normalize_before=True": {"normalize_before": True},
        "static_position_embeddings=False": {"static_position_embeddings": False},
        "model_type='bart'": {"model_type": "bart"},
        "activation is 'gelu'": {"activation_function": "gelu"},
        "num_encoder_layers=2, its settings say 3": {"encoder_layers": 3},
        "encoder_attention_heads=4 and decoder_attention_heads=2": {"decoder_attention_heads": 2},
    },
    "generation_config.json": {
        "decoder_start_token_id=None": {"decoder_start_token_id": None},
        "is not the model's vocabulary": {"pad_token_id": 7},
        "bad_words_ids=[[5, 6]]": {"bad_words_ids": [[5, 6]]},
        "no_repeat_ngram_size=3": {"no_repeat_ngram_size": 3},
        "forced_bos_token_id=5": {"forced_bos_token_id": 5},
    },
}


@pytest.mark.parametrize(
    ("file", "message"), [(file, message) for file in CANNOT for message in CANNOT[file]]
)
def test_what_cannot_be_imported_is_named_in_a_line(refused, tmp_path, file, message):
    shutil.copytree(GOLDEN, tmp_path, dirs_exist_ok=True)
    settings = json.loads((tmp_path / file).read_text())
    (tmp_path / file).write_text(json.dumps(settings | CANNOT[file][message]))
    assert message in refused("opus_mt")


@pytest.mark.parametrize("damage", ["cut", "empty", "no weights", "bpe", "json", "no vocabulary"])
def test_a_missing_or_damaged_file_gives_one_line(refused, tmp_path, damage):
    shutil.copytree(GOLDEN, tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    if damage in ("cut", "empty"):
        weights.write_bytes(weights.read_bytes()[: {"cut": 5000, "empty": 0}[damage]])
        message = "cannot read the weights"
    elif damage == "no weights":
        weights.unlink()
        message = "expected one of model.safetensors, tf_model.h5, pytorch_model.bin"
    elif damage == "bpe":
        (tmp_path / "source.spm").rename(tmp_path / "source.bpe")
        message = "its texts are cut by BPE"
    elif damage == "json":
        (tmp_path / "config.json").write_text("{")
        message = "config.json is damaged"
    else:
        (tmp_path / "vocab.json").unlink()
        message = "there is no file"
    assert message in refused("opus_mt")


def test_a_name_is_fetched_from_the_hub_or_its_cache(tmp_path, monkeypatch, refused):
    assert "not a name on the hub" in refused("opus_mt", "no/such/folder")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install 't2t-lite[opus_mt]'" in refused("opus_mt", "Helsinki-NLP/opus-mt-en-de")

    # The package's two functions, on a snapshot laid out as its cache has it.
    class EntryNotFoundError(Exception):
        pass

    snapshot = tmp_path / "models--a--b" / "snapshots" / "0f0f0f"
    shutil.copytree(GOLDEN, snapshot)

    def download(name, file, revision):
        if not (snapshot / file).exists():
            raise EntryNotFoundError(file)

    hub: Any = types.ModuleType("huggingface_hub")
    hub.errors = types.SimpleNamespace(EntryNotFoundError=EntryNotFoundError)
    hub.snapshot_download = lambda name, allow_patterns: str(snapshot)
    hub.hf_hub_download = download
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    flags = ["--from=opus_mt", "--model=a/b", f"--output_dir={tmp_path}/run"]
    assert import_model.main(["", *flags]) == 0
    assert output_dir.read(tmp_path / "run").run.imported_from == f"a/b@{snapshot.name}"
    shutil.rmtree(tmp_path / "run")

    def fail(*_, **__):
        raise OSError("no network\nand more")

    hub.snapshot_download = fail
    assert "cannot fetch a/b from the hub, and no copy is in its cache: no network" in refused(
        "opus_mt", "a/b"
    )


def test_settings_of_decoding_carry_over():
    hparams = opus_mt.read(GOLDEN).hparams
    assert (hparams.beam_size, hparams.alpha, hparams.extra_length) == (4, 1.0, 64)
    assert hparams.imported.decoding == (
        "length_penalty=power,strict_ends=true,early_stop=heuristic,min_length=6"
    )
    assert hparams.imported.start_vector  # the embedding of <pad> is not zero here
