"""Batches of few static shapes, little padding, every pair once an epoch, and an exact resume."""

import collections
import dataclasses
import itertools
import shutil

import numpy as np
import pytest

from t2t_lite import errors, registry
from t2t_lite.data import data_dir, generate, manifest, pipeline, shards

tf = pytest.importorskip("tensorflow")

OPTIONS = {"batch_tokens": 512, "max_length": 60}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return the data of a small toy corpus."""
    problem = registry.problem("toy_ende")
    problem.sizes = {"dev": 45, "test": 10, "train": 700}
    folder = tmp_path_factory.mktemp("toy")
    return generate.generate(problem, data_dir=folder, vocab_size=600, num_workers=1)


def _fill(batches):
    """Return the share of real tokens among all of some batches, both sides together."""
    real = sum(int(tf.math.count_nonzero(batch[key])) for batch in batches for key in batch)
    return real / sum(int(tf.size(batch[key])) for batch in batches for key in batch)


def _pairs(data, split):
    """Return the split's pairs of ids, read without the pipeline."""
    examples = shards.read_examples(data.shards(split))
    return [(tuple(ids["inputs"]), tuple(ids["targets"])) for ids in examples]


def _rows(batch):
    """Return a batch's pairs without padding; rows that are all padding are left out."""
    for inputs, targets in zip(batch["inputs"].numpy(), batch["targets"].numpy()):
        if inputs.any():
            pair = tuple(tuple(np.trim_zeros(side, "b").tolist()) for side in (inputs, targets))
            yield pair


def _epoch(batches, count):
    """Return the first `count` pairs of endless batches."""
    return list(itertools.islice((pair for batch in batches for pair in _rows(batch)), count))


def test_batches_have_the_announced_shapes(small):
    shapes = set(pipeline.bucket_shapes(small, **OPTIONS, max_buckets=5))
    assert len(shapes) == 5
    seen = set()
    for batch in pipeline.train_batches(small, **OPTIONS, seed=0, max_buckets=5).take(60):
        assert batch["inputs"].dtype == batch["targets"].dtype == tf.int32
        rows, source = batch["inputs"].shape
        assert batch["targets"].shape[0] == rows
        seen.add((rows, source, batch["targets"].shape[1]))
    assert seen == {tuple(shape) for shape in shapes}
    for shape in shapes:
        assert shape.batch % 8 == 0
        assert max(shape.batch * shape.source, shape.batch * shape.target) <= 512


def _one_by_one(data, shapes, *, max_length, seed):
    """Yield the batches of `pipeline.train_batches`, made from one pair after the other."""
    names = [str(path) for path in data.shards("train")]
    records = (
        tf.data.Dataset.from_tensor_slices(names)
        .shuffle(len(names), seed=seed)
        .interleave(tf.data.TFRecordDataset, cycle_length=2, num_parallel_calls=1)
        .shuffle(50, seed=seed + 1)
        .repeat()
    )
    waiting = {shape: [] for shape in sorted(shapes, key=lambda shape: sum(shape[1:]))}
    for record in records.as_numpy_iterator():
        pair = shards.ids(record)
        source, target = map(len, pair.values())
        if max(source, target) > max_length:
            continue
        shape = next(x for x in waiting if source <= x.source and target <= x.target)
        waiting[shape].append(pair)
        if len(waiting[shape]) == shape.batch:
            lengths = {"inputs": shape.source, "targets": shape.target}
            yield {
                side: np.array([one[side] + [0] * (n - len(one[side])) for one in waiting[shape]])
                for side, n in lengths.items()
            }
            waiting[shape] = []


@pytest.mark.parametrize("block", [7, 4096])
def test_blocks_change_nothing_in_the_order_of_single_pairs(small, tmp_path, monkeypatch, block):
    """Some epochs of shards of uneven sizes, with pairs that are left out."""
    data = data_dir.read(shutil.copytree(small.folder, tmp_path / "data"), small.problem)
    (path,) = data.shards("train")
    records = list(shards.read(path))
    names = [path.with_name(shards.name("toy_ende", "train", index, 3)) for index in range(3)]
    for name, part in zip(names, (records[:20], records[20:450], records[450:])):
        shards.write(name, part)
    data.splits["train"]["shards"] = manifest.file_entries(names)
    for name, number in (("_CYCLE", 2), ("_SHUFFLE", 50), ("_BLOCK", block)):
        monkeypatch.setattr(pipeline, name, number)
    limits = {"batch_tokens": 512, "max_length": 25}
    shapes = pipeline.bucket_shapes(data, **limits, max_buckets=4)
    expected = _one_by_one(data, shapes, max_length=25, seed=3)
    batches = pipeline.train_batches(data, **limits, max_buckets=4, seed=3)
    _assert_same(itertools.islice(expected, 150), batches.take(150))


def test_every_pair_comes_once_an_epoch(small):
    # A pair waits in its bucket until the batch is full: after n epochs each has come n times but
    # for what waits, fewer than a batch of each shape.
    batches = pipeline.train_batches(small, **OPTIONS, seed=0, max_buckets=4)
    shapes = pipeline.bucket_shapes(small, **OPTIONS, max_buckets=4)
    waiting = sum(shape.batch for shape in shapes)
    epochs = 5
    counts = collections.Counter(_epoch(batches, 700 * epochs))
    assert set(counts) <= set(_pairs(small, "train"))
    differences = [abs(counts[pair] - epochs) for pair in _pairs(small, "train")]
    assert sum(differences) <= 2 * waiting


def test_epochs_differ_and_the_seed_decides(small):
    def first(seed):
        return _epoch(pipeline.train_batches(small, **OPTIONS, seed=seed), 300)

    assert first(1) == first(1)
    assert first(1) != first(2)
    two_epochs = _epoch(pipeline.train_batches(small, **OPTIONS, seed=1), 1400)
    assert two_epochs[:300] != two_epochs[700:1000]


def _assert_same(expected, batches):
    for one, other in zip(expected, batches, strict=True):
        for side in one:
            np.testing.assert_array_equal(one[side], other[side])


def test_a_resumed_iterator_sees_what_the_uninterrupted_one_would(small, tmp_path):
    def new():
        return iter(pipeline.train_batches(small, **OPTIONS, seed=3))

    iterator = new()
    for _ in range(45):  # into the second epoch
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "checkpoint"))
    expected = [next(iterator) for _ in range(45)]
    resumed = new()
    next(resumed)
    tf.train.Checkpoint(iterator=resumed).read(path).assert_consumed()
    _assert_same(expected, [next(resumed) for _ in range(45)])


def test_moved_data_go_on_where_they_were(small, tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "_SHUFFLE", 50)  # a shard is open when the place is saved

    def new(folder):
        data = data_dir.read(folder, small.problem)
        return iter(pipeline.train_batches(data, **OPTIONS, seed=3))

    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(small.folder, here)
    iterator = new(here)
    for _ in range(20):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "checkpoint"))
    assert str(here).encode() not in (tmp_path / "checkpoint.data-00000-of-00001").read_bytes()
    expected = [next(iterator) for _ in range(40)]
    here.rename(there)
    resumed = new(there)
    tf.train.Checkpoint(iterator=resumed).read(path).assert_consumed()
    _assert_same(expected, [next(resumed) for _ in range(40)])


def test_real_tokens_are_those_of_the_batches(small):
    batches = list(pipeline.train_batches(small, **OPTIONS, seed=0, max_buckets=4).take(400))
    shapes = pipeline.bucket_shapes(small, **OPTIONS, max_buckets=4)
    means = pipeline.mean_tokens(small, shapes, max_length=OPTIONS["max_length"])
    for side, mean in zip(("inputs", "targets"), means):
        counted = np.mean([np.count_nonzero(batch[side]) for batch in batches])
        # At the end of the 400 some pairs wait for their batch to be full.
        assert mean == pytest.approx(counted, rel=0.02)
        assert mean < OPTIONS["batch_tokens"]


def test_reversed_problem_swaps_the_sides(small):
    backward = dataclasses.replace(small, problem=small.problem.reversed_problem())
    pairs = set(_epoch(pipeline.eval_batches(backward, split="dev", **OPTIONS), 45))
    assert pairs == {(targets, inputs) for inputs, targets in _pairs(small, "dev")}
    shapes = pipeline.bucket_shapes(small, **OPTIONS, max_buckets=1)
    swapped = pipeline.bucket_shapes(backward, **OPTIONS, max_buckets=1)
    assert [(b, t, s) for b, s, t in swapped] == [tuple(shape) for shape in shapes]


@pytest.mark.parametrize("max_length", [60, 20])
def test_evaluation_loses_nothing(small, max_length):
    options = {"batch_tokens": 512, "max_length": max_length, "max_buckets": 3}
    batches = list(pipeline.eval_batches(small, split="dev", **options))
    shapes = {(*b["inputs"].shape, b["targets"].shape[1]) for b in batches}
    assert len(shapes - set(pipeline.bucket_shapes(small, **options))) == (max_length == 20)
    evaluated = [pair for batch in batches for pair in _rows(batch)]
    assert sorted(evaluated) == sorted(_pairs(small, "dev"))


def test_longer_pairs_do_not_train(small):
    batches = pipeline.train_batches(small, batch_tokens=512, max_length=15, seed=0)
    fitting = {pair for pair in _pairs(small, "train") if max(map(len, pair)) <= 15}
    assert 0 < len(fitting) < 700
    trained = set(_epoch(batches, 8 * len(fitting)))
    assert trained <= fitting
    assert len(trained) > 0.9 * len(fitting)
    with pytest.raises(errors.UserError, match="max_length=2"):
        pipeline.train_batches(small, batch_tokens=512, max_length=2, seed=0)


# Fill: what a user's device is kept busy with


def _captions(shared_data, folder):
    problem = registry.problem("multi30k_ende")
    return generate.generate(problem, data_dir=folder, raw_dir=shared_data / "multi30k")


def _news(shared_data, folder):
    """Make data of newstest2012 to 2014 as a training corpus."""
    raw_dir = folder / "raw"
    raw_dir.mkdir()
    for side, language in (("source", "en"), ("target", "de")):
        names = [f"newstest20{year}.en-de.{language}.gz" for year in (12, 13, 14)]
        parts = [(shared_data / "newstest" / name).read_bytes() for name in names]
        (raw_dir / f"train.{side}.gz").write_bytes(b"".join(parts))
        (raw_dir / f"dev.{side}.gz").write_bytes(parts[1])
    problem = registry.problem("parallel_text")
    return generate.generate(problem, data_dir=folder, raw_dir=raw_dir, vocab_size=16_000)


@pytest.mark.parametrize(("corpus", "most"), [(_captions, 20), (_news, 24)])
def test_at_least_nine_tenths_are_tokens(corpus, most, shared_data, tmp_path):
    data = corpus(shared_data, tmp_path)
    shapes = pipeline.bucket_shapes(data, batch_tokens=4096, max_length=256)
    assert len(shapes) <= most
    batches = pipeline.train_batches(data, batch_tokens=4096, max_length=256, seed=0)
    assert _fill(list(batches.take(120))) >= 0.9


# Damage


def test_a_corrupt_record_and_a_cut_shard_are_named(small, tmp_path):
    made = generate.generate(small.problem, data_dir=tmp_path, vocab_size=600, num_workers=1)
    path = made.shards("train")[0]
    content = bytearray(path.read_bytes())
    sizes = [len(record) + 16 for record in shards.read(path)]
    content[sum(sizes[:123]) + 30] ^= 1
    path.write_bytes(content)
    batches = pipeline.train_batches(made, **OPTIONS, seed=0).take(100)
    message = rf"{path.name} is corrupt .* record 123 "
    with pytest.raises(errors.UserError, match=message), pipeline.explain_damage(made):
        list(batches)
    path.write_bytes(content[:-100])
    with pytest.raises(errors.UserError, match=rf"{path.name}.*{manifest.file_name('toy_ende')}"):
        pipeline.train_batches(made, **OPTIONS, seed=0)


def test_t2t_data_train_unchanged(shared_data):
    problem = registry.problem("translate_ende_wmt32k")
    data = data_dir.read(shared_data / "t2t" / "data", problem)
    options = {"batch_tokens": 256, "max_length": 100}
    pairs = _epoch(pipeline.train_batches(data, **options, seed=0), 40)
    assert len(set(pairs)) == 10
    assert len(_epoch(pipeline.eval_batches(data, split="dev", **options), 99)) == 10
