"""The files that hold encoded examples: TFRecord framing of tf.train.Example, without TensorFlow.

A record of a shard is, all numbers little-endian,

    uint64 length | uint32 crc(length) | length bytes | uint32 crc(bytes)

where crc is CRC-32C, masked as TFRecord does it. The bytes are a tf.train.Example with the int64
features `inputs` and `targets`. Writing them without TensorFlow lets every process of the generator
start in a fraction of a second and stay small.
"""

import itertools
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence

import google_crc32c
from google.protobuf import message

from t2t_lite import errors, messages
from t2t_lite.text import text_files

_HEADER = 12  # bytes: the length and its checksum
_TAIL = 4  # bytes: the record's checksum
_MAX_RECORD = 1 << 28  # bytes; a longer one is a damaged length that its checksum happens to fit

# tensorflow/core/example/{example,feature}.proto, as far as ids need it
_Example = messages.classes(
    {
        "Example": ["Features features = 1"],
        "Features": ["repeated Entry feature = 1"],
        "Entry": ["string key = 1", "Feature value = 2"],
        "Feature": ["Int64List int64_list = 3"],
        "Int64List": ["repeated int64 value = 1"],
    }
)["Example"]


def name(problem: str, split: str, index: int, count: int) -> str:
    """Return a shard's file name.

    >>> name("toy_ende", "train", 0, 100)
    'toy_ende-train-00000-of-00100'
    """
    return f"{problem}-{split}-{index:05d}-of-{count:05d}"


def find(data_dir: str | os.PathLike[str], problem: str, split: str) -> list[pathlib.Path]:
    """Return the shards of one split in a folder, in their order."""
    return sorted(pathlib.Path(data_dir).glob(f"{problem}-{split}-[0-9]*-of-[0-9]*[0-9]"))


def example(inputs: Sequence[int], targets: Sequence[int]) -> bytes:
    """Return the serialized tf.train.Example of two lists of ids, the same bytes every time."""
    made = _Example()
    for key, ids in (("inputs", inputs), ("targets", targets)):
        made.features.feature.add(key=key).value.int64_list.value.extend(ids)
    return made.SerializeToString()


def ids(record: bytes) -> dict[str, list[int]]:
    """Return the int64 features of a serialized tf.train.Example, whoever wrote it."""
    try:
        features = _Example.FromString(record).features.feature
    except message.DecodeError as error:
        raise errors.UserError(f"a record is not a tf.train.Example: {error}") from error
    return {entry.key: list(entry.value.int64_list.value) for entry in features}


def write(path: str | os.PathLike[str], records: Iterable[bytes]) -> None:
    """Write records to a file that appears when it is complete."""
    with text_files.replacing(path) as file:
        for record in records:
            length = len(record).to_bytes(8, "little")
            file.write(length + _checksum(length) + record + _checksum(record))


def read(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield a shard's records; raise UserError with the record's number where one is damaged."""
    with open(path, "rb") as file:
        for number in itertools.count():
            header = file.read(_HEADER)
            if not header:
                return
            if len(header) < _HEADER:
                raise _damaged(path, number, "the file ends inside it")
            length = int.from_bytes(header[:8], "little")
            if length > _MAX_RECORD:
                raise _damaged(path, number, "its length is corrupt")
            yield _checked(path, number, header + file.read(length + _TAIL), length)


def read_examples(
    paths: Iterable[str | os.PathLike[str]],
) -> Iterator[dict[str, list[int]]]:
    """Yield the int64 features of every record of some shards, in their order."""
    for path in paths:
        for number, record in enumerate(read(path)):
            try:
                yield ids(record)
            except errors.UserError as error:
                raise _damaged(path, number, "it is not a tf.train.Example") from error


def _checked(path, number: int, framed_record: bytes, length: int) -> bytes:
    """Return the record of header, record and checksum; UserError where it is cut or damaged."""
    if len(framed_record) < _HEADER + length + _TAIL:
        raise _damaged(path, number, "the file ends inside it")
    header, record = framed_record[:_HEADER], framed_record[_HEADER:-_TAIL]
    checksums = header[8:] + framed_record[-_TAIL:]
    if _checksum(header[:8]) + _checksum(record) != checksums:
        raise _damaged(path, number, "its checksum does not agree")
    return record


def _damaged(path, number: int, reason: str) -> errors.UserError:
    return errors.UserError(
        f"{path} is corrupt or cut off at record {number} (counted from 0): {reason}; "
        "generate the data again with --overwrite"
    )


def _checksum(data: bytes) -> bytes:
    """Return TFRecord's masked CRC-32C."""
    crc = google_crc32c.value(data)
    rotated = crc >> 15 | crc << 17
    return ((rotated + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")
