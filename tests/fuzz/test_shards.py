"""TFRecords, whatever wrote or broke them."""

import pytest
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite import errors
from t2t_lite.data import shards

_EXAMPLES = [shards.example([5, 6, 1], [7, 1]), shards.example([], [1]), b""]
_EXAMPLES += [shards.example(range(300), [1 << 62, -1])]


def _records(folder, records) -> bytes:
    path = folder / "valid"
    shards.write(path, records)
    return path.read_bytes()


def _read(folder, data):
    path = folder / "fuzzed-train-00000-of-00001"
    path.write_bytes(data)
    with inputs.answered():
        for example in shards.read_examples([path]):
            assert all(type(token) is int for ids in example.values() for token in ids)


@given(st.data())
def test_a_damaged_shard_is_read_or_refused(folder, data):
    valid = [_records(folder, _EXAMPLES), _records(folder, _EXAMPLES[:3] * 2_000)]
    huge = [size.to_bytes(8, "little") for size in (1 << 28, (1 << 28) - 1, 1 << 63, 1 << 20)]
    _read(folder, data.draw(inputs.damaged(valid, chunks=huge)))


@given(st.data())
def test_intact_records_of_other_content_are_read_or_refused(folder, data):
    some = st.lists(inputs.damaged(_EXAMPLES) | st.binary(max_size=40), max_size=3)
    _read(folder, _records(folder, data.draw(some)))


@given(st.data())
def test_a_turned_bit_is_never_read(folder, data):
    path = folder / "turned"
    content = bytearray(_records(folder, _EXAMPLES))
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(errors.UserError, match="corrupt"):
        list(shards.read(path))
