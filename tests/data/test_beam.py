"""Generation on Apache Beam: the bytes of the local engine, and nothing half done is used."""

import gzip
import shutil
from typing import Any

import numbered_corpus
import pytest

from t2t_lite import errors, registry
from t2t_lite.data import engine, spill

pytest.importorskip("apache_beam", reason="needs pip install 't2t-lite[beam]'")
pytestmark = pytest.mark.slow

PROCESSES = "direct_running_mode=multi_processing,direct_num_workers=2"


@pytest.fixture(scope="module")
def plain(raw_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    for path in raw_dir.iterdir():
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return folder


@pytest.fixture(scope="module")
def made(problem, plain, tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("local")
    numbered_corpus.generate(problem, plain, data_dir)
    return numbered_corpus.contents(data_dir)


@pytest.mark.parametrize("options", ["runner=FnApiRunner", PROCESSES])
def test_plain_files_give_the_same_bytes(problem, plain, made, tmp_path, options):
    numbered_corpus.generate(problem, plain, tmp_path, beam_pipeline_options=options)
    assert numbered_corpus.contents(tmp_path) == made


def test_compressed_files_give_the_same_shards(problem, raw_dir, made, tmp_path):
    numbered_corpus.generate(problem, raw_dir, tmp_path, beam_pipeline_options="")
    found = numbered_corpus.contents(tmp_path)
    names = [name for name in made if "train" in name or "vocab" in name]
    assert len(names) == 3
    assert all(found[name] == made[name] for name in names)


def test_what_was_cut_short_is_made_anew_by_either_engine(
    problem, plain, made, tmp_path, monkeypatch
):
    from t2t_lite.data import beam

    def fail(self, job):
        raise KeyboardInterrupt

    for options, other in [("", None), (None, "")]:
        data_dir = tmp_path / str(options)
        with monkeypatch.context() as patch:
            patch.setattr(beam.Beam, "gather", fail)
            patch.setattr(engine.Processes, "gather", fail)
            with pytest.raises(KeyboardInterrupt):
                numbered_corpus.generate(problem, plain, data_dir, beam_pipeline_options=options)
        numbered_corpus.generate(problem, plain, data_dir, beam_pipeline_options=other)
        assert numbered_corpus.contents(data_dir) == made


def test_only_lost_work_is_done_again(problem, plain, made, tmp_path, monkeypatch):
    """A pipeline that was ended among its chunks, or its shards, is gone on with."""

    def failing_at(function, number):
        def encode_or_gather(job, index, *args, **kwargs):
            if index == number:
                raise MemoryError("the worker is gone")
            done.append(index)
            function(job, index, *args, **kwargs)

        return encode_or_gather

    done = []
    for name, number in [("encode_chunk", 5), ("gather_shard", 1), ("gather_shard", None)]:
        with monkeypatch.context() as patch:
            patch.setattr(spill, name, failing_at(getattr(spill, name), number))
            if number is None:
                numbered_corpus.generate(problem, plain, tmp_path, beam_pipeline_options="")
                continue
            with pytest.raises(MemoryError, match="the worker is gone"):
                numbered_corpus.generate(problem, plain, tmp_path, beam_pipeline_options="")
        kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("chunk-*.json")}
        assert kept
    assert done[-1] == 1
    assert done.count(0) == 2  # as a chunk and as a shard
    assert numbered_corpus.contents(tmp_path) == made


def test_a_users_mistake_is_one(problem, plain, tmp_path):
    shutil.copytree(plain, tmp_path / "raw")
    with open(tmp_path / "raw" / "train.target", "ab") as file:
        file.write(b"one more")
    for raw, options, message in (
        (tmp_path / "raw", "", r"differ in length: .* 12500 lines, .* has 12501"),
        (plain, "runner=NoSuchRunner", "beam_pipeline_options=runner=NoSuchRunner"),
    ):
        with pytest.raises(errors.UserError, match=message):
            numbered_corpus.generate(problem, raw, tmp_path / "data", beam_pipeline_options=options)


def test_a_workers_mistake_is_one(problem, plain, made, tmp_path):
    raw = shutil.copytree(plain, tmp_path / "raw")
    text = "\ufeff" + (plain / "train.target").read_text()
    (raw / "train.target").write_bytes(text.encode("utf-16-be"))
    data_dir = tmp_path / "data"
    with pytest.raises(errors.UserError, match=r"train\.target is UTF-16, expected UTF-8"):
        numbered_corpus.generate(problem, raw, data_dir, beam_pipeline_options=PROCESSES)
    (raw / "train.target").write_bytes((plain / "train.target").read_bytes())
    numbered_corpus.generate(problem, raw, data_dir, beam_pipeline_options=PROCESSES)
    assert numbered_corpus.contents(data_dir) == made


def test_a_problem_of_ones_own_stays_here(tmp_path):
    """No worker has the class's module."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own.py").write_text(
        "from t2t_lite import registry\n"
        "from t2t_lite.data import problem\n"
        "@registry.register_problem\n"
        "class OwnByBeam(problem.Problem):\n"
        "    def samples(self, split, *, raw_dir=None, tmp_dir=None):\n"
        "        for number in range(50):\n"
        "            yield {'inputs': f'a\\n{number}', 'targets': f'b {number}'}\n"
    )
    registry.load_user_dir(str(tmp_path / "mine"))
    own = registry.problem("own_by_beam")
    options: dict[str, Any] = {"vocab_size": 300, "chunk_pairs": 20}
    for name, engine_options in (("local", None), ("beam", PROCESSES)):
        options["beam_pipeline_options"] = engine_options
        numbered_corpus.generate(own, None, tmp_path / name, **options)
    local, beam = (numbered_corpus.contents(tmp_path / name) for name in ("local", "beam"))
    assert local == beam
