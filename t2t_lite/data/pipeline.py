"""From shards to batches of static shape, as plain tf.data.

    shards --shuffle, interleave--> records --shuffle, parse--> blocks of pairs --by tokens-->
        {"inputs": int32 [B, S], "targets": int32 [B, T]}, zeros where there is no token

with one (B, S, T) for each bucket (see `bucket_shapes` and token_batches). What a pair needs is
done to a block of them at once, because a call for each costs several times as much as the work
itself. The whole state is the iterator's, so a tf.train.Checkpoint of it resumes exactly:

    iterator = iter(pipeline.train_batches(problem, data_dir, batch_tokens=25_000, seed=1))
    checkpoint = tf.train.Checkpoint(model=model, iterator=iterator)

Legend: B batch, S source length, T target length.
"""

import collections
import contextlib
import functools
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.data import buckets, manifest, shards, token_batches
from t2t_lite.data import problem as problems

DEFAULT_MAX_BUCKETS = 24  # captions take 20 to be 93 % full, news 21 to be 90 %
_CYCLE = 16  # shards that are read in turns
_SHUFFLE = 1 << 14  # records: the shards are shuffled already, so this only mixes what is near
_BLOCK = 256  # records that are parsed by one call
_READ_BYTES = 1 << 18  # of a shard at a time
FEATURES = {  # of a record
    side: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for side in ("inputs", "targets")
}

Path = str | os.PathLike[str]


def bucket_shapes(
    problem: problems.Problem,
    data_dir: Path,
    *,
    batch_tokens: int,
    max_length: int,
    max_buckets: int = DEFAULT_MAX_BUCKETS,
) -> list[token_batches.Shape]:
    """Return the shapes of all batches that `train_batches` yields, small to large.

    They follow from the lengths of the training pairs: as few shapes as fill 93 %, at most
    `max_buckets`. A batch has at most `batch_tokens` tokens of each side, padding included, and a
    multiple of 8 rows where that many fit.
    """
    table = _train_lengths(problem, data_dir, max_length)
    sizes = buckets.choose(table, max_buckets=max_buckets)
    return [token_batches.shape(size, batch_tokens) for size in sizes]


def mean_tokens(
    problem: problems.Problem,
    data_dir: Path,
    shapes: Sequence[token_batches.Shape],
    *,
    max_length: int,
) -> tuple[float, float]:
    """Return the real source and target tokens of a batch of these shapes, on average.

    A batch has at most `batch_tokens` of each side; what is less is padding, of which the shorter
    side has more.
    """
    table = _train_lengths(problem, data_dir, max_length)
    smallest = buckets.smallest(table, [shape[1:] for shape in shapes])
    rows = np.array([shape.batch for shape in shapes])[smallest]
    batches = (table[:, 2] / rows).sum()
    source, target = (table[:, :2] * table[:, 2:]).sum(0) / batches
    return float(source), float(target)


def train_batches(
    problem: problems.Problem,
    data_dir: Path,
    *,
    batch_tokens: int,
    max_length: int,
    seed: int,
    max_buckets: int = DEFAULT_MAX_BUCKETS,
) -> tf.data.Dataset:
    """Return endless batches of the training split in an order that follows from `seed`.

    Every epoch sees each pair of at most `max_length` tokens (with EOS) a side once, in a new
    order; a batch may reach from one epoch into the next.
    """
    shapes = bucket_shapes(
        problem,
        data_dir,
        batch_tokens=batch_tokens,
        max_length=max_length,
        max_buckets=max_buckets,
    )
    blocks = _training_blocks(problem, data_dir, max_length, seed)
    return with_options(token_batches.batch_by_tokens(blocks, shapes).prefetch(4))


def eval_batches(
    problem: problems.Problem,
    data_dir: Path,
    split: str,
    *,
    batch_tokens: int,
    max_length: int,
    max_buckets: int = DEFAULT_MAX_BUCKETS,
) -> tf.data.Dataset:
    """Return the batches of one pass over a split, every pair in it, in the training's shapes.

    The last batch of each shape is filled up with rows of padding. Pairs that fit no training shape
    share one more.
    """
    shapes = bucket_shapes(
        problem,
        data_dir,
        batch_tokens=batch_tokens,
        max_length=max_length,
        max_buckets=max_buckets,
    )
    split = problem.split(split)
    loaded = manifest.load(data_dir, problem)
    loaded.check_files()
    table = loaded.lengths(split, is_reversed=problem.is_reversed)
    unfit = buckets.unfit(table, [shape[1:] for shape in shapes])
    if len(unfit):
        source, target, _ = unfit.max(0).tolist()
        shapes.append(token_batches.shape((source, target), batch_tokens))
    paths = [str(path) for path in loaded.shards(split)]
    blocks = _blocks(tf.data.TFRecordDataset(paths).batch(_BLOCK), problem)
    return with_options(token_batches.batch_by_tokens(blocks, shapes).prefetch(4))


def fill(batches: Sequence[dict[str, tf.Tensor]]) -> float:
    """Return the share of real tokens among all of some batches, both sides together."""
    real = sum(int(tf.math.count_nonzero(batch[key])) for batch in batches for key in batch)
    return real / sum(int(tf.size(batch[key])) for batch in batches for key in batch)


def count_too_long(problem: problems.Problem, data_dir: Path, max_length: int) -> int:
    """Count the training pairs that batches leave out.

    From the manifest's histogram, whose long lengths are rounded up: a few pairs just over a limit
    that is no such length are not in the count.
    """
    table = manifest.load(data_dir, problem).lengths("train", is_reversed=problem.is_reversed)
    limit = manifest.round_length(np.array(max_length))
    return int(table[table[:, :2].max(axis=1) > limit, 2].sum())


def content_hash(problem: problems.Problem, data_dir: Path, split: str) -> str:
    """Return a SHA-256 of what a split holds: of the hashes of the vocabulary and its shards.

    tensor2tensor's files have no hashes in a manifest: their names and sizes stand for them.
    """
    loaded = manifest.load(data_dir, problem)
    names = {path.name for path in (*loaded.shards(split), loaded.vocabulary_path)}
    files = [
        (entry["name"], entry["bytes"], entry.get("sha256"))
        for entry in loaded.files()
        if entry["name"] in names
    ]
    return hashlib.sha256(json.dumps(sorted(files)).encode("utf-8")).hexdigest()


@contextlib.contextmanager
def explain_damage(problem: problems.Problem, data_dir: Path) -> Iterator[None]:
    """Turn TensorFlow's error about a corrupt or lost shard into one that names file and record.

    For what takes batches: with pipeline.explain_damage(problem, data_dir): batch = next(iterator)
    """
    try:
        yield
    except (
        tf.errors.DataLossError,
        tf.errors.InvalidArgumentError,
        tf.errors.NotFoundError,
        tf.errors.PermissionDeniedError,
    ) as error:
        loaded = manifest.load(data_dir, problem)
        loaded.check_files()
        for path in itertools.chain.from_iterable(map(loaded.shards, loaded.splits)):
            collections.deque(shards.read(path), maxlen=0)
        raise error


def _training_blocks(
    problem: problems.Problem, data_dir: Path, max_length: int, seed: int
) -> tf.data.Dataset:
    """Return endless blocks of shuffled pairs."""
    loaded = manifest.load(data_dir, problem)
    loaded.check_files()
    names = [path.name for path in loaded.shards("train")]
    records = in_training_order(
        names, functools.partial(_read_shard, folder=str(loaded.data_dir)), seed=seed
    )

    def drop_long(block: dict[str, tf.RaggedTensor]) -> dict[str, tf.RaggedTensor]:
        longest = tf.maximum(block["inputs"].row_lengths(), block["targets"].row_lengths())
        return {
            side: tf.ragged.boolean_mask(ids, longest <= max_length) for side, ids in block.items()
        }

    return _blocks(records, problem).map(drop_long)


def in_training_order(
    shards_: Sequence[str] | Sequence[int],
    read: Callable[[tf.Tensor], tf.data.Dataset],
    *,
    seed: int,
) -> tf.data.Dataset:
    """Return what `read` gives of each shard, endlessly, in the order in which training sees it."""
    return (
        tf.data.Dataset.from_tensor_slices(shards_)
        .shuffle(len(shards_), seed=seed)
        .interleave(
            read,
            cycle_length=min(_CYCLE, len(shards_)),
            num_parallel_calls=1,
            deterministic=True,
        )
        .shuffle(_SHUFFLE, seed=seed + 1)
        .repeat()
        .batch(_BLOCK)
    )


def _read_shard(name: tf.Tensor, *, folder: str) -> tf.data.Dataset:
    """Return the records of the shard called `name`.

    A saved iterator holds what goes into its functions, here names: the folder is added where
    nothing is saved any more, so that data may be moved. TFRecordDataset has a function of its own,
    into which the path would go.
    """

    def read(name: tf.Tensor) -> tf.data.Dataset:
        path = tf.strings.join([folder + os.sep, name])
        records = tf.raw_ops.TFRecordDataset(
            filenames=path, compression_type="", buffer_size=tf.constant(_READ_BYTES, tf.int64)
        )
        return tf.data.experimental.from_variant(records, tf.TensorSpec([], tf.string))

    return tf.data.Dataset.from_tensor_slices(name[None]).flat_map(read)


def _train_lengths(problem: problems.Problem, data_dir: Path, max_length: int) -> np.ndarray:
    loaded = manifest.load(data_dir, problem)
    table = loaded.lengths("train", is_reversed=problem.is_reversed).copy()
    if loaded.splits["train"].get("lengths_sampled"):
        table = np.concatenate([table, [[max_length, max_length, 1]]])
    # The histogram's long lengths are rounded up, perhaps past the limit that the pair is within.
    over = table[:, :2].max(1) > manifest.round_length(np.array(max_length))
    table = table[~over]
    table[:, :2] = np.minimum(table[:, :2], max_length)
    if not len(table):
        raise errors.UserError(
            f"{data_dir}: no training pair of {problem.name} has at most max_length={max_length} "
            "tokens a side"
        )
    return table


def _blocks(records: tf.data.Dataset, problem: problems.Problem) -> tf.data.Dataset:
    """Return {"inputs", "targets"} of blocks of records, ragged int32 [block, None], as the problem
    reads them."""
    inputs, targets = ("targets", "inputs") if problem.is_reversed else ("inputs", "targets")

    def parse(block: tf.Tensor) -> dict[str, tf.RaggedTensor]:
        parsed = tf.io.parse_example(block, FEATURES)
        return {
            "inputs": tf.cast(parsed[inputs], tf.int32),
            "targets": tf.cast(parsed[targets], tf.int32),
        }

    return records.map(parse)


def with_options(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return a dataset with a fixed order that leaves the cores to the training."""
    options = tf.data.Options()
    options.deterministic = True
    # One process shares its cores with the training: no pool of its own, no tuning at run time.
    options.autotune.enabled = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)
