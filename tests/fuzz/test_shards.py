"""TFRecords, whatever wrote or broke them."""

from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite.data import shards

_EXAMPLES = [shards.example([5, 6, 1], [7, 1]), shards.example([], [1]), b""]
_EXAMPLES += [shards.example(range(300), [1 << 62, -1])]


def _records(folder, records) -> bytes:
    path = folder / "valid"
    shards.write(path, records)
    return path.read_bytes()


@given(st.data())
def test_damaged_shards_and_intact_ones_of_other_content_are_read_or_refused(folder, data):
    valid = [_records(folder, _EXAMPLES), _records(folder, _EXAMPLES[:3] * 2_000)]
    huge = [size.to_bytes(8, "little") for size in (1 << 28, (1 << 28) - 1, 1 << 63, 1 << 20)]
    contents = inputs.damaged(_EXAMPLES) | st.binary(max_size=40)
    other = st.lists(contents, max_size=3).map(lambda some: _records(folder, some))
    path = folder / "fuzzed-train-00000-of-00001"
    path.write_bytes(data.draw(inputs.damaged(valid, chunks=huge) | other))
    with inputs.answered():
        for example in shards.read_examples([path]):
            assert all(type(token) is int for ids in example.values() for token in ids)
