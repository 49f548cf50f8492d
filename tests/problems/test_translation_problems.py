"""The problems that come with the package."""

import shutil

import pytest

from t2t_lite import registry
from t2t_lite.evaluate import bleu


def test_every_problems_outputs_can_be_scored():
    for name in registry.problems():
        problem = registry.problem(name)
        if name.startswith("parallel_text"):
            assert problem.languages == ("", "")
        elif problem.task == "translation":
            bleu.check_language(problem.target_language)


def test_vocabularies_are_the_papers():
    assert registry.problem("wmt14_ende").vocabulary_size == 37_000
    assert registry.problem("wmt14_enfr").vocabulary_size == 32_000


@pytest.mark.parametrize("name", ["toy_ende", "toy_enfr"])
def test_toy_splits_are_disjoint_and_repeat(name):
    problem = registry.problem(name)
    problem.sizes = {"dev": 50, "test": 40, "train": 300}
    splits = {split: list(problem.samples(split)) for split in problem.splits()}
    assert {split: len(found) for split, found in splits.items()} == problem.sizes
    texts = [one[side] for found in splits.values() for one in found for side in one]
    assert len(set(texts)) == len(texts)
    assert list(problem.samples("dev")) == splits["dev"]


CAPTIONS = {"dev": 1014, "test": 1000, "test_2017_flickr": 1000}


@pytest.mark.parametrize("pair", ["ende", "enfr"])
@pytest.mark.parametrize(
    ("corpus", "sizes"), [("multi30k", CAPTIONS), ("tatoeba", {"dev": 1000, "test": 2000})]
)
def test_real_corpora_are_read_whole(shared_data, corpus, pair, sizes):
    problem = registry.problem(f"{corpus}_{pair}")
    raw_dir = shared_data / corpus
    assert set(problem.splits(raw_dir)) == {"train", *sizes}
    for split, size in sizes.items():
        assert sum(1 for _ in problem.samples(split, raw_dir=raw_dir)) == size
    first = next(problem.samples("train", raw_dir=raw_dir))
    assert first["inputs"] != first["targets"]


def test_multi30k_needs_no_second_test_set(shared_data, tmp_path):
    for path in (shared_data / "multi30k").glob("*.??.gz"):
        if "2017" not in path.name:
            (tmp_path / path.name).symlink_to(path)
    assert registry.problem("multi30k_ende").splits(tmp_path) == ("train", "dev", "test")


def test_wmt_reads_plain_text(tmp_path, shared_data):
    for stem in ("newstest2013", "newstest2014"):
        for side in ("en", "de"):
            shutil.copy(shared_data / "newstest" / f"{stem}.en-de.{side}.gz", tmp_path)
    for side, text in (("en", "one\ntwo\n"), ("de", "eins\nzwei\n")):
        (tmp_path / f"train.{side}").write_text(text)
    problem = registry.problem("wmt14_ende")
    assert len(problem.raw_files(tmp_path)) == 6
    assert len(list(problem.samples("train", raw_dir=tmp_path))) == 2
    dev = next(problem.samples(problem.split("newstest2013"), raw_dir=tmp_path))
    assert dev == {
        "inputs": "A Republican strategy to counter the re-election of Obama",
        "targets": "Eine republikanische Strategie, um der Wiederwahl von Obama entgegenzutreten",
        "file": "newstest2013.en-de.en.gz + newstest2013.en-de.de.gz",
    }
    assert sum(1 for _ in problem.samples("test", raw_dir=tmp_path)) == 3003
