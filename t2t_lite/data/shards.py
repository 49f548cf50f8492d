"""The files that hold encoded examples: TFRecord framing of tf.train.Example, without TensorFlow.

A record of a shard is, all numbers little-endian,

    uint64 length | uint32 crc(length) | length bytes | uint32 crc(bytes)

where crc is CRC-32C rotated and shifted as TFRecord has it. The bytes are a tf.train.Example with
the int64 features `inputs` and `targets`. Writing them here rather than with TensorFlow lets every
process of the generator start in a fraction of a second and stay small.
"""

import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import numpy as np
from google.protobuf import message

from t2t_lite import errors, messages
from t2t_lite.text import text_files

_BLOCK = 4096  # records whose checksums are computed together
_HEADER = np.dtype([("length", "<u8"), ("crc", "<u4")])
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
    """Return the shards of one split that lie in a folder, in their order."""
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
        raise errors.UserError(f"a record is no tf.train.Example: {error}") from error
    return {entry.key: list(entry.value.int64_list.value) for entry in features}


def write(path: str | os.PathLike[str], records: Sequence[bytes]) -> None:
    """Write records to a file that appears when it is complete."""
    with text_files.replacing(path) as file:
        for start in range(0, len(records), _BLOCK):
            block = records[start : start + _BLOCK]
            headers = np.empty(len(block), _HEADER)
            headers["length"] = [len(record) for record in block]
            headers["crc"] = _checksums([length.tobytes() for length in headers["length"]])
            heads, tails = headers.tobytes(), _checksums(block).tobytes()
            for i, record in enumerate(block):
                file.write(heads[12 * i : 12 * i + 12] + record + tails[4 * i : 4 * i + 4])


def read(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield a shard's records; raise UserError with the record's number where one is damaged."""
    first = 0
    with open(path, "rb") as file:
        while True:
            block, damage = _read_block(file)
            yield from _checked(path, range(first, first + len(block)), block)
            if damage:
                raise _damaged(path, first + len(block), damage)
            if not block:
                return
            first += len(block)


def read_at(
    file: BinaryIO, offsets: Sequence[int], lengths: Sequence[int], numbers: Sequence[int]
) -> list[bytes]:
    """Return some records of an open shard by their places.

    Args:
      offsets: where each begins in the file, with its header.
      lengths: of each, its bytes without header and checksum; `framed` tells one from the other.
      numbers: of each in the file, for the UserError where one is damaged.
    """
    block = []
    for offset, length, number in zip(offsets, lengths, numbers):
        framed_record = os.pread(file.fileno(), framed(length), offset)
        if len(framed_record) < framed(length):
            raise _damaged(file.name, number, "the file ends inside it")
        head = _HEADER.itemsize
        block.append((framed_record[:head], framed_record[head:-4], framed_record[-4:]))
    return list(_checked(file.name, numbers, block))


def framed(length):
    """Return how many bytes of a file a record of `length` bytes takes."""
    return length + _HEADER.itemsize + 4


def read_examples(
    paths: Iterable[str | os.PathLike[str]],
) -> Iterator[dict[str, list[int]]]:
    """Yield the int64 features of every record of some shards, in their order."""
    for path in paths:
        for number, record in enumerate(read(path)):
            try:
                yield ids(record)
            except errors.UserError as error:
                raise _damaged(path, number, "it is no tf.train.Example") from error


def _read_block(file) -> tuple[list[tuple[bytes, bytes, bytes]], str]:
    """Return (header, record, checksum) of the next records, and why it stops there."""
    block = []
    while len(block) < _BLOCK:
        header = file.read(_HEADER.itemsize)
        if not header:
            return block, ""
        if len(header) < _HEADER.itemsize:
            return block, "the file ends inside it"
        length = int.from_bytes(header[:8], "little")
        if length > _MAX_RECORD:
            return block, "its length is corrupt"
        record, tail = file.read(length), file.read(4)
        if len(tail) < 4:
            return block, "the file ends inside it"
        block.append((header, record, tail))
    return block, ""


def _checked(
    path, numbers: Sequence[int], block: list[tuple[bytes, bytes, bytes]]
) -> Iterator[bytes]:
    if not block:
        return
    headers, records, tails = zip(*block)
    lengths_agree = _checksums([header[:8] for header in headers]) == _numbers(
        header[8:] for header in headers
    )
    agree = lengths_agree & (_checksums(records) == _numbers(tails))
    for i, record in enumerate(records):
        if not agree[i]:
            raise _damaged(path, numbers[i], "its checksum does not agree")
        yield record


def _damaged(path, number: int, reason: str) -> errors.UserError:
    return errors.UserError(
        f"{path} is corrupt or cut off at record {number} (counted from 0): {reason}; "
        "generate the data again with --overwrite"
    )


def _numbers(checksums) -> np.ndarray:
    return np.frombuffer(b"".join(checksums), "<u4")


def _checksums(records: Sequence[bytes]) -> np.ndarray:
    """Return TFRecord's masked CRC-32C of every record, column by column over all of them."""
    lengths = np.array([len(record) for record in records])
    longest_first = np.argsort(-lengths, kind="stable")
    flat = np.frombuffer(b"".join(records), np.uint8)
    starts = (np.cumsum(lengths) - lengths)[longest_first]
    # reaching[j] records have a byte j; they are the first ones.
    reaching = len(records) - np.cumsum(np.bincount(lengths))[:-1]
    crc = np.full(len(records), 0xFFFFFFFF, np.uint32)
    for column, count in enumerate(reaching):
        state = crc[:count]
        low = (state & 0xFF) ^ flat[starts[:count] + column]
        crc[:count] = _CRC_TABLE[low] ^ (state >> np.uint32(8))
    crc ^= np.uint32(0xFFFFFFFF)
    rotated = (crc >> np.uint32(15)) | (crc << np.uint32(17))
    masked = np.empty_like(crc)
    masked[longest_first] = rotated + np.uint32(0xA282EAD8)
    return masked.astype("<u4")


def _crc_table() -> np.ndarray:
    """Return CRC-32C's table of a byte (polynomial 0x1EDC6F41, bits reversed)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1)
    return table.astype(np.uint32)


_CRC_TABLE = _crc_table()
