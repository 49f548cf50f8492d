"""scripts/make_shortlist.py: what it learns, and that a translator reads what it writes."""

import importlib.util
import itertools
import pathlib

import numpy as np
import pytest
import tiny_run

from t2t_lite import registry
from t2t_lite.data import manifest
from t2t_lite.decode import candidates, shortlist
from t2t_lite.text import any_vocabulary, t2t_vocabulary

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "make_shortlist.py"
NUM_IDS = 30


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_shortlist", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pairs(script):
    """Return a bitext in which source i means target i + 10, in any order, after an article."""
    rng = np.random.default_rng(1)
    sources = [rng.permutation(np.arange(4, 14))[:5].tolist() for _ in range(60)]
    targets = [[3, *rng.permutation(np.array(one) + 10).tolist()] for one in sources]
    return _bitext(script, [[*one, 1] for one in sources], targets)


def _bitext(script, sources, targets):
    sides = []
    for rows in (sources, targets):
        sides += [np.array([token for row in rows for token in row], np.int32)]
        sides += [np.cumsum([0, *map(len, rows)])]
    return script.Bitext(*sides)


def _pairs_of(bitext):
    for number in range(bitext.num_pairs):
        source = slice(*bitext.source_starts[number : number + 2])
        target = slice(*bitext.target_starts[number : number + 2])
        yield bitext.sources[source].tolist(), bitext.targets[target].tolist()


def test_the_right_pairs_are_the_likeliest(script, pairs):
    learnt = script.learn(pairs, NUM_IDS, iterations=10)
    listed = script.rows(learnt, NUM_IDS, np.array([3]), most=1, shares_pieces=False)
    assert [ids.tolist() for ids in listed[4:14]] == [[i + 10] for i in range(4, 14)]
    assert not any(map(len, listed[14:]))


def test_em_is_the_textbooks(script, pairs, monkeypatch):
    # Brown et al. 1993, model 1, in plain loops; in chunks of a few links
    monkeypatch.setattr(script, "_LINKS", 100)
    table = {
        (s, t): 1.0
        for sources, targets in _pairs_of(pairs)
        for s, t in itertools.product(sources, targets)
    }
    for _ in range(3):
        counts = dict.fromkeys(table, 0.0)
        for sources, targets in _pairs_of(pairs):
            for target in targets:
                total = sum(table[source, target] for source in sources)
                for source in sources:
                    counts[source, target] += table[source, target] / total
        sums = {s: sum(c for (one, _), c in counts.items() if one == s) for s, _ in table}
        table = {(s, t): count / sums[s] for (s, t), count in counts.items()}
    learnt = script.learn(pairs, NUM_IDS, iterations=3)
    assert learnt.keys.tolist() == sorted(s * NUM_IDS + t for s, t in table)
    expected = [table[divmod(key, NUM_IDS)] for key in learnt.keys.tolist()]
    np.testing.assert_allclose(learnt.probabilities, expected, rtol=1e-9)


def test_memory_is_bounded_by_what_is_seen_together_most(script):
    sources = [[5, 1]] * 3 + [[6, 1]] * 2 + [[7, 1]]
    bitext = _bitext(script, sources, [[20]] * 3 + [[21]] * 2 + [[22]])
    learnt = script.learn(bitext, NUM_IDS, iterations=1, most=4)
    kept = [divmod(key, NUM_IDS) for key in learnt.keys.tolist()]
    assert kept == [(1, 20), (1, 21), (5, 20), (6, 21)]


def test_a_row_has_neither_what_comes_always_nor_itself_twice(script):
    learnt = script.Lexicon(np.array([41, 42, 43]) + 80, np.array([0.2, 0.5, 0.3]), 40)
    listed = script.rows(learnt, 4, np.array([2]), most=5, shares_pieces=True)
    assert [ids.tolist() for ids in listed] == [[0], [1], [], [3, 1]]


def test_what_no_line_can_name_counts_as_listed_and_unknown_does_not(script, tmp_path):
    pieces = ["<pad>_", "<EOS>_", "the_", ", _", "dog_", "cat_"]
    vocabulary = t2t_vocabulary.SubwordVocabulary("\n".join(map(repr, pieces)).encode())
    always = script.frequent(np.array([2, 2, 4, 4, 4, 5]), vocabulary, 2)
    assert always.tolist() == [4, 2, 3]
    script.write(str(tmp_path / "list"), vocabulary, [np.array([], int)] * 5 + [always], always)
    assert (tmp_path / "list").read_text("utf-8") == "\tdog_ the_\ncat_\tdog_ the_\n"
    own = tiny_run.subwords()
    assert script.frequent(np.array([2, 2, 2, 7]), own, 2).tolist() == [7]


def test_coverage(script):
    bitext = _bitext(script, [[4, 1], [5, 4, 1]], [[7, 8], [9, 9]])
    listed = [np.array([], int)] * 4 + [np.array([7]), np.array([9])]
    # 7 of 7 8 with 3 and 7 listed; 9 9 with 3, 7 and 9
    assert script.coverage(bitext, listed, np.array([3])) == (0.75, 2.5)


def test_a_problems_shards_give_a_shortlist(script, tiny_data, tmp_path, monkeypatch, capsys):
    path = tmp_path / "shortlist.txt"
    argv = ["", "--problem=parallel_text", f"--data_dir={tiny_data}"]
    argv += [f"--output={path}", "--frequent=5"]
    monkeypatch.setattr("sys.argv", argv)
    assert script.main() == 0
    assert "% of the target tokens are listed" in capsys.readouterr().out
    data = manifest.load(tiny_data, registry.problem("parallel_text"))
    words = any_vocabulary.load(data.vocabulary_path)
    always = path.read_text("utf-8").splitlines()[0]
    assert always.startswith("\t")
    assert always.count(" ") == 4
    found = shortlist.Shortlist(path, words, candidates.EmittableIds(words.size, forbidden=(0, 2)))
    assert found.columns(np.array([[1]], np.int32)).ids.shape[0] < words.size


def test_a_users_mistake_is_one_line(script, tmp_path, monkeypatch, capsys):
    argv = ["", "--problem=toy_ende", f"--data_dir={tmp_path}", "--output=x"]
    monkeypatch.setattr("sys.argv", argv)
    assert script.main() == 1
    assert capsys.readouterr().err.startswith("make_shortlist: ")
