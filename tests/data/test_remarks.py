"""What looks wrong in a corpus is said once, with numbers; what is right is not spoken of."""

import numbered_corpus
import pytest

from t2t_lite import errors, registry
from t2t_lite.text import cleaning

EN = ["the", "dog", "sees", "a", "small", "house", "and", "it", "runs", "away"]
DE = ["der", "hund", "sieht", "ein", "kleines", "haus", "und", "er", "rennt", "weg"]


def _pairs(count, first=0):
    numbers = [(i % 10, i // 10 % 10, i // 100) for i in range(first, first + count)]
    return [(f"{EN[a]} {EN[b]} {c}", f"{DE[a]} {DE[b]} {c}") for a, b, c in numbers]


def _generate(folder, corpora, **options):
    """Generate with files of pairs by name, and return the remarks."""
    raw_dir = folder / "raw"
    (raw_dir / "train").mkdir(parents=True)
    for name, pairs in corpora.items():
        (raw_dir / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    made = numbered_corpus.generate(
        registry.problem("parallel_text"), raw_dir, folder / "data", vocab_size=300, **options
    )
    return made.splits["train"]["remarks"]


def _swapped(pairs):
    return [pair[::-1] for pair in pairs]


DEV = _pairs(100, 900)


@pytest.mark.parametrize(
    ("train", "remarks"),
    [
        ({"train/a": _pairs(300), "train/b": _pairs(100, 300)}, []),
        (
            {"train/a": _pairs(300), "train/b": _swapped(_pairs(100, 300))},
            [
                "the sides of train/b.tsv look swapped: of 400 words that dev has on one side "
                "only, 400 are on the other side here"
            ],
        ),
        (
            {"train": _pairs(300), "train.2": [(a, a) for a, _ in _pairs(60)] + _pairs(40, 300)},
            ["train.2.tsv: both sides are equal in 60 of 100 pairs"],
        ),
        (
            {"train": _pairs(300) + DEV[:7] + _swapped(DEV[7:9])},
            [
                "7 of 100 dev pairs are also training pairs",
                "2 of 100 dev pairs are also training pairs with their sides swapped",
            ],
        ),
        (
            {"train": _pairs(300) + _pairs(100)},
            ["100 of 400 training pairs occurred before: --drop_duplicates drops them"],
        ),
        (
            {"train": [*_pairs(300), ('"He said, ""yes"""', "Ja"), ('"Yes"', "Ja")]},
            [
                'train.tsv: 1 of 604 texts have quotes as CSV does ("He said, ""yes"""): if it is '
                "CSV, call it .csv"
            ],
        ),
    ],
)
def test_remarks(tmp_path, train, remarks):
    assert _generate(tmp_path, {**train, "dev": DEV}) == remarks


def test_what_is_dropped_is_not_spoken_of(tmp_path):
    clean = cleaning.Cleaning(drop_duplicates=True)
    assert _generate(tmp_path, {"train": _pairs(300) * 2, "dev": DEV}, cleaning=clean) == []


@pytest.mark.parametrize("broken", [9, 11])
def test_other_splits_that_are_not_utf8_are_counted_or_refused(tmp_path, broken):
    raw_dir = numbered_corpus.write(tmp_path / "raw", 500)
    lines = [b"gr\xfcn" if i < broken else b"gruen" for i in range(20)]
    (raw_dir / "test.source.gz").unlink()
    (raw_dir / "test.target.gz").unlink()
    (raw_dir / "test.tsv").write_bytes(b"".join(line + b"\tgreen\n" for line in lines))
    problem = registry.problem("parallel_text")
    if broken > 10:
        with pytest.raises(errors.UserError, match="11 of 20 test pairs of parallel_text are not"):
            numbered_corpus.generate(problem, raw_dir, tmp_path / "data")
    else:
        made = numbered_corpus.generate(problem, raw_dir, tmp_path / "data")
        assert made.splits["test"]["not_utf8"] == 9
