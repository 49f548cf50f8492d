"""Declared messages are on the wire what the protocol buffer encoding says."""

import pytest

from t2t_lite import messages

DECLARED = messages.classes(
    {
        "Test1": ["int32 a = 1"],
        "Test2": ["string b = 2"],
        "Test3": ["Test1 c = 3"],
        "Test5": ["repeated int32 f = 6"],
        "Names": ["repeated bytes name = 1"],
    }
)


# The examples of https://protobuf.dev/programming-guides/encoding, and one of its rules.
@pytest.mark.parametrize(
    ("name", "fields", "wire"),
    [
        ("Test1", {"a": 150}, "08 96 01"),
        ("Test2", {"b": "testing"}, "12 07 74 65 73 74 69 6e 67"),
        ("Test3", {"c": {"a": 150}}, "1a 03 08 96 01"),
        ("Test5", {"f": [3, 270, 86942]}, "32 06 03 8e 02 9e a7 05"),  # packed
        ("Names", {"name": [b"a", b""]}, "0a 01 61 0a 00"),
    ],
)
def test_bytes_are_those_of_the_encoding(name, fields, wire):
    message = DECLARED[name](**fields)
    assert message.SerializeToString() == bytes.fromhex(wire)
    assert DECLARED[name].FromString(bytes.fromhex(wire)) == message


def test_a_type_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="TYPE_INT65"):
        messages.classes({"Test": ["int65 a = 1"]})
