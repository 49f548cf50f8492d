"""Models with a vocabulary for each side, of each framework, in all that a run is for."""

import json

import exports
import foreign_numbers
import marian_numbers
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import config, errors
from t2t_lite.bin import datagen, decoder, trainer
from t2t_lite.decode import translator
from t2t_lite.imports import imported, marian, opennmt_tf
from t2t_lite.run import output_dir
from t2t_lite.text import piece_vocabulary

SOURCE, TARGET = list("abcdefgh"), ["u", "v", "w", "x", "y", "z"]


def _fairseq(folder):
    kind = {"shared": False, "target_pieces": TARGET}
    model = foreign_numbers.write_fairseq(folder, SOURCE, **kind)
    return foreign_numbers.read_fairseq(folder), model.logits


def _opennmt_tf(folder):
    kind = {"shared": False, "target_pieces": TARGET}
    model = foreign_numbers.write_opennmt_tf(folder, SOURCE, **kind)
    read = opennmt_tf.read(folder, vocab=f"{folder}/vocab.txt,{folder}/target_vocab.txt")
    # Its encoder sees no </s>; <unk> stands after all pieces.
    return read, lambda source, target: model.logits(source[:-1], target)


def _marian(folder):
    model = marian_numbers.write(folder, own=True, tied="target")
    return marian.read(folder), model.logits


FRAMEWORKS = {"fairseq": _fairseq, "opennmt_tf": _opennmt_tf, "marian": _marian}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_logits_are_the_frameworks(tmp_path, framework):
    read, logits = FRAMEWORKS[framework](tmp_path)
    imported.write(read, tmp_path / "run")
    model = translator.Translator.from_output_dir(tmp_path / "run")
    sizes = model.vocabulary.size, model.vocabulary.targets.size
    assert read.hparams.imported.source_vocab_size == sizes[0] != sizes[1] == read.vocab_size
    here = [6, 4, 7, 1], [8, 5, 7, 1]
    if framework == "marian":  # PAD is in front
        there = [[i - 1 for i in side] for side in here]
        order = list(range(sizes[1] - 1))
    else:
        places = {
            "fairseq": [1, 2, 3, 0, *range(4, 12)],
            "opennmt_tf": [0, 2, None, 1, *range(3, 11)],
        }[framework]
        there = [[places[i] for i in side] for side in here]
        order = [sizes[1] - 1 if place is None else place for place in places[: sizes[1]]]
    found = model.models[0](tf.constant([here[0]]), tf.constant([here[1]]))[0].numpy()
    expected = logits(*there)[:, order]
    np.testing.assert_allclose(found[:, -len(order) :], expected, atol=2e-5)


@pytest.mark.parametrize(
    "framework",
    ["marian", *(pytest.param(name, marks=pytest.mark.slow) for name in ("fairseq", "opennmt_tf"))],
)
def test_an_export_takes_and_gives_text(tmp_path, framework):
    imported.write(FRAMEWORKS[framework](tmp_path)[0], tmp_path / "run")
    texts = ["a dog runs" if framework == "marian" else "a b  h zz", "", "d"]
    target = "A DOG" if framework == "marian" else "u v x a"
    signatures, expected = exports.says_the_same(
        tmp_path / "run", tmp_path / "export", texts, extra_length=6, beam_size=3, min_length=3
    )
    vocab = translator.Translator.from_output_dir(tmp_path / "run").vocabulary
    allowed = {vocab.targets.piece(i) for i in range(2, vocab.targets.size)}
    if framework != "marian":
        assert expected[0].text
        assert set(expected[0].text.split()) <= allowed
    given = signatures["score"](inputs=tf.constant(texts[:1]), targets=tf.constant([target]))
    assert given["lengths"].numpy() == len(vocab.targets.encode(target)) + 1


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    imported.write(_fairseq(folder)[0], folder / "run")
    return folder / "run"


def test_the_vocabulary_spells_each_side(run_dir):
    vocab = translator.Translator.from_output_dir(run_dir).vocabulary
    assert [vocab.piece(i) for i in vocab.encode("a u")] == ["a", "<unk>"]
    assert [vocab.targets.piece(i) for i in vocab.targets.encode("a u")] == ["<unk>", "u"]
    assert vocab.targets.targets is vocab.targets
    assert vocab.targets.decode(vocab.targets.encode("u v")) == "u v"


def test_a_dictionary_of_each_side_may_have_codes_of_its_own(tmp_path):
    foreign_numbers.write_fairseq(tmp_path, ["ab", "c"], shared=False, target_pieces=["de", "f@@"])
    for name, merge in (("en", "a b</w>"), ("de", "d e</w>")):
        (tmp_path / f"codes.{name}").write_text(f"#version: 0.2\n{merge}\n")
    names = ("dict.en.txt", "dict.de.txt", "codes.en", "codes.de")
    read = foreign_numbers.read_fairseq(
        tmp_path, vocab=",".join(f"{tmp_path}/{name}" for name in names)
    )
    vocab = piece_vocabulary.PieceVocabulary(read.vocabulary)
    assert [vocab.piece(i) for i in vocab.encode("ab c")] == ["ab", "c"]
    assert [vocab.targets.piece(i) for i in vocab.targets.encode("de f")] == ["de", "<unk>"]
    # In the other order they are those of the languages that the model names.
    turned = ",".join(f"{tmp_path}/{name}" for name in (*names[1::-1], *names[2:]))
    assert foreign_numbers.read_fairseq(tmp_path, vocab=turned).vocabulary == read.vocabulary


def test_what_does_not_fit_is_refused(tmp_path):
    _opennmt_tf(tmp_path)
    turned = f"{tmp_path}/target_vocab.txt,{tmp_path}/vocab.txt"
    with pytest.raises(errors.UserError, match="10 entries and the embedding of the source 12 row"):
        opennmt_tf.read(tmp_path, vocab=turned)
    with pytest.raises(errors.UserError, match="which vocabulary is the source's"):
        opennmt_tf.read(tmp_path)
    with pytest.raises(errors.UserError, match="add embeddings=separate"):
        config.HParams(imported=config.ImportedModel(source_vocab_size=5))


@pytest.fixture(scope="module")
def data_dir(run_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    for split in ("train", "dev", "test"):
        (folder / f"{split}.source").write_text("a b c\nd e f\n" * 8)
        (folder / f"{split}.target").write_text("u v w\nx y z\n" * 8)
    flags = [f"--raw_dir={folder}", f"--data_dir={folder}/data", f"--vocab_from={run_dir}"]
    assert datagen.main(["", "--problem=parallel_text", "--num_workers=1", *flags]) == 0
    return folder / "data"


def test_data_are_encoded_by_each_sides_vocabulary(data_dir):
    (manifest,) = data_dir.glob("*.manifest.json")
    entry = json.loads(manifest.read_text())["vocabulary_file"]
    assert (entry["source_size"], entry["size"]) == (12, 10)
    assert entry["name"].endswith(".pieces")


def _train(run_dir, data_dir, output, *more):
    flags = [f"--data_dir={data_dir}", f"--output_dir={output}", f"--hparams_set={run_dir}"]
    flags += ["--problem=parallel_text", "--train_steps=2", "--precision=float32", *more]
    return trainer.main(["", *flags])


def test_it_is_trained_further_and_decodes(run_dir, data_dir, tmp_path, capsys):
    output = tmp_path / "tuned"
    start = f"--warm_start_from={run_dir}"
    assert _train(run_dir, data_dir, output, start, "--hparams=batch_tokens=64") == 0
    run = output_dir.read(output)
    assert (run.run.vocab_size, run.hparams.imported.source_vocab_size) == (10, 12)
    capsys.readouterr()
    texts, translations = tmp_path / "in", tmp_path / "out"
    texts.write_text("a b\n")
    flags = [f"--decode_from_file={texts}", f"--decode_to_file={translations}"]
    assert decoder.main(["", f"--output_dir={output}", *flags]) == 0
    assert set(translations.read_text().split()) <= set(TARGET)
    scored = tmp_path / "pairs"
    scored.write_text("a b\tu v\n")
    assert decoder.main(["", f"--output_dir={output}", f"--score_file={scored}", *flags[1:]]) == 0


def test_hparams_of_one_vocabulary_are_refused(data_dir, tmp_path, capsys):
    assert _train("transformer_toy", data_dir, tmp_path / "run") == 1
    assert "a vocabulary for each side" in capsys.readouterr().err


def test_data_of_two_vocabularies_are_not_read_the_other_way_round(
    run_dir, data_dir, tmp_path, capsys
):
    assert _train(run_dir, data_dir, tmp_path / "run", "--problem=parallel_text_rev") == 1
    assert "which parallel_text_rev would swap" in capsys.readouterr().err
