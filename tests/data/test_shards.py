"""Shards are TFRecord files of tf.train.Example, and damage is found and placed."""

import pytest

from t2t_lite import errors
from t2t_lite.data import shards

EXAMPLES = [([5, 1], [7, 300, 1]), ([40_000, 0, 127, 128, 1], [1]), (list(range(1, 2000)), [2, 1])]


@pytest.fixture
def shard(tmp_path):
    path = tmp_path / shards.name("toy", "train", 3, 100)
    shards.write(path, [shards.example(*one) for one in EXAMPLES])
    return path


def test_find_takes_one_problem_and_split(tmp_path):
    names = [shards.name("toy", "train", number, 2) for number in range(2)]
    assert names == ["toy-train-00000-of-00002", "toy-train-00001-of-00002"]
    others = ["toy-dev-00000-of-00001", "toy2-train-00000-of-00001", f"{names[0]}.incomplete"]
    for name in (*names, *others):
        (tmp_path / name).touch()
    assert [path.name for path in shards.find(tmp_path, "toy", "train")] == names


def test_read_returns_what_was_written(shard):
    expected = [{"inputs": inputs, "targets": targets} for inputs, targets in EXAMPLES]
    assert list(shards.read_examples([shard, shard])) == expected * 2


def test_tensorflow_reads_them_and_would_write_the_same(shard):
    import tensorflow as tf

    for record, example in zip(tf.data.TFRecordDataset(str(shard)), EXAMPLES, strict=True):
        parsed = tf.train.Example.FromString(record.numpy())
        feature = parsed.features.feature
        read = [list(feature[key].int64_list.value) for key in ("inputs", "targets")]
        assert read == list(example)
        assert parsed.SerializeToString(deterministic=True) == record.numpy()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_flipped_bit_names_file_and_record(shard, number):
    content = bytearray(shard.read_bytes())
    sizes = [len(shards.example(*one)) + 16 for one in EXAMPLES]
    content[sum(sizes[:number]) + 20] ^= 4
    shard.write_bytes(content)
    read = []
    with pytest.raises(errors.UserError, match=rf"{shard.name} .* record {number} "):
        read.extend(shards.read(shard))
    assert len(read) == number


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_cut_file_names_file_and_record(shard, cut):
    shard.write_bytes(shard.read_bytes()[:-cut])
    with pytest.raises(errors.UserError, match=rf"{shard.name} .* record 2 .*ends inside"):
        list(shards.read(shard))


def test_a_record_that_is_no_example_is_placed(tmp_path):
    shards.write(tmp_path / "x", [shards.example([1], [1]), b"\xff\xff"])
    with pytest.raises(errors.UserError, match=r"x .* record 1 .*not a tf.train.Example"):
        list(shards.read_examples([tmp_path / "x"]))
