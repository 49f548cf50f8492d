"""The same command goes on from wherever it was killed; another one is refused."""

import contextlib
import fcntl
import gzip
import random
import shutil
import signal
import subprocess
import sys
import time

import numbered_corpus
import pytest

from t2t_lite import errors, locks
from t2t_lite.data import generate as generation
from t2t_lite.data import spill
from t2t_lite.text import cleaning


def test_a_second_run_changes_nothing(made, problem, raw_dir):
    before = {path: path.stat().st_mtime_ns for path in made.folder.iterdir()}
    assert numbered_corpus.generate(problem, raw_dir, made.folder) == made
    assert numbered_corpus.generate(problem.reversed_problem(), raw_dir, made.folder) == made
    assert {path: path.stat().st_mtime_ns for path in made.folder.iterdir()} == before


def test_another_request_is_refused_with_what_differs(made, problem, raw_dir, monkeypatch):
    before = numbered_corpus.contents(made.folder)
    for options, message in (
        ({"random_seed": 1}, "random_seed 0 -> 1"),
        ({"vocab_size": 500}, "vocab_size 400 -> 500"),
        ({"cleaning": cleaning.Cleaning(max_length=9)}, "max_length 0 -> 9"),
        ({"vocab_size": 100, "overwrite": True}, "at least 260"),  # an impossible one
    ):
        with pytest.raises(errors.UserError, match=message):
            numbered_corpus.generate(problem, raw_dir, made.folder, **options)
    files = problem.raw_files(raw_dir)
    monkeypatch.setattr(problem, "raw_files", lambda _: files[::-1])
    with pytest.raises(errors.UserError, match=r"files .*\.gz -> .*target.*, .*source"):
        numbered_corpus.generate(problem, raw_dir, made.folder)
    assert numbered_corpus.contents(made.folder) == before


def test_changed_text_is_refused_and_overwrite_takes_it(problem, tmp_path):
    raw_dir, data_dir = tmp_path / "raw", tmp_path / "data"
    numbered_corpus.write(raw_dir, 11_000)
    assert len(numbered_corpus.generate(problem, raw_dir, data_dir).shards("train")) == 2
    numbered_corpus.write(raw_dir, 500)
    with pytest.raises(errors.UserError, match=r"file train.source.gz \d+ bytes \w+ -> \d+ bytes"):
        numbered_corpus.generate(problem, raw_dir, data_dir)
    made = numbered_corpus.generate(problem, raw_dir, data_dir, overwrite=True)
    assert made.pairs("train") == 500
    assert len(list(data_dir.glob("*-train-*"))) == 1
    made.check_files()


@pytest.mark.parametrize("pairs", [500, 700, 900])
def test_text_that_changes_meanwhile_is_refused(problem, tmp_path, pairs):
    raw_dir, data_dir = tmp_path / "raw", tmp_path / "data"
    numbered_corpus.write(raw_dir, 700)

    def change(stage, done, total):
        if stage == "learn vocabulary":
            numbered_corpus.write(raw_dir, pairs)
            (raw_dir / "dev.source.gz").write_bytes(gzip.compress(b"other\n", mtime=0))
            (raw_dir / "dev.target.gz").write_bytes(gzip.compress(b"other\n", mtime=0))

    with pytest.raises(errors.UserError, match="it was changed meanwhile"):
        numbered_corpus.generate(problem, raw_dir, data_dir, chunk_pairs=300, progress=change)
    assert not list(data_dir.glob("*.manifest.json"))
    assert numbered_corpus.generate(problem, raw_dir, data_dir).pairs("train") == pairs


def test_shards_that_no_manifest_speaks_for_are_not_removed(problem, raw_dir, tmp_path):
    (tmp_path / "parallel_text-train-00000-of-00100").write_bytes(b"someone's")
    with pytest.raises(errors.UserError, match="no manifest speaks for"):
        numbered_corpus.generate(problem, raw_dir, tmp_path)
    assert (tmp_path / "parallel_text-train-00000-of-00100").read_bytes() == b"someone's"


@pytest.mark.parametrize("work", ["", "mine"])
def test_two_with_one_data_dir_are_refused_wherever_they_work(
    made, problem, raw_dir, tmp_path, work
):
    data_dir, tmp_dir = tmp_path / "data", tmp_path / work if work else None
    lock = data_dir / "parallel_text.incomplete" / "lock"
    lock.parent.mkdir(parents=True)
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(errors.UserError, match=f"another process is at work in {lock.parent}"):
            numbered_corpus.generate(problem, raw_dir, data_dir, tmp_dir=tmp_dir)
    assert list(tmp_path.iterdir()) == [data_dir]
    # the holder has gone; the file that a dead process leaves holds nobody back
    numbered_corpus.generate(problem, raw_dir, data_dir, tmp_dir=tmp_dir)
    assert numbered_corpus.contents(data_dir) == numbered_corpus.contents(made.folder)
    assert not tmp_dir or not list(tmp_dir.iterdir())


def test_who_comes_when_another_has_just_finished_takes_its_data(
    problem, raw_dir, tmp_path, monkeypatch
):
    """It finds no manifest, then gets the lock: the data of before must not be touched."""
    only_one = locks.only_one

    @contextlib.contextmanager
    def after_another(path, **kwargs):
        monkeypatch.setattr(locks, "only_one", only_one)
        made.append(numbered_corpus.generate(problem, raw_dir, tmp_path))
        with only_one(path, **kwargs):
            yield

    made = []
    monkeypatch.setattr(locks, "only_one", after_another)
    made.append(numbered_corpus.generate(problem, raw_dir, tmp_path))
    assert made[0] == made[1]
    made[0].check_files(hashes=True)


@pytest.mark.parametrize("when", ["gathering", "finishing"])
def test_a_shard_that_changed_meanwhile_is_made_again(
    made, problem, raw_dir, tmp_path, monkeypatch, when
):
    """Of the same size, so that only its hash tells."""
    shard = "parallel_text-train-00000-of-00002"
    stage = (spill, "gather_shard") if when == "gathering" else (generation, "_vocabulary_entry")
    original = getattr(*stage)

    def damage(*args):
        result = original(*args)
        content = bytearray((tmp_path / shard).read_bytes())
        content[100] ^= 1
        (tmp_path / shard).write_bytes(content)
        if when == "gathering":
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(*stage, damage)
    expected = (KeyboardInterrupt, errors.UserError)
    with pytest.raises(expected, match=f"other contents in {shard}|$^"):
        numbered_corpus.generate(problem, raw_dir, tmp_path)
    assert not (tmp_path / "parallel_text.manifest.json").exists()
    monkeypatch.setattr(*stage, original)
    numbered_corpus.generate(problem, raw_dir, tmp_path)
    assert numbered_corpus.contents(tmp_path) == numbered_corpus.contents(made.folder)


def test_hashes_are_compared_on_demand_and_what_is_left_of_the_work_goes(problem, tmp_path):
    raw_dir, data_dir = numbered_corpus.write(tmp_path / "raw", 100), tmp_path / "data"
    made = numbered_corpus.generate(problem, raw_dir, data_dir)
    left = data_dir / "parallel_text.incomplete" / "chunk-00000.npy"
    # the work for another data_dir is none of ours
    other = tmp_path / "tmp" / "parallel_text.incomplete" / "plan.json"
    lock = tmp_path / "locked" / "parallel_text.incomplete" / "lock"
    for path in (left, other, lock):
        path.parent.mkdir(parents=True)
        path.touch()
    # killed when all was there, but for the lock of a folder with the work elsewhere
    shutil.copytree(data_dir, lock.parent.parent, dirs_exist_ok=True)
    numbered_corpus.generate(problem, raw_dir, tmp_path / "locked", tmp_dir=tmp_path / "tmp")
    assert not lock.parent.exists()
    (shard,) = made.shards("train")
    shard.write_bytes(shard.read_bytes()[:-1] + b"\0")
    numbered_corpus.generate(problem, raw_dir, data_dir, tmp_dir=tmp_path / "tmp")
    assert other.exists()
    numbered_corpus.generate(problem, raw_dir, data_dir)
    assert not left.parent.exists()
    with pytest.raises(errors.UserError, match=f"other contents in {shard.name}.*--overwrite"):
        numbered_corpus.generate(problem, raw_dir, data_dir, verify=True)


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


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(made, raw_dir, tmp_path):
    script, data_dir = tmp_path / "run.py", tmp_path / "data"
    script.write_text(COMMAND)
    command = [sys.executable, str(script), str(raw_dir), str(data_dir)]
    start = time.monotonic()
    subprocess.run(command, check=True)
    whole = time.monotonic() - start
    undisturbed = numbered_corpus.contents(made.folder)
    assert numbered_corpus.contents(data_dir) == undisturbed
    rng = random.Random(0)
    kills, command = 0, [*command, "overwrite"]
    while kills < 20:
        # anew, then killed again and again, each time a little later than the work begins
        (data_dir / "parallel_text.manifest.json").unlink(missing_ok=True)
        for path in data_dir.glob("parallel_text-*"):
            path.unlink()
        finished, anew = False, True
        while not finished and kills < 20:
            process = subprocess.Popen(command)
            time.sleep(rng.uniform(0.25, 0.9) * whole)
            finished = process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += not finished
            if finished and anew:  # the machine is faster than it was
                whole *= 0.8
            anew = False
            # what lies under a final name is final
            for name, path in _final_files(data_dir).items():
                assert path.read_bytes() == undisturbed[name], name
    subprocess.run(command[:-1], check=True)
    assert numbered_corpus.contents(data_dir) == undisturbed


def test_finished_shards_are_not_made_again(problem, raw_dir, tmp_path, monkeypatch):
    gathered = []

    def gather(job, shard):
        if shard == 1 and not gathered.count(1):
            gathered.append(1)
            raise KeyboardInterrupt
        gathered.append(shard)
        gather_shard(job, shard)

    gather_shard = spill.gather_shard
    monkeypatch.setattr(spill, "gather_shard", gather)
    monkeypatch.setattr(spill, "encode_chunk", _only_once(spill.encode_chunk, set()))
    with pytest.raises(KeyboardInterrupt):
        numbered_corpus.generate(problem, raw_dir, tmp_path)
    with pytest.raises(errors.UserError, match=r"unfinished .* random_seed 0 -> 3"):
        numbered_corpus.generate(problem, raw_dir, tmp_path, random_seed=3)
    numbered_corpus.generate(problem, raw_dir, tmp_path)
    assert gathered == [0, 1, 1]


def _only_once(function, seen):
    def call(job, chunk, *rest, **options):
        assert chunk not in seen
        seen.add(chunk)
        function(job, chunk, *rest, **options)

    return call
