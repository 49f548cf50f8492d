"""Models with a vocabulary for each side, of each framework, in all that a run is for."""

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


KIND = {"shared": False, "target_pieces": TARGET}


def _fairseq(folder):
    model = foreign_numbers.write_fairseq(folder, SOURCE, **KIND)
    return foreign_numbers.read_fairseq(folder), model.logits


def _opennmt_tf(folder):
    model = foreign_numbers.write_opennmt_tf(folder, SOURCE, **KIND)
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
    else:  # the last one is <unk> in OpenNMT-tf
        first = {"fairseq": [1, 2, 3, 0], "opennmt_tf": [0, 2, -1, 1]}[framework]
        places = [*first, *range(len(set(first) - {-1}), 12)]
        there = [[places[i] for i in side] for side in here]
        order = places[: sizes[1]]
    found = model.models[0](tf.constant([here[0]]), tf.constant([here[1]]))[0].numpy()
    expected = logits(*there)[:, order]
    np.testing.assert_allclose(found[:, -len(order) :], expected, atol=2e-5)


def test_an_export_takes_and_gives_text(tmp_path):
    imported.write(_marian(tmp_path)[0], tmp_path / "run")
    signatures, _ = exports.says_the_same(
        tmp_path / "run", tmp_path / "export", ["a dog runs", "", "d"], extra_length=6, beam_size=3
    )
    vocab = translator.Translator.from_output_dir(tmp_path / "run").vocabulary
    given = signatures["score"](inputs=tf.constant(["a dog"]), targets=tf.constant(["A DOG"]))
    assert given["lengths"].numpy() == len(vocab.targets.encode("A DOG")) + 1


@pytest.fixture(scope="module", params=["fairseq", "marian"])
def run_dir(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("own")
    imported.write(FRAMEWORKS[request.param](folder)[0], folder / "run")
    return folder / "run"


def test_a_dictionary_of_each_side_may_have_codes_of_its_own(tmp_path):
    foreign_numbers.write_fairseq(tmp_path, ["ab", "c"], shared=False, target_pieces=["de", "f@@"])
    for name, merge in (("en", "a b</w>"), ("de", "d e</w>")):
        (tmp_path / f"codes.{name}").write_text(f"#version: 0.2\n{merge}\n")
    dicts, codes = (f"{tmp_path}/dict.{{}}.txt", f"{tmp_path}/codes.en,{tmp_path}/codes.de")
    given = [f"{dicts},{dicts},{codes}".format(*sides) for sides in (("en", "de"), ("de", "en"))]
    read = foreign_numbers.read_fairseq(tmp_path, vocab=given[0])
    vocab = piece_vocabulary.PieceVocabulary(read.vocabulary)
    assert [vocab.pieces[i] for i in vocab.encode("ab c")] == ["ab", "c"]
    assert [vocab.targets.pieces[i] for i in vocab.targets.encode("de f")] == ["de", "<unk>"]
    # In the other order they are those of the languages that the model names.
    turned = foreign_numbers.read_fairseq(tmp_path, vocab=given[1])
    assert turned.vocabulary == read.vocabulary


def test_vocabularies_the_other_way_round_are_refused(tmp_path):
    _opennmt_tf(tmp_path)
    turned = f"{tmp_path}/target_vocab.txt,{tmp_path}/vocab.txt"
    with pytest.raises(errors.UserError, match="10 entries and the embedding of the source 12 row"):
        opennmt_tf.read(tmp_path, vocab=turned)
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


def _train(run_dir, data_dir, output, *more):
    flags = [f"--data_dir={data_dir}", f"--output_dir={output}", f"--hparams_set={run_dir}"]
    flags += ["--problem=parallel_text", "--train_steps=2", "--precision=float32", *more]
    return trainer.main(["", *flags])


def test_it_is_trained_further_and_decodes(run_dir, data_dir, tmp_path):
    output = tmp_path / "tuned"
    start = f"--warm_start_from={run_dir}"
    assert _train(run_dir, data_dir, output, start, "--hparams=batch_tokens=64") == 0
    run = output_dir.read(output)
    before = output_dir.read(run_dir)
    assert (run.run.vocab_size, run.hparams.imported) == (
        before.run.vocab_size,
        before.hparams.imported,
    )
    best = [f"--output_dir={output}", f"--checkpoint_path={output}/best"]
    for model in ([f"--output_dir={run_dir}", f"--data_dir={data_dir}"], best):
        assert decoder.main(["", *model, "--split=test"]) == 0
    texts, translations, scored = (tmp_path / name for name in ("in", "out", "pairs"))
    texts.write_text("a b\n")
    scored.write_text("a b\tu v\n")
    flags = ["", f"--output_dir={output}", f"--decode_to_file={translations}"]
    assert decoder.main([*flags, f"--decode_from_file={texts}"]) == 0
    assert translations.read_text().count("\n") == 1
    assert decoder.main([*flags, f"--score_file={scored}"]) == 0


def test_what_does_not_fit_the_data_is_refused(run_dir, data_dir, tmp_path, capsys):
    assert _train("transformer_toy", data_dir, tmp_path / "run") == 1
    assert "a vocabulary for each side" in capsys.readouterr().err
    assert _train(run_dir, data_dir, tmp_path / "run", "--problem=parallel_text_rev") == 1
    assert "which parallel_text_rev would swap" in capsys.readouterr().err
