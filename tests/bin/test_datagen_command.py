"""t2t-lite-datagen: what it prints, and the data for an imported model."""

import gzip
import os

import marian_numbers
import pytest

from t2t_lite import registry
from t2t_lite.bin import datagen, trainer
from t2t_lite.data import data_dir, shards
from t2t_lite.imports import imported, marian
from t2t_lite.text import any_vocabulary


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    for side in ("source", "target"):
        lines = [f"{side} sentence number {i}" for i in range(200)]
        (folder / f"train.{side}").write_text("\n".join([*lines, ""]) + "\n")
        (folder / f"dev.{side}.gz").write_bytes(gzip.compress("\n".join(lines[:9]).encode()))
    return folder


def _run(*flags):
    return datagen.main(["t2t-lite-datagen", *(f"--{flag}" for flag in flags)])


def test_a_corpus_becomes_data(corpus, tmp_path, capsys):
    flags = ["problem=parallel_text", f"raw_dir={corpus}", f"data_dir={tmp_path / 'data'}"]
    assert _run(*flags, "num_workers=1") == 0
    out, err = capsys.readouterr()
    assert "train: 200 pairs" in out
    assert "dropped 1 empty" in out
    assert "dev: 9 pairs" in out
    assert "the text supports no more; 32,000 were asked for" in out
    assert err.splitlines() == ["read text", "learn vocabulary", "encode", "write shards"]
    assert _run(*flags) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("exists already: --overwrite replaces the data")


def test_an_imported_models_vocabulary_and_its_training(corpus, tmp_path, capsys):
    marian_numbers.write(tmp_path)
    read = marian.read(tmp_path)
    imported.write(read, tmp_path / "run")
    data, run = tmp_path / "data", tmp_path / "run"
    flags = ["problem=parallel_text", f"raw_dir={corpus}", f"data_dir={data}"]
    assert _run(*flags, f"vocab_from={run}", "num_workers=1") == 0
    assert "learn vocabulary" not in capsys.readouterr().err
    path = data / "vocab.parallel_text.yml.marian"
    assert path.read_bytes() == read.vocabulary
    # Each side is cut by its own model.
    vocab = any_vocabulary.load(path)
    problem = registry.problem("parallel_text")
    record = next(iter(shards.read(data_dir.read(data, problem).shards("dev")[0])))
    sides = (
        vocab.encode("source sentence number 0"),
        vocab.targets.encode("target sentence number 0"),
    )
    assert list(shards.ids(record).values()) == [[*ids, 1] for ids in sides]
    # It is the same again, and another vocabulary is another request.
    assert _run(*flags, f"vocab_from={run}") == 0
    assert _run(*flags) == 1
    assert "made otherwise: vocab_size" in capsys.readouterr().err
    trained = tmp_path / "trained"
    train = [f"--warm_start_from={run}", f"--hparams_set={run}", "--train_steps=2"]
    train += ["--hparams=batch_tokens=100", "--problem=parallel_text", f"--data_dir={data}"]
    assert trainer.main(["t2t-lite-trainer", f"--output_dir={trained}", *train]) == 0
    assert "weights from" in "".join(capsys.readouterr())
    # The name of the vocabulary does not grow from one model to the next.
    assert _run(*flags[:2], f"data_dir={tmp_path / 'next'}", f"vocab_from={trained}") == 0
    assert (tmp_path / "next" / path.name).exists()


def test_files_are_listed_and_columns_chosen(corpus, tmp_path, capsys):
    (corpus / "train").mkdir()
    lines = [f"{i}\t0.5\tzwei {i}\ttwo {i}\n" for i in range(30)]
    (corpus / "train" / "web.tsv").write_text("".join(lines))
    (corpus / "train" / "news.csv").write_text("source,id,target\n" + "two,1,zwei\n" * 2)
    (corpus / "weights.tsv").write_text("train/news.csv\t3\n")
    (corpus / "notes.md").write_text("no text")
    flags = ["problem=parallel_text", f"raw_dir={corpus}", f"data_dir={tmp_path / 'data'}"]
    assert _run(*flags, "columns=4", "num_workers=1") == 1
    assert "--columns are two, " in capsys.readouterr().err
    assert _run(*flags, "columns=4,3", "num_workers=1") == 0
    out = capsys.readouterr().out
    for line in (
        "  201 pairs: train.source + train.target\n",
        "  6 pairs: train/news.csv\n",
        "  30 pairs: train/web.tsv\n",
        "  9 pairs: dev.source.gz + dev.target.gz\n",
        "warning: 9 of 9 dev pairs are also training pairs\n",
        "not read: notes.md\n",
    ):
        assert line in out
    assert _run(*flags, "columns=3,4") == 1
    assert "made otherwise: columns 4,3 -> 3,4" in capsys.readouterr().err


def test_symbols_digits_and_rare_characters(corpus, tmp_path, capsys):
    (corpus / "train.tsv").write_text("<2de> a <nl> b ☃\tzwei <nl>\n" * 9)
    flags = ["problem=parallel_text", f"raw_dir={corpus}", f"data_dir={tmp_path / 'data'}"]
    more = ["user_defined_symbols=<nl>,<2de>", "split_digits", "character_coverage=0.99"]
    assert _run(*flags, *more, "vocab_size=350", "num_workers=1") == 0
    vocab = data_dir.read(tmp_path / "data", registry.problem("parallel_text")).vocabulary
    texts = [vocab.pieces[token] for token in vocab.encode("<2de>number 199<nl>☃")]
    assert {"<2de>", "<nl>", "1", "9", "<0xE2>"} < set(texts)
    assert vocab.tokenizer().tokenize("<2de>x<nl> 19").numpy().tolist() == vocab.encode(
        "<2de>x<nl> 19"
    )
    assert _run(*flags, f"vocab_from={tmp_path}", "split_digits") == 1
    assert "--split_digits is that of --vocab_from's vocabulary" in capsys.readouterr().err


def test_names_that_are_not_utf8(corpus, tmp_path, capsys):
    raw_dir = tmp_path / os.fsdecode(b"caf\xe9")
    corpus.rename(raw_dir)
    (raw_dir / "train").mkdir()
    (raw_dir / "train" / os.fsdecode(b"d\xe9j\xe0.tsv")).write_text("two\tzwei\n" * 9)
    (raw_dir / "weights.tsv").write_text("train/d\ufffdj\ufffd.tsv\t1.5\n")
    flags = ["problem=parallel_text", f"raw_dir={raw_dir}", "num_workers=1"]
    for data_dir_ in (tmp_path / "data", tmp_path / os.fsdecode(b"d\xe9")):
        assert _run(*flags, f"data_dir={data_dir_}") == 0
        assert " pairs: train/d\ufffdj\ufffd.tsv\n" in capsys.readouterr().out
        assert _run(*flags, f"data_dir={data_dir_}") == 0


def test_vocabularies_that_do_not_fit_are_refused(corpus, tmp_path, capsys):
    marian_numbers.write(tmp_path)
    imported.write(marian.read(tmp_path), tmp_path / "run")
    flags = [f"raw_dir={corpus}", f"data_dir={tmp_path / 'data'}", f"vocab_from={tmp_path}/run"]
    for more, message in (
        (["problem=parallel_text", "vocab_size=9"], "leave one of the two out"),
        (["problem=parallel_text_rev"], "cuts each side by itself"),
        (["problem=wsj_parsing"], "has learnt translation, not parsing"),
        (["problem=parallel_text", "vocab_from=none"], "is not an output_dir"),
    ):
        assert _run(*flags, *more) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
    assert not (tmp_path / "data").exists()


def test_a_line_without_end_is_named(corpus, tmp_path, capsys):
    for side in ("source", "target"):
        (corpus / f"train.{side}").write_text("a dog\n" + "x" * 100_001 + "\na cat\n" * 20)
    assert _run("problem=parallel_text", f"raw_dir={corpus}", f"data_dir={tmp_path / 'data'}") == 0
    out = capsys.readouterr().out
    assert "dropped what has more than 100,000 characters a side: pair 2" in out
