"""A data_dir says what it holds, and is checked against what it says."""

import json
import random

import numpy as np
import pytest

from t2t_lite import errors, registry
from t2t_lite.data import data_dir, generate, lengths, problem, shards


class Numbers(problem.TranslationProblem):
    """A few lines, for these tests."""

    vocabulary_size = 280
    split_names = {"exam": "test"}  # noqa: RUF012

    def samples(self, split, *, raw_dir=None, tmp_dir=None):
        """Yield as many pairs as the split's name has letters, twice."""
        for i in range(2 * len(split)):
            yield {"inputs": f"number {i}", "targets": f"{split} {i * i}"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return generate.generate(Numbers(), data_dir=tmp_path_factory.mktemp("data"), num_workers=1)


def test_what_was_written_is_read(data):
    assert data.vocabulary_path.name == "vocab.numbers.280.model"
    assert {split: data.pairs(split) for split in data.splits} == {"train": 10, "dev": 6, "test": 8}
    assert data_dir.read(data.folder, Numbers()) == data
    data.check_files()


def test_text_and_lengths_are_as_the_problem_reads_them(data):
    text = data.text("exam")
    assert text.sources[3] == "number 3"
    assert text.references[3] == "test 9"
    reverse = data_dir.read(data.folder, Numbers().reversed_problem())
    assert reverse.text("test") == data_dir.Text(text.references, text.sources)
    assert (data.lengths("dev")[:, [1, 0, 2]] == reverse.lengths("dev")).all()
    assert data.lengths("dev")[:, 2].sum() == 6


@pytest.mark.parametrize("is_sampled", [False, True])
def test_pairs_just_above_max_length_are_no_training_data(tmp_path, is_sampled):
    """Long lengths are rounded up in the histogram, so it cannot tell."""
    text = "".join(random.Random(1).choices("abcdefghij", k=400)) + "j"

    class Long(problem.TranslationProblem):
        vocabulary_size = 280

        def samples(self, split, *, raw_dir=None, tmp_dir=None):
            yield from [{"inputs": text, "targets": "x"}] * 3

    made = generate.generate(Long(), data_dir=tmp_path, num_workers=1)
    if is_sampled:  # as those of tensor2tensor's data
        made.splits["train"]["lengths_sampled"] = True
    (ids, *_) = shards.read_examples(made.shards("train"))
    length = len(ids["inputs"])
    assert (
        lengths.round_up(np.array([length, length - 1])).tolist()
        == [made.lengths("train")[0, 0]] * 2
    )
    assert made.train_lengths(length)[0, 0] == length
    with pytest.raises(errors.UserError, match="no training pair of long has at most max_length"):
        made.train_lengths(length - 1)


def test_an_unknown_split_names_those_there_are(data):
    with pytest.raises(errors.UserError, match=r"no text of split 'train'.* dev, test"):
        data.text("train")
    with pytest.raises(errors.UserError, match=r"no split 'val'.* train, dev, test"):
        data.shards("val")


def test_another_problems_data_and_an_empty_folder_are_named(data, tmp_path):
    toy = registry.problem("toy_ende")
    with pytest.raises(errors.UserError, match=r"was made for numbers, not for toy_ende"):
        data_dir.read(data.folder, toy)
    with pytest.raises(errors.UserError, match=r"run t2t-lite-datagen --problem=toy_ende"):
        data_dir.read(tmp_path, toy)


def test_files_that_do_not_match_are_named(tmp_path):
    data = generate.generate(Numbers(), data_dir=tmp_path, num_workers=1)
    # Another vocabulary of the same size is found at once.
    content = data.vocabulary_path.read_bytes()
    data.vocabulary_path.write_bytes(content[::-1])
    with pytest.raises(errors.UserError, match=f"other contents in {data.vocabulary_path.name}"):
        data.check_files()
    data.vocabulary_path.write_bytes(content)
    (path,) = data.shards("dev")
    path.write_bytes(path.read_bytes()[:-1])
    for _ in ("cut", "missing"):
        with pytest.raises(errors.UserError, match=rf"{path.name}.*numbers.manifest"):
            data.check_files()
        path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"3", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe{}", b"9" * 5_000]
)
def test_what_is_not_a_manifest_is_named(tmp_path, content):
    (tmp_path / "numbers.manifest.json").write_bytes(content)
    with pytest.raises(errors.UserError, match="is not a manifest"):
        data_dir.read(tmp_path, Numbers())


def test_another_format_and_a_changed_manifest_are_named(data, tmp_path):
    content = json.loads((data.folder / "numbers.manifest.json").read_text())
    for change, message in (
        ({"format": 99}, "another version"),
        ({"options": {"vocab_size": 7}}, "changed after it was"),
    ):
        (tmp_path / "numbers.manifest.json").write_text(json.dumps({**content, **change}))
        with pytest.raises(errors.UserError, match=message):
            data_dir.read(tmp_path, Numbers())
