"""scripts/to_ctranslate2.py: what it refuses, and that CTranslate2 then says what we say."""

import dataclasses
import json

import foreign_numbers
import marian_numbers
import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from scripts import to_ctranslate2
from t2t_lite import errors
from t2t_lite.decode import translator
from t2t_lite.imports import imported, marian, opennmt_tf


def _model(folder, *more):
    """Write what looks like a model of CTranslate2."""
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"\x06\0\0\0\x10\0TransformerSpec\0")
    for name in ("config.json", "shared_vocabulary.json", *more):
        (folder / name).write_text("{}")
    return folder


def test_only_a_model_is_replaced(run_dir, tmp_path):
    file = tmp_path / "file"
    file.write_text("precious")
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.bin").write_text("precious")
    for target in (run_dir, file, other, _model(tmp_path / "kept", "notes.txt")):
        before = sorted(target.rglob("*"))
        with pytest.raises(errors.UserError, match="which would be lost"):
            to_ctranslate2.convert(str(run_dir), str(target))
        assert sorted(target.rglob("*")) == before
    to_ctranslate2._check_replaceable(tmp_path / "new")
    to_ctranslate2._check_replaceable(_model(tmp_path / "model"))


@pytest.mark.parametrize("change", [{"d_v": 4}, {"d_k": 4}, {"d_k": 4, "d_v": 4}])
def test_heads_that_ctranslate2_does_not_have_are_refused(run_dir, tmp_path, monkeypatch, change):
    run = to_ctranslate2.output_dir.read(run_dir)
    changed = dataclasses.replace(run, hparams=dataclasses.replace(run.hparams, **change))
    monkeypatch.setattr(to_ctranslate2.output_dir, "read", lambda path: changed)
    with pytest.raises(errors.UserError, match="only heads of the size d_model / num_heads"):
        to_ctranslate2.convert(str(run_dir), str(tmp_path / "target"))
    assert list(tmp_path.iterdir()) == []


def _write_fairseq(folder, target_pieces=None):
    pieces = list("abcdefgh")
    foreign_numbers.write_fairseq(folder, pieces, shared=False, target_pieces=target_pieces)
    return foreign_numbers.read_fairseq(folder)


def _write_opennmt_tf(folder):
    foreign_numbers.write_opennmt_tf(folder, list("abcdefgh"), swish=True)
    return opennmt_tf.read(folder)


def _write_marian(folder):
    marian_numbers.write(folder)
    return marian.read(folder)


def _write_own_vocabularies(folder):
    return _write_fairseq(folder, list("uvwxyz"))


@pytest.mark.parametrize(
    "write", [_write_fairseq, _write_opennmt_tf, _write_marian, _write_own_vocabularies]
)
def test_ctranslate2_says_of_imported_models_what_we_say(tmp_path, write):
    ctranslate2 = pytest.importorskip("ctranslate2")
    imported.write(write(tmp_path), tmp_path / "run")
    to_ctranslate2.convert(str(tmp_path / "run"), str(tmp_path / "target"))
    converted = ctranslate2.Translator(str(tmp_path / "target"))
    model = translator.Translator.from_output_dir(tmp_path / "run", beam_size=1, alpha=0.0)
    vocabularies = model.vocabulary, model.vocabulary.targets
    sources = [[7, 4, 5], [9, 9], [4, 8, 6, 5, 3]]
    targets = [[5, 6], [8], [4, 4, 7]]
    scores = converted.score_batch(
        *(
            [[vocab.pieces[i] for i in ids] for ids in side]
            for vocab, side in zip(vocabularies, (sources, targets))
        )
    )
    for source, target, score in zip(sources, targets, scores):
        logits = model.models[0](tf.constant([[*source, 1]]), tf.constant([[*target, 1]]))[0]
        logs = tf.nn.log_softmax(logits).numpy()
        expected = [logs[place, token] for place, token in enumerate([*target, 1])]
        np.testing.assert_allclose(score.log_probs, expected, atol=1e-4)
    config = json.loads((tmp_path / "target" / "config.json").read_text())
    assert config["add_source_eos"] is model.models[0].hparams.imported.source_eos


def test_ctranslate2_says_what_we_say(run_dir, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    target = _model(tmp_path / "target")
    to_ctranslate2.convert(str(run_dir), str(target))
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert json.loads((target / "config.json").read_text())["add_source_eos"] is True
    tokens = json.loads((target / "shared_vocabulary.json").read_text())
    to_ctranslate2._check_replaceable(target)  # so that it can be converted again
    model = translator.Translator.from_output_dir(run_dir, beam_size=1, alpha=0.0, extra_length=60)
    vocab = model.vocabulary
    pieces = [[vocab.pieces[i] for i in vocab.encode(text)] for text in tiny_run.SENTENCES]
    found = ctranslate2.Translator(str(target)).translate_batch(
        pieces,
        beam_size=1,
        # Random weights give them a chance that training takes away. Greedy, because what is left
        # shares their probability, which would change the order of beams.
        suppress_sequences=[[token] for token in tokens if "<spare_" in token or token == "<pad>"],
    )
    translations = model.translate(tiny_run.SENTENCES)
    finished = [place for place, t in enumerate(translations) if t.finished]
    assert finished
    for place in finished:
        ids = [i for i in translations[place].ids if i != 1]
        assert found[place].hypotheses[0] == [vocab.pieces[i] for i in ids]
