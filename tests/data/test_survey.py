"""The vocabulary's sample: spread evenly, bounded, the same in whatever order it is drawn."""

import collections
import copy
import pickle
import random

import pytest

from t2t_lite.data import survey as surveys

COUNT, CHUNK = 12_500, 1_000


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(surveys, "_SAMPLE_CHARACTERS", 100_000)


def _chunks(size=CHUNK):
    for first in range(0, COUNT, size):
        numbers = range(first, min(first + size, COUNT))
        yield first, [f"{'the dog ' * (i % 5)}{i}" for i in numbers], [f"a {i}" for i in numbers]


def _surveyed(chunks):
    survey = surveys.Survey(1, False)
    for chunk in chunks:
        survey.add(*chunk)
    return survey


def test_the_sample_is_spread_evenly_and_bounded():
    survey = _surveyed(_chunks())
    assert survey.pairs == COUNT
    assert not survey.symbols
    sample = survey.sentences()
    assert 40_000 < sum(map(len, sample)) == survey.size <= 100_000
    numbers = [int(text.split()[-1]) for text in sample[::2]]
    assert numbers == sorted(numbers)
    quarters = collections.Counter(4 * number // COUNT for number in numbers)
    assert all(0.2 < n / len(numbers) < 0.3 for n in quarters.values())


@pytest.mark.parametrize("seed", range(5))
def test_parts_in_any_order_give_the_same_sample(seed):
    expected = _surveyed(_chunks()).sentences()
    assert _surveyed(_chunks(777)).sentences() == expected
    chunks = list(_chunks(500))
    random.Random(seed).shuffle(chunks)
    merged = surveys.Survey(1, False)
    for start in range(0, len(chunks), 7):
        part = _surveyed(chunks[start : start + 7])
        merged.merge(pickle.loads(pickle.dumps(part)))
    assert merged.sentences() == expected
    assert (merged.pairs, merged.has_text, merged.broken) == (COUNT, True, 0)


def test_a_sparse_survey_has_the_same_sample_or_says_that_it_may_not():
    expected = _surveyed(_chunks())
    for size in (1, expected.size, COUNT * 20, 10**7, 10**9):
        sparse = surveys.Survey(1, False).sparse(size)
        survey = copy.deepcopy(sparse)
        for chunk in _chunks():
            survey.add(*chunk)
        assert survey.may_lack_pairs(sparse) == (size >= 10**7)
        if size < 10**7:
            assert survey.sentences() == expected.sentences()
        else:
            assert survey.size < expected.size


def test_symbols_are_collected_and_not_sampled():
    survey, other = surveys.Survey(1, True), surveys.Survey(1, True)
    survey.add(0, ["the dog"], [" (S A )S"])
    other.add(1, ["a cat"], [" (S B )S"])
    survey.merge(other)
    assert survey.symbols == {" (S", " A", " B", " )S"}
    assert survey.sentences() == ["the dog", "", "a cat", ""]
