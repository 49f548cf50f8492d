"""BPE-dropout: without dropout BPE itself, with it the paper's probabilities, always the text."""

import collections
import gzip
import itertools
import subprocess
import sys

import numpy as np
import pytest

from t2t_lite.text import bpe_dropout, vocabulary

CORPUS = ["the cat sat on the mat", "a  cat and another cat", "mats and cats, ☃ and hats"] * 50


@pytest.fixture(scope="module")
def vocab():
    return vocabulary.Vocabulary(vocabulary.train(CORPUS, 330, symbols=["<2de>"]))


def _flat(rows):
    return np.array([*itertools.chain(*rows)], np.int32), np.array([len(row) for row in rows])


def _rows(flat, lengths):
    return [row.tolist() for row in np.split(flat, np.cumsum(lengths)[:-1])]


def _texts(vocab, texts, share, seed=0):
    rows = [[*ids, vocabulary.EOS_ID] for ids in vocab.encode_batch(texts)]
    return rows, _rows(*bpe_dropout.BPEDropout(vocab)(*_flat(rows), share=share, seed=[seed]))


TEXTS = ["the cat", "", " mats  and\thats", "<2de>the 🐈 ☃☃ sat,a cat", "q"]


def test_without_dropout_it_is_the_vocabularys_own_encoding(vocab):
    rows, cut = _texts(vocab, TEXTS, 0.0)
    assert cut == rows


def test_without_dropout_it_is_the_librarys_encoding_of_real_text(shared_data):
    with gzip.open(shared_data / "multi30k" / "train.de.gz", "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in itertools.islice(file, 3000)]
    rows, cut = _texts(vocabulary.Vocabulary(vocabulary.train(lines, 2000)), lines, 0.0)
    assert cut == rows


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_the_text_stays(vocab, share):
    rows, cut = _texts(vocab, TEXTS, share)
    assert [vocab.decode(ids) for ids in cut] == TEXTS
    assert all(ids[-1] == vocabulary.EOS_ID for ids in cut)
    assert cut != rows


def test_all_left_out_are_characters(vocab):
    _, cut = _texts(vocab, ["the cat"], 1.0)
    assert [vocab.piece(token) for token in cut[0]] == [*"the▁cat", "</s>"]


def _distribution(symbols, ids, share):
    """Return the probability of every outcome of algorithm 1 for a word, a step at a time."""
    ranks = [
        (ids.get(one + other), at) for at, (one, other) in enumerate(itertools.pairwise(symbols))
    ]
    outcomes: dict[tuple[str, ...], float] = collections.defaultdict(float)
    left = 1.0
    for _, at in sorted(pair for pair in ranks if pair[0]):
        joined = (*symbols[:at], symbols[at] + symbols[at + 1], *symbols[at + 2 :])
        for outcome, probability in _distribution(joined, ids, share).items():
            outcomes[outcome] += left * (1 - share) * probability
        left *= share  # it was left out, and so were those before it
    outcomes[symbols] += left
    return outcomes


@pytest.mark.parametrize("word", ["cat", "cats", "hahat"])
def test_probabilities_are_those_of_the_papers_algorithm(vocab, word):
    ids = {vocab.piece(token): token for token in range(vocab.byte_ids.stop, vocab.size)}
    expected = _distribution(tuple(word), ids, 0.3)
    assert len(expected) > 2
    assert sum(expected.values()) == pytest.approx(1)
    _, cut = _texts(vocab, [word] * 20_000, 0.3)
    found = collections.Counter(tuple(map(vocab.piece, row[:-1])) for row in cut)
    assert found.keys() <= expected.keys()
    for outcome, probability in expected.items():
        assert found[outcome] / len(cut) == pytest.approx(probability, abs=0.015), outcome


def test_a_seed_says_the_same_in_every_process(vocab, tmp_path):
    path = tmp_path / "vocab.model"
    path.write_bytes(vocab.model_bytes)
    code = (
        "import sys, numpy as np\n"
        "from t2t_lite.text import bpe_dropout, vocabulary\n"
        "vocab = vocabulary.Vocabulary.load(sys.argv[1])\n"
        "ids = np.array(vocab.encode('the cat and another hat') * 20, np.int32)\n"
        "print(bpe_dropout.BPEDropout(vocab)(ids, np.array([len(ids)]), share=0.3, seed=[5])[0])\n"
    )
    one, other = (
        subprocess.run(
            [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    )
    assert one == other
