"""Generation: the same bytes whatever the workers, the chunks and the interruptions."""

import collections
import gzip
import json
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from t2t_lite import errors, registry
from t2t_lite.data import generate, manifest, shards
from t2t_lite.data import problem as problems
from t2t_lite.text import cleaning, text_files, vocabulary

WORDS = ["the", "dog", "cat", "house", "sees", "runs", "green", "small", "and", "of", "never"]


def _pairs(count, seed=0):
    rng = random.Random(seed)
    for i in range(count):
        words = rng.choices(WORDS, k=rng.randint(1, 12))
        yield f"{' '.join(words)} {i}", f"{' '.join(reversed(words))} {i}"


def _write_corpus(folder, count, *, extra=()):
    folder.mkdir(parents=True, exist_ok=True)
    for split, size, seed in (("train", count, 1), ("dev", 30, 2), ("test", 20, 3)):
        pairs = [*_pairs(size, seed), *(extra if split == "train" else ())]
        for side, lines in zip(("source", "target"), zip(*pairs)):
            content = "".join(line + "\n" for line in lines).encode()
            (folder / f"{split}.{side}.gz").write_bytes(gzip.compress(content, mtime=0))
    return folder


@pytest.fixture(scope="module")
def raw_dir(tmp_path_factory):
    return _write_corpus(tmp_path_factory.mktemp("raw"), 12_500)


@pytest.fixture(scope="module")
def problem():
    return registry.problem("parallel_text")


def _generate(problem, raw_dir, data_dir, **options):
    options = {"vocab_size": 400, "num_workers": 1, "chunk_pairs": 1_500, **options}
    return generate.generate(problem, raw_dir=raw_dir, data_dir=data_dir, **options)


@pytest.fixture(scope="module")
def made(problem, raw_dir, tmp_path_factory):
    return _generate(problem, raw_dir, tmp_path_factory.mktemp("made"))


def _contents(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def _texts(made, split):
    """Return the decoded pairs of a split's shards, in their order."""
    vocab = vocabulary.load(made.vocabulary_path)
    for path in made.shards(split):
        for record in shards.read(path):
            ids = shards.ids(record)
            assert ids["inputs"][-1] == ids["targets"][-1] == vocabulary.EOS_ID
            yield vocab.decode(ids["inputs"]), vocab.decode(ids["targets"])


def test_every_pair_is_there_once_and_shuffled(made, raw_dir):
    raw = list(text_files.read_pairs(raw_dir / "train.source.gz", raw_dir / "train.target.gz"))
    found = list(_texts(made, "train"))
    assert sorted(found) == sorted(raw)
    assert found[:100] != raw[:100]
    # a uniform shuffle: the first shard's pairs come from all over the corpus
    places = {pair: i for i, pair in enumerate(raw)}
    first = [places[pair] for pair in found[: len(found) // 2]]
    quarters = collections.Counter(4 * place // len(raw) for place in first)
    assert all(abs(n / len(first) - 0.25) < 0.03 for n in quarters.values())


def test_dev_and_test_keep_their_order_and_their_text(made, problem, raw_dir):
    for split in ("dev", "test"):
        raw = list(
            text_files.read_pairs(raw_dir / f"{split}.source.gz", raw_dir / f"{split}.target.gz")
        )
        assert list(_texts(made, split)) == raw
        text = manifest.problem_text(made.data_dir, problem, split)
        assert list(zip(text.sources, text.references)) == raw


def test_only_what_the_manifest_names_is_left(made):
    names = {entry["name"] for entry in made.files()} | {"parallel_text.manifest.json"}
    assert set(_contents(made.data_dir)) == names


def test_manifest_counts_are_those_of_the_shards(made):
    train = made.splits["train"]
    records = [shards.ids(r) for path in made.shards("train") for r in shards.read(path)]
    assert train["pairs"] == train["pairs_read"] == len(records) == 12_500
    assert train["source_tokens"] == sum(len(one["inputs"]) for one in records)
    assert train["target_tokens"] == sum(len(one["targets"]) for one in records)
    assert made.lengths("train")[:, 2].sum() == 12_500
    cells = collections.Counter((len(one["inputs"]), len(one["targets"])) for one in records)
    assert {(s, t): n for s, t, n in made.lengths("train").tolist()} == cells
    assert [shard["records"] for shard in train["shards"]] == [
        sum(1 for _ in shards.read(path)) for path in made.shards("train")
    ]
    assert made.raw_files[0]["name"] == "train.source.gz"
    assert made.vocabulary["size"] == 400
    assert made.vocabulary["subwords_per_word"] > 1


@pytest.mark.integration
@pytest.mark.parametrize("num_workers", [2, 3])
def test_bytes_do_not_depend_on_workers(made, problem, raw_dir, tmp_path, num_workers):
    other = _generate(problem, raw_dir, tmp_path, num_workers=num_workers)
    assert _contents(other.data_dir) == _contents(made.data_dir)


def test_bytes_do_not_depend_on_chunks(made, problem, raw_dir, tmp_path):
    other = _generate(problem, raw_dir, tmp_path, chunk_pairs=3_999)
    assert _contents(other.data_dir) == _contents(made.data_dir)


def test_another_seed_shuffles_otherwise(made, problem, raw_dir, tmp_path):
    other = _generate(problem, raw_dir, tmp_path, random_seed=7)
    assert sorted(_texts(other, "train")) == sorted(_texts(made, "train"))
    assert list(_texts(other, "train")) != list(_texts(made, "train"))


def test_a_second_run_changes_nothing(made, problem, raw_dir):
    before = {path: path.stat().st_mtime_ns for path in made.data_dir.iterdir()}
    assert _generate(problem, raw_dir, made.data_dir) == made
    assert _generate(problem.reversed_problem(), raw_dir, made.data_dir) == made
    assert {path: path.stat().st_mtime_ns for path in made.data_dir.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"random_seed": 1}, "random_seed 0 -> 1"),
        ({"vocab_size": 500}, "vocab_size 400 -> 500"),
        ({"cleaning": cleaning.Cleaning(max_length=9)}, "max_length 0 -> 9"),
    ],
)
def test_another_request_is_refused_with_what_differs(made, problem, raw_dir, options, difference):
    before = _contents(made.data_dir)
    with pytest.raises(errors.UserError, match=difference):
        _generate(problem, raw_dir, made.data_dir, **options)
    assert _contents(made.data_dir) == before


def test_changed_text_is_refused_and_overwrite_takes_it(problem, tmp_path):
    raw_dir, data_dir = tmp_path / "raw", tmp_path / "data"
    _write_corpus(raw_dir, 11_000)
    assert len(_generate(problem, raw_dir, data_dir).shards("train")) == 2
    _write_corpus(raw_dir, 500)
    with pytest.raises(errors.UserError, match=r"file train.source.gz \d+ bytes \w+ -> \d+ bytes"):
        _generate(problem, raw_dir, data_dir)
    made = _generate(problem, raw_dir, data_dir, overwrite=True)
    assert made.pairs("train") == 500
    assert len(list(data_dir.glob("*-train-*"))) == 1
    made.check_files()


class Folders(problems.Problem):
    """Reads the files that lie in raw_dir's folders, however they are called."""

    def raw_files(self, raw_dir=None):
        return sorted(path for path in pathlib.Path(raw_dir or "").rglob("*") if path.is_file())

    def samples(self, split, *, raw_dir=None, tmp_dir=None):
        for path in self.raw_files(raw_dir):
            for line in text_files.read_lines(path):
                yield {"inputs": line, "targets": line}


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    raw_dir, data_dir = tmp_path / "raw", tmp_path / "data"
    for name in ("02/text.txt", "03/text.txt", "04/other.txt"):
        text_files.write_lines(raw_dir / name, [f"{name} {words}" for words, _ in _pairs(200)])
    made = _generate(Folders(), raw_dir, data_dir, vocab_size=330)
    assert [entry["name"] for entry in made.raw_files] == [
        *("02/text.txt", "03/text.txt", "other.txt")
    ]
    assert _generate(Folders(), raw_dir, data_dir, vocab_size=330) == made
    first, second = raw_dir / "02" / "text.txt", raw_dir / "03" / "text.txt"
    whole = first.read_bytes(), second.read_bytes()
    for changed in ((b"new\n", whole[1]), (whole[0], b"new\n"), whole[::-1]):
        first.write_bytes(changed[0])
        second.write_bytes(changed[1])
        with pytest.raises(
            errors.UserError, match=r"made otherwise: file 0[23]/text.txt \d+ bytes"
        ):
            _generate(Folders(), raw_dir, data_dir, vocab_size=330)


def test_shards_that_no_manifest_speaks_for_are_not_removed(problem, raw_dir, tmp_path):
    (tmp_path / "parallel_text-train-00000-of-00100").write_bytes(b"someone's")
    with pytest.raises(errors.UserError, match="no manifest speaks for"):
        _generate(problem, raw_dir, tmp_path)
    assert (tmp_path / "parallel_text-train-00000-of-00100").read_bytes() == b"someone's"


def test_unequal_sides_leave_nothing_behind(problem, tmp_path):
    raw_dir = _write_corpus(tmp_path / "raw", 50)
    (raw_dir / "train.source.gz").write_bytes(gzip.compress(b"only one\n"))
    with pytest.raises(errors.UserError, match=r"has 1 lines, .*train.target.gz has 50"):
        _generate(problem, raw_dir, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_two_at_once_are_refused(problem, raw_dir, tmp_path):
    import fcntl

    work_dir = tmp_path / "parallel_text.incomplete"
    work_dir.mkdir()
    with open(work_dir / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(errors.UserError, match="another process"):
            _generate(problem, raw_dir, tmp_path)


CLEAN = cleaning.Cleaning(max_length=40, max_length_ratio=3, drop_duplicates=True)
DIRT = [
    ("", "empty source"),
    ("empty target", " \t"),
    ("a green dog " * 30, "too long"),
    ("near of", "the old small green house never sees a cat and runs always"),
    ("same", "same"),
    ("gr\ufffdn", "replaced"),
    ("same", "same"),
    ("same", "other"),
    ("same", "same"),
]


@pytest.mark.parametrize("num_workers", [1, pytest.param(2, marks=pytest.mark.integration)])
def test_what_is_dropped_is_counted_by_reason(problem, tmp_path, num_workers, monkeypatch):
    monkeypatch.setattr(generate, "_PAIRS_PER_SHARD", 500)  # equal pairs must meet in one of 7
    raw_dir = _write_corpus(tmp_path / "raw", 3_000, extra=DIRT)
    made = _generate(
        problem,
        raw_dir,
        tmp_path / "data",
        cleaning=CLEAN,
        num_workers=num_workers,
        chunk_pairs=500,
    )
    train = made.splits["train"]
    assert train["dropped"] == {"empty": 2, "too_long": 1, "length_ratio": 1, "duplicate": 2}
    assert train["pairs_read"] == 3_009
    assert train["pairs"] == 3_003
    assert train["not_utf8"] == 1
    found = collections.Counter(_texts(made, "train"))
    assert found["same", "same"] == found["same", "other"] == 1


def test_by_default_only_empty_pairs_go(problem, tmp_path):
    raw_dir = _write_corpus(tmp_path / "raw", 100, extra=DIRT)
    train = _generate(problem, raw_dir, tmp_path / "data").splits["train"]
    assert train["dropped"] == {"empty": 2, "too_long": 0, "length_ratio": 0}
    assert train["pairs"] == 107


def test_empty_lines_of_dev_are_kept(problem, tmp_path):
    raw_dir = _write_corpus(tmp_path / "raw", 100)
    for side in ("source", "target"):
        (raw_dir / f"dev.{side}.gz").write_bytes(gzip.compress(b"a\n\nb\n"))
    made = _generate(problem, raw_dir, tmp_path / "data")
    assert list(_texts(made, "dev")) == [("a", "a"), ("", ""), ("b", "b")]


class SymbolicTargets(problems.Problem):
    """Targets of symbols; a reference that is something else, empty where there is nothing."""

    symbolic_targets = True
    pairs = (("the dog", " (S A )S", "(S dog)"), ("", "", ""), ("a", " A ( X", "other"))

    def samples(self, split, *, raw_dir=None, tmp_dir=None):
        for inputs, targets, reference in self.pairs * 20:
            yield {"inputs": inputs, "targets": targets, "reference": reference}


def test_symbols_are_learnt_as_such_and_references_kept(tmp_path):
    made = generate.generate(SymbolicTargets(), data_dir=tmp_path, vocab_size=300, num_workers=1)
    vocab = vocabulary.load(made.vocabulary_path)
    symbols = [vocab.piece(token).replace(vocabulary.SPACE, " ") for token in range(3, 7)]
    assert symbols == [" (S", " ( X", " )S", " A"]
    assert list(_texts(made, "dev")) == [("the dog", " (S A )S"), ("a", " A ( X")] * 20
    text = manifest.problem_text(tmp_path, SymbolicTargets(), "dev")
    assert text.references == ["(S dog)", "other"] * 20
    assert made.splits["dev"]["dropped"] == made.splits["test"]["dropped"] == {"empty": 20}
    assert made.splits["train"]["dropped"]["empty"] == 20


def test_the_vocabulary_sample_is_spread_evenly(problem, raw_dir, monkeypatch):
    monkeypatch.setattr(generate, "_SAMPLE_CHARACTERS", 100_000)
    read = generate._Reader(problem, raw_dir, None, 1_000)
    pairs, sample, symbols = generate._survey(read, 0, lambda *_: None)
    assert pairs == 12_500
    assert not symbols
    assert 40_000 < sum(map(len, sample)) <= 100_000
    numbers = [int(text.split()[-1]) for text in sample[::2]]
    assert numbers == sorted(numbers)
    quarters = collections.Counter(4 * number // 12_500 for number in numbers)
    assert all(0.2 < n / len(numbers) < 0.3 for n in quarters.values())
    read.chunk_pairs = 777
    assert generate._survey(read, 0, lambda *_: None)[1] == sample


COMMAND = """
import sys
from t2t_lite import registry
from t2t_lite.data import generate
if __name__ == "__main__":
    generate.generate(
        registry.problem("parallel_text"), raw_dir=sys.argv[1], data_dir=sys.argv[2],
        vocab_size=400, num_workers=2, chunk_pairs=1_500, overwrite="overwrite" in sys.argv,
    )
"""


def _final_files(data_dir):
    work = ("incomplete",)
    return {path.name: path for path in data_dir.iterdir() if not path.name.endswith(work)}


@pytest.mark.integration
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(made, raw_dir, tmp_path):
    script, data_dir = tmp_path / "run.py", tmp_path / "data"
    script.write_text(COMMAND)
    command = [sys.executable, str(script), str(raw_dir), str(data_dir)]
    start = time.monotonic()
    subprocess.run(command, check=True)
    whole = time.monotonic() - start
    undisturbed = _contents(made.data_dir)
    assert _contents(data_dir) == undisturbed
    rng = random.Random(0)
    kills, command = 0, [*command, "overwrite"]
    while kills < 20:
        # anew, then killed again and again, each time a little later than the work begins
        (data_dir / "parallel_text.manifest.json").unlink(missing_ok=True)
        for path in data_dir.glob("parallel_text-*"):
            path.unlink()
        finished = False
        while not finished and kills < 20:
            process = subprocess.Popen(command)
            time.sleep(rng.uniform(0.25, 0.9) * whole)
            finished = process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += not finished
            # what lies under a final name is final
            for name, path in _final_files(data_dir).items():
                assert path.read_bytes() == undisturbed[name], name
    subprocess.run(command[:-1], check=True)
    assert _contents(data_dir) == undisturbed


def test_finished_shards_are_not_made_again(problem, raw_dir, tmp_path, monkeypatch):
    gathered = []

    def gather(job, shard):
        if shard == 1 and not gathered.count(1):
            gathered.append(1)
            raise KeyboardInterrupt
        gathered.append(shard)
        gather_shard(job, shard)

    gather_shard = generate.spill.gather_shard
    monkeypatch.setattr(generate.spill, "gather_shard", gather)
    monkeypatch.setattr(
        generate.spill, "encode_chunk", _only_once(generate.spill.encode_chunk, set())
    )
    with pytest.raises(KeyboardInterrupt):
        _generate(problem, raw_dir, tmp_path)
    with pytest.raises(errors.UserError, match=r"unfinished .* random_seed 0 -> 3"):
        _generate(problem, raw_dir, tmp_path, random_seed=3)
    _generate(problem, raw_dir, tmp_path)
    assert gathered == [0, 1, 1]


def _only_once(function, seen):
    def call(job, chunk, *rest, **options):
        assert chunk not in seen
        seen.add(chunk)
        function(job, chunk, *rest, **options)

    return call


def test_work_may_lie_elsewhere(made, problem, raw_dir, tmp_path):
    other = _generate(problem, raw_dir, tmp_path / "data", tmp_dir=tmp_path / "tmp")
    assert _contents(other.data_dir) == _contents(made.data_dir)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_manifest_is_plain_json(made):
    content = json.loads((made.data_dir / "parallel_text.manifest.json").read_text())
    assert content["problem"] == "parallel_text"
    assert content["options"]["random_seed"] == 0
    assert content["versions"]["sentencepiece"]
