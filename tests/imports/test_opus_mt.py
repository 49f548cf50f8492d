"""Models of transformers' MarianMTModel: stored numbers, and itself where it is installed."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import types
from typing import Any

import h5py
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.bin import import_model
from t2t_lite.decode import translator
from t2t_lite.imports import imported, opus_mt
from t2t_lite.run import output_dir

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "opus_mt"
SCRIPT = pathlib.Path(__file__).parents[1] / "hugging_face.py"
BEAMS = ((1, 1.0), (4, 1.0), (6, 1.0), (6, 0.6))  # with a length penalty


def _imported(folder: pathlib.Path, run: pathlib.Path) -> translator.Translator:
    imported.write(opus_mt.read(folder), run)
    return translator.Translator.from_output_dir(run)


def _compare(folder: pathlib.Path, run: pathlib.Path, texts: list[str], theirs: dict) -> None:
    """Compare ids, logits and outputs; an import of `folder` becomes `run`."""
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
    for beams, penalty in BEAMS:
        name = f"{beams} {penalty}"
        expected = theirs[name]
        model = translator.Translator.from_output_dir(run, beam_size=beams, alpha=penalty)
        found = model.translate(texts)
        same = [[here[x] for x in ids] == [*own.ids] for ids, own in zip(expected["ids"], found)]
        assert sum(same) >= 0.98 * len(texts), name
        spelt = [(own.text.strip(), text) for own, text in zip(found, expected["texts"])]
        assert all(own == text for (own, text), is_same in zip(spelt, same) if is_same)
        if beams > 1:  # a difference is a near-tie, or an end at their limit of 100 tokens
            ended = [i for i, ids in enumerate(expected["ids"]) if len(ids) < 99]
            np.testing.assert_allclose(
                [found[i].score for i in ended], [expected["scores"][i] for i in ended], atol=1e-3
            )


@pytest.mark.parametrize("form", ["model.safetensors", "tf_model.h5"])
def test_stored_numbers_of_transformers(tmp_path, form):
    folder = tmp_path / "model"
    shutil.copytree(GOLDEN, folder)
    if form == "tf_model.h5":
        _to_h5(folder)
    expected = json.loads((GOLDEN / "expected.json").read_text())
    _compare(folder, tmp_path / "run", expected.pop("texts"), expected)


@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_transformers_itself(other_python, tmp_path, kind):
    folder = tmp_path / "model"
    other_python(str(SCRIPT), f"--kind={kind}", str(folder), USE_TF="0")
    expected = json.loads((folder / "expected.json").read_text())
    _compare(folder, tmp_path / "run", expected.pop("texts"), expected)


_WRITE_H5 = """
import sys, numpy as np, transformers
config = transformers.MarianConfig.from_pretrained(sys.argv[1], init_std=0.5)
model = transformers.TFMarianMTModel(config)
ids = np.array([[5, 9, 12, 0]]), np.array([[config.pad_token_id, 7, 5, 30]])
np.save(f"{sys.argv[1]}/logits.npy", model(ids[0], decoder_input_ids=ids[1]).logits[0])
model.save_pretrained(sys.argv[1])
"""


def test_tf_model_h5_of_transformers_itself(other_python, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(GOLDEN, folder)
    (folder / "model.safetensors").unlink()
    other_python("-c", _WRITE_H5, str(folder), USE_TORCH="0", TF_USE_LEGACY_KERAS="1")
    assert (folder / "tf_model.h5").is_file()
    model = _imported(folder, tmp_path / "run").models[0]
    # Ours are one higher; the decoder's inputs are shifted.
    found = model(tf.constant([[6, 10, 13, 1]]), tf.constant([[8, 6, 31, 1]]))[0].numpy()
    theirs = np.load(folder / "logits.npy")
    np.testing.assert_allclose(found[:, 3:], theirs[:, 2:-1], atol=1e-4)


def test_pytorch_model_bin_has_the_same_numbers(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    shutil.copytree(GOLDEN, tmp_path, dirs_exist_ok=True)
    expected = opus_mt.read(tmp_path).weights
    arrays = opus_mt._safetensors(tmp_path / "model.safetensors")
    tensors = {name: torch.from_numpy(value.copy()) for name, value in arrays.items()}
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    found = opus_mt.read(tmp_path).weights
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


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
        "encoder_no_repeat_ngram_size=3": {"encoder_no_repeat_ngram_size": 3},
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


@pytest.mark.parametrize(
    "environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}], ids=str
)
def test_huggingface_hubs_own_cache_is_read_without_a_network(tmp_path, environment):
    pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    revision, folder = "0123456789abcdef" * 2 + "01234567", tmp_path / "models--a--b"
    (folder / "blobs").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(revision)
    (folder / "snapshots" / revision).mkdir(parents=True)
    for path in GOLDEN.iterdir():
        blob = folder / "blobs" / hashlib.sha1(path.read_bytes()).hexdigest()
        shutil.copy(path, blob)
        (folder / "snapshots" / revision / path.name).symlink_to(blob)
    command = [sys.executable, "-m", "t2t_lite.bin.import_model", "--from=opus_mt"]
    results = [
        subprocess.run(
            [*command, f"--model={name}", f"--output_dir={tmp_path}/run"],
            capture_output=True,
            text=True,
            env=os.environ | environment | {"HF_HUB_CACHE": str(tmp_path)},
        )
        for name in ("a/b", "a/unknown")
    ]
    assert results[0].returncode == 0, results[0].stderr
    assert output_dir.read(tmp_path / "run").run.imported_from == f"a/b@{revision}"
    assert results[1].returncode == 1
    (line,) = results[1].stderr.splitlines()
    assert "cannot fetch a/unknown from the hub, and no copy is in its cache" in line


def test_settings_of_decoding_carry_over(tmp_path):
    hparams = opus_mt.read(GOLDEN).hparams
    assert (hparams.beam_size, hparams.alpha, hparams.extra_length) == (4, 1.0, 100)
    assert hparams.imported.decoding == (
        "length_penalty=power,strict_ends=true,early_stop=heuristic,min_length=6"
    )
    assert hparams.imported.start_vector  # the embedding of <pad> is not zero here
    shutil.copytree(GOLDEN, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"no_repeat_ngram_size": 3}))
    assert opus_mt.read(tmp_path).hparams.imported.decoding.endswith(",no_repeat_ngram=3")
