"""A worker's share of each batch: it reads its own rows, and of all others only their lengths.

Which pairs make up a batch follows from their order and their lengths. So each worker arranges the
numbers of pairs, as the pipeline arranges the pairs themselves, and reads the records of its own
rows by their places in the shards:

    numbers --shuffle, by length--> {"pairs": int64 [B], ...} of one shape --own rows-->
        {"inputs": int32 [B, S], "targets": int32 [B, T]}, zeros in the rows of the others

A batch is, row by row, what `pipeline.train_batches` makes. Lengths and places come from one pass
over the shards, some 6 microseconds a pair, and are kept beside the data where that can be written.
The position is that of the numbers, the same for all workers.
"""

import dataclasses
import os
import pathlib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import tensorflow as tf

from t2t_lite.data import data_dir, pipeline, shards, token_batches
from t2t_lite.text import text_files

_BLOCK = 4096  # records that are measured together

RowsOf = Callable[[token_batches.Shape], slice]


@dataclasses.dataclass
class Index:
    """Where each training pair is, and how long; its number counts through all shards.

    Args:
      paths: the shards in their order.
      counts: int64 [shards], pairs in each.
      offsets: int64 [pairs], where each record begins in its file.
      num_bytes: int32 [pairs], each record's length without its framing.
      lengths: int32 [pairs, 2], tokens of `inputs` and `targets` as the records have them.
    """

    paths: Sequence[pathlib.Path]
    counts: np.ndarray
    offsets: np.ndarray
    num_bytes: np.ndarray
    lengths: np.ndarray

    def __post_init__(self) -> None:
        self.firsts = np.cumsum(self.counts) - self.counts
        self._files: dict[int, BinaryIO] = {}

    def records(self, pairs: np.ndarray) -> list[bytes]:
        """Return the records of some pairs; UserError where one is damaged."""
        found: list[bytes] = [b""] * len(pairs)
        of_shard = np.searchsorted(self.firsts, pairs, side="right") - 1
        for shard in np.unique(of_shard):
            places = np.flatnonzero(of_shard == shard)
            numbers = pairs[places]
            read = shards.read_at(
                self._file(int(shard)),
                self.offsets[numbers].tolist(),
                self.num_bytes[numbers].tolist(),
                (numbers - self.firsts[shard]).tolist(),
            )
            for place, record in zip(places, read):
                found[place] = record
        return found

    def _file(self, shard: int) -> BinaryIO:
        if shard not in self._files:
            self._files[shard] = self.paths[shard].open("rb", buffering=0)
        return self._files[shard]


def index(data: data_dir.Data) -> Index:
    """Return the index of a training split: the one beside its shards, or made anew."""
    data.check_files()
    paths = data.shards("train")
    content = data.content_hash("train")
    kept = data.folder / f"{data.problem.base_name}-train.index.npz"
    try:
        with np.load(kept) as arrays:
            if str(arrays["content"]) == content:
                parts = {name: arrays[name] for name in arrays if name != "content"}
                return Index(paths, **parts)
    except (OSError, EOFError, KeyError, ValueError, TypeError, zipfile.BadZipFile):
        # there is none, or none that can be used
        pass
    parts = _measure(paths)
    try:
        with text_files.replacing(kept) as file:
            arrays: dict[str, Any] = {"content": np.array(content), **parts}
            np.savez(file, **arrays)
    except OSError:
        pass  # data that may only be read are measured at every start
    return Index(paths, **parts)


def _measure(paths: Sequence[pathlib.Path]) -> dict[str, np.ndarray]:
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def measure(records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        parsed = tf.io.parse_example(records, pipeline.FEATURES)
        lengths = [parsed[name].row_lengths() for name in ("inputs", "targets")]
        return tf.strings.length(records), tf.cast(tf.stack(lengths, axis=1), tf.int32)

    counts, offsets, num_bytes, lengths = [], [], [], []
    for path in paths:
        records = tf.data.TFRecordDataset(os.fsencode(path))
        of_shard = [measure(block) for block in records.batch(_BLOCK)]
        sizes = np.concatenate([np.zeros(0, np.int32), *(x.numpy() for x, _ in of_shard)])
        taken = shards.framed(sizes.astype(np.int64))
        counts.append(len(sizes))
        num_bytes.append(sizes)
        offsets.append(np.cumsum(taken) - taken)
        lengths += [x.numpy() for _, x in of_shard]
    return {
        "counts": np.array(counts, np.int64),
        "offsets": np.concatenate(offsets),
        "num_bytes": np.concatenate(num_bytes),
        "lengths": np.concatenate(lengths),
    }


class SharedBatches:
    """An endless iterator over one worker's share of the batches of `pipeline.train_batches`.

    A batch has "inputs" [B, S] and "targets" [B, T], in which the other workers' rows are zeros;
    "tokens", int32 [2], the real source and target tokens of all rows; and "pairs", int64 [B].

    Args:
      rows_of: which rows of a batch of a shape are this worker's.

    `position` is what a tf.train.Checkpoint saves, the same for all workers.
    """

    def __init__(
        self,
        data: data_dir.Data,
        *,
        batch_tokens: int,
        max_length: int,
        max_buckets: int,
        seed: int,
        rows_of: RowsOf,
    ):
        self._shapes = pipeline.bucket_shapes(
            data, batch_tokens=batch_tokens, max_length=max_length, max_buckets=max_buckets
        )
        self._index = index(data)
        sides = [1, 0] if data.problem.is_reversed else [0, 1]
        self._lengths = self._index.lengths[:, sides]
        self._sides = [("inputs", "targets")[side] for side in sides]
        self._rows_of = rows_of
        self.position = iter(self._arranged(max_length, seed))

    def __iter__(self) -> Iterator[dict[str, tf.Tensor]]:
        return self

    def __next__(self) -> dict[str, tf.Tensor]:
        arranged = next(self.position)
        shape, pairs = self._shapes[int(arranged["bucket"])], arranged["pairs"].numpy()
        rows = self._rows_of(shape)
        batch = self._read(pairs, shape, range(*rows.indices(shape.batch)))
        tokens = self._lengths[pairs].sum(0, dtype=np.int32)
        return {**batch, "tokens": tf.constant(tokens), "pairs": tf.constant(pairs)}

    def whole(self, batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return a batch with the rows of all workers."""
        rows, source = batch["inputs"].shape
        shape = token_batches.Shape(rows, source, batch["targets"].shape[1])
        return self._read(batch["pairs"].numpy(), shape, range(shape.batch))

    def _arranged(self, max_length: int, seed: int) -> tf.data.Dataset:
        """Return {"pairs": [B], "bucket": []} of one batch after the other."""
        firsts, counts = tf.constant(self._index.firsts), tf.constant(self._index.counts)

        def lengths_of(block: np.ndarray) -> np.ndarray:
            return self._lengths[block].astype(np.int64)

        def measure(block: tf.Tensor) -> dict[str, tf.Tensor]:
            # Not as a tensor, which would be a part of the dataset's graph.
            lengths = tf.numpy_function(lengths_of, [block], tf.int64, stateful=False)
            lengths = tf.ensure_shape(lengths, [None, 2])
            fits = tf.reduce_max(lengths, axis=1) <= max_length
            block, lengths = tf.boolean_mask(block, fits), tf.boolean_mask(lengths, fits)
            bucket = token_batches.smallest_fitting(lengths[:, 0], lengths[:, 1], self._shapes)
            return {"pairs": block, "bucket": bucket}

        blocks = pipeline.in_training_order(
            range(len(self._index.counts)),
            lambda shard: tf.data.Dataset.range(firsts[shard], firsts[shard] + counts[shard]),
            seed=seed,
        ).map(measure)
        batches = token_batches.by_bucket(
            blocks, self._shapes, lambda key, one: {"pairs": one["pairs"], "bucket": key}
        )
        return pipeline.with_options(batches.prefetch(4))

    def _read(
        self, pairs: np.ndarray, shape: token_batches.Shape, rows: range
    ) -> dict[str, tf.Tensor]:
        """Return inputs and targets, filled in these rows."""
        # Of a batch of few rows a worker may have none; TensorFlow would not know what they are of.
        records = tf.constant(self._index.records(pairs[rows.start : rows.stop]), tf.string)
        with tf.device("CPU"):
            parsed = tf.io.parse_example(records, pipeline.FEATURES)
            padding = [[rows.start, shape.batch - rows.stop], [0, 0]]
            return {
                side: tf.pad(
                    tf.cast(parsed[name], tf.int32).to_tensor(shape=[len(rows), length]), padding
                )
                for side, name, length in zip(
                    ("inputs", "targets"), self._sides, (shape.source, shape.target)
                )
            }
