"""What a problem says of itself, and what it says of missing files."""

import pytest

from t2t_lite import errors, registry
from t2t_lite.data import problem


class Wmt99Ende(problem.ParallelTextProblem):
    """A problem for these tests."""

    stems = {"train": ("train",), "dev": ("val", "dev"), "test": ("news99",)}  # noqa: RUF012
    optional_splits = ("test",)
    split_names = {"news99": "test"}  # noqa: RUF012


@pytest.fixture
def raw_dir(tmp_path):
    for stem in ("train", "dev"):
        (tmp_path / f"{stem}.en").write_text("one\ntwo\n")
        (tmp_path / f"{stem}.de").write_text("eins\nzwei\n")
    return tmp_path


def test_names():
    forward, backward = Wmt99Ende(), Wmt99Ende().reversed_problem()
    assert (forward.name, backward.name) == ("wmt99_ende", "wmt99_ende_rev")
    assert (forward.base_name, backward.base_name) == ("wmt99_ende", "wmt99_ende")
    assert forward.target_language == "de"
    assert backward.target_language == "en"
    assert backward.reversed_problem().name == "wmt99_ende"
    for each in (forward, backward):
        assert each.vocabulary_file(800) == "vocab.wmt99_ende.800.model"
    assert forward.split("news99") == "test"
    assert forward.split("dev") == "dev"


def test_sides_are_the_languages_where_these_are_not_named():
    class Sides(Wmt99Ende):
        sides = ("cs", "fr")

    class Both(Wmt99Ende):
        sides = ("source", "target")
        languages = ("cs", "fr")

    class Named(problem.ParallelTextProblem):
        sides = ("source", "cs")

    class Mine(problem.TranslationProblem):
        pass

    assert Sides().languages == Both().languages == Sides().sides == ("cs", "fr")
    assert Both().sides == ("source", "target")
    assert Wmt99Ende().languages == ("en", "de")
    assert Named().target_language == "cs"
    # A language that nobody told is unknown.
    assert Mine().target_language == Mine().reversed_problem().target_language == ""


def test_samples_are_read_forward_by_both(raw_dir):
    texts = [{"inputs": "one", "targets": "eins"}, {"inputs": "two", "targets": "zwei"}]
    expected = [{**one, "file": "dev.en + dev.de"} for one in texts]
    assert list(Wmt99Ende().samples("dev", raw_dir=raw_dir)) == expected
    assert list(Wmt99Ende().reversed_problem().samples("dev", raw_dir=raw_dir)) == expected


def test_optional_splits_are_there_or_not_and_missing_files_are_named(raw_dir):
    assert Wmt99Ende().splits(raw_dir) == ("train", "dev")
    for side in ("en", "de"):
        (raw_dir / f"news99.{side}").write_text("x\n")
    assert Wmt99Ende().splits(raw_dir) == ("train", "dev", "test")
    assert len(Wmt99Ende().raw_files(raw_dir)) == 6
    (raw_dir / "dev.de").rename(raw_dir / "val.de")
    with pytest.raises(
        errors.UserError, match=r"val.de cannot be used as val: there is no file of"
    ):
        Wmt99Ende().raw_files(raw_dir)
    (raw_dir / "val.de").unlink()
    (raw_dir / "dev.en").unlink()
    with pytest.raises(errors.UserError, match=rf"{raw_dir} lacks val.en and val.de"):
        Wmt99Ende().raw_files(raw_dir)


def test_splits_are_of_one_direction(tmp_path):
    generic = registry.problem("parallel_text")
    for name in ("train.de-en.de", "train.de-en.en", "dev.en-de.en", "dev.en-de.de"):
        (tmp_path / name).write_text("x\n")
    with pytest.raises(
        errors.UserError, match=r"files from (de-en and from en|en-de and from de)-"
    ):
        generic.raw_files(tmp_path)
    for side in ("de", "en"):
        (tmp_path / f"dev.en-de.{side}").rename(tmp_path / f"dev.de-en.{side}")
    assert len(generic.raw_files(tmp_path)) == 4


def test_every_translation_problem_has_its_reverse():
    names = registry.problems()
    for name in (
        *("wmt14_ende", "wmt14_enfr", "multi30k_ende", "multi30k_enfr", "tatoeba_ende"),
        *("tatoeba_enfr", "parallel_text", "toy_ende", "toy_enfr", "translate_ende_wmt32k"),
    ):
        assert registry.problem(name).name == name
        assert registry.problem(f"{name}_rev").name == f"{name}_rev"
        assert f"{name}_rev" in names
