"""Shares of batches: put together they are the batches of one worker, bit for bit."""

import dataclasses
import itertools

import numpy as np
import pytest

from t2t_lite import errors, registry
from t2t_lite.data import data_dir, generate, manifest, pipeline, shards, share, token_batches

tf = pytest.importorskip("tensorflow")

OPTIONS = {"batch_tokens": 512, "max_length": 25, "max_buckets": 4, "seed": 3}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("toy")
    problem = registry.problem("toy_ende")
    problem.sizes = {"dev": 5, "test": 5, "train": 700}
    data = generate.generate(problem, data_dir=folder, vocab_size=600, num_workers=1)
    # three shards of very different sizes in place of one
    (path,) = data.shards("train")
    records = list(shards.read(path))
    path.unlink()
    paths = [folder / shards.name("toy_ende", "train", index, 3) for index in range(3)]
    for path, part in zip(paths, (records[:20], records[20:450], records[450:])):
        shards.write(path, part)
    data.splits["train"]["shards"] = manifest.file_entries(paths)
    return data


def _third(worker):
    return lambda shape: slice(shape.batch * worker // 3, shape.batch * (worker + 1) // 3)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_shares_make_up_the_batches_of_one_worker(small, is_reversed):
    data = small
    if is_reversed:
        data = dataclasses.replace(small, problem=small.problem.reversed_problem())
    workers = [share.SharedBatches(data, **OPTIONS, rows_of=_third(worker)) for worker in range(3)]
    whole = pipeline.train_batches(data, **OPTIONS)
    for expected, *parts in itertools.islice(zip(whole, *workers), 150):  # some epochs
        for side in ("inputs", "targets"):
            np.testing.assert_array_equal(sum(part[side] for part in parts), expected[side])
            rows, source = expected["inputs"].shape
            shape = token_batches.Shape(rows, source, expected["targets"].shape[1])
            for worker, part in enumerate(parts):
                others = np.ones(shape.batch, bool)
                others[_third(worker)(shape)] = False
                assert not part[side].numpy()[others].any()
        counts = [np.count_nonzero(expected[side]) for side in ("inputs", "targets")]
        assert all(part["tokens"].numpy().tolist() == counts for part in parts)
        np.testing.assert_array_equal(workers[1].whole(parts[1])["inputs"], expected["inputs"])
    # A worker without a row of a batch has padding.
    nothing = share.SharedBatches(data, **OPTIONS, rows_of=lambda shape: slice(shape.batch, None))
    batch = next(nothing)
    assert not batch["inputs"].numpy().any()
    assert nothing.whole(batch)["inputs"].numpy().any()


def test_the_position_is_one_for_all_and_may_be_counted(small, tmp_path):
    def new(worker):
        return share.SharedBatches(small, **OPTIONS, rows_of=_third(worker))

    first, other, third = new(0), new(1), new(2)
    for _ in range(45):
        next(first)
    path = tf.train.Checkpoint(pairs=first.position).write(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(pairs=other.position).read(path).assert_consumed()
    for _ in range(45):
        next(third.position)  # nothing is read
    for _ in range(45):
        expected = next(first)["pairs"]
        np.testing.assert_array_equal(next(other)["pairs"], expected)
        np.testing.assert_array_equal(next(third)["pairs"], expected)


def test_the_index_is_kept_until_the_data_change(small, monkeypatch):
    share.index(small)
    (kept,) = small.folder.glob("*.index.npz")
    monkeypatch.setattr(share, "_measure", None)  # would fail
    share.index(small)
    content = kept.read_bytes()
    for damaged in (b"PK damaged", content[:-9], b""):
        kept.write_bytes(damaged)
        with pytest.raises(TypeError):
            share.index(small)
    kept.write_bytes(content)
    monkeypatch.setattr(data_dir.Data, "content_hash", lambda *_: "other")
    with pytest.raises(TypeError):
        share.index(small)


def test_a_damaged_record_is_named(small):
    made = share.index(small)
    path = small.shards("train")[1]
    content = path.read_bytes()
    damaged = bytearray(content)
    sizes = [shards.framed(len(record)) for record in shards.read(path)]
    damaged[sum(sizes[:123]) + 30] ^= 1
    try:
        path.write_bytes(damaged)
        made.records(np.array([0, 20 + 122, 699]))
        with pytest.raises(errors.UserError, match=rf"{path.name} is corrupt .* record 123 "):
            made.records(np.array([0, 20 + 123, 699]))
    finally:
        path.write_bytes(content)
