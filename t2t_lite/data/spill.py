"""A global shuffle that never holds the corpus: pairs are spilled by chunk, then gathered by shard.

    encode_chunk   pairs 40,000 ... 59,999 -> chunk-00002.{records,npy,json}, sorted by shard
    gather_shard   its part of every chunk -> <problem>-train-00007-of-00100, in shuffled order

Shard and place of a pair follow from a hash of its number in the corpus (where duplicates are
dropped the shard follows from its content, so that equal pairs meet). Hence the shards' bytes
depend on corpus and seed alone: not on the size of chunks, the number of processes, or how often
the work was cut short. Both functions leave a small json file behind when all else is written;
where it is, they are done.
"""

import bisect
import collections
import dataclasses
import functools
import hashlib
import json
import pathlib
from collections.abc import Sequence

import numpy as np

from t2t_lite.data import lengths, manifest, shards
from t2t_lite.text import any_vocabulary, cleaning, text_files, vocabulary

_BATCH = 2_000  # pairs that are encoded together: their lists of ids are the peak of memory
_MAX_CHARACTERS = 1 << 21  # of them: 2,000 pairs of 28 words have 700,000
_INDEX = np.dtype(
    [
        ("shard", "<u2"),
        ("order", "<u8"),  # place within the shard
        ("end", "<u8"),  # of the record in the chunk's file
        ("source", "<u4"),  # lengths with EOS
        ("target", "<u4"),
        ("digest", "<u8", 2),  # of the content
    ]
)

_vocabulary = functools.lru_cache(maxsize=1)(any_vocabulary.from_bytes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """What every task of one generation shares."""

    work_dir: pathlib.Path
    data_dir: pathlib.Path
    base_name: str
    num_chunks: int
    num_shards: int
    seed: int
    cleaning: cleaning.Cleaning


def encode_chunk(
    job: Job,
    chunk: int,
    first: int,
    inputs: Sequence[str],
    targets: Sequence[str],
    *,
    model_bytes: bytes,
) -> None:
    """Encode a chunk, the pairs number `first`, first + 1, ... of the corpus, and spill it by
    shard."""
    vocab = _vocabulary(model_bytes)
    overlong = [i for i, pair in enumerate(zip(inputs, targets)) if cleaning.is_overlong(*pair)]
    counts = collections.Counter(pairs=len(overlong))
    dropped = collections.Counter(too_long=len(overlong))
    records, rows = [], []
    orders = hash_keys(job.seed, first, len(inputs))
    places = sorted(set(range(len(inputs))).difference(overlong))
    for batch in text_files.windows(
        places,
        _BATCH,
        length=lambda i: len(inputs[i]) + len(targets[i]),
        max_length=_MAX_CHARACTERS,
    ):
        sides = [[side[i] for i in batch] for side in (inputs, targets)]
        ids = [vocab.encode_batch(sides[0]), vocab.targets.encode_batch(sides[1])]
        counts.update(_figures(vocab, sides, ids))
        for i, source, target, source_ids, target_ids in zip(batch, *sides, *ids):
            reason = job.cleaning.reason(source, target, len(source_ids), len(target_ids))
            if reason:
                dropped[reason] += 1
                continue
            source_ids.append(vocabulary.EOS_ID)
            target_ids.append(vocabulary.EOS_ID)
            record = shards.example(source_ids, target_ids)
            records.append(record)
            rows.append((i, len(source_ids), len(target_ids), *digest(record)))
    index = _index(job, orders, rows, records)
    by_shard = np.argsort(index["shard"], kind="stable")
    index = index[by_shard]
    index["end"] = np.cumsum([len(records[i]) for i in by_shard])
    stem = job.work_dir / f"chunk-{chunk:05d}"
    with text_files.replacing(stem.with_suffix(".records")) as file:
        file.writelines(records[i] for i in by_shard)
    with text_files.replacing(stem.with_suffix(".npy")) as file:
        np.save(file, index)
    report = {
        "counts": counts,
        "dropped": dropped,
        "overlong": [first + i + 1 for i in overlong],  # which pairs of the corpus, from 1
    }
    text_files.write_json(chunk_report(job, chunk), report)


def gather_shard(job: Job, shard: int) -> None:
    """Write one final shard from its part of every chunk, in the order of the chunks."""
    parts, records = [np.empty(0, _INDEX)], []
    for chunk in range(job.num_chunks):
        stem = job.work_dir / f"chunk-{chunk:05d}"
        of_chunk = np.load(stem.with_suffix(".npy"), mmap_mode="r")
        column = of_chunk["shard"]
        low, high = bisect.bisect_left(column, shard), bisect.bisect_right(column, shard)
        part = np.array(of_chunk[low:high])
        parts.append(part)
        start = int(of_chunk["end"][low - 1]) if low else 0
        with open(stem.with_suffix(".records"), "rb") as file:
            file.seek(start)
            for end in part["end"].tolist():
                records.append(file.read(end - start))
                start = end
    index = np.concatenate(parts)
    kept = np.arange(len(index))
    if job.cleaning.drop_duplicates:
        kept = np.unique(index["digest"], axis=0, return_index=True)[1]
    kept = kept[np.argsort(index["order"][kept])]
    path = job.data_dir / shards.name(job.base_name, "train", shard, job.num_shards)
    shards.write(path, [records[i] for i in kept])
    report = {
        "shard": {**manifest.file_entry(path), "records": len(kept)},
        "duplicates": len(index) - len(kept),
        "lengths": lengths.histogram(index["source"][kept], index["target"][kept]),
        "source_tokens": int(index["source"][kept].sum()),
        "target_tokens": int(index["target"][kept].sum()),
    }
    text_files.write_json(shard_report(job, shard), report)


def chunk_report(job: Job, chunk: int) -> pathlib.Path:
    """Return the file that says that a chunk is done."""
    return job.work_dir / f"chunk-{chunk:05d}.json"


def chunk_digests(job: Job, chunk: int) -> np.ndarray:
    """Return the first number of each pair's digest in a chunk that is spilled."""
    path = chunk_report(job, chunk).with_suffix(".npy")
    return np.array(np.load(path, mmap_mode="r")["digest"][:, 0])


def shard_report(job: Job, shard: int) -> pathlib.Path:
    """Return the file that says that a shard is done."""
    return job.work_dir / f"shard-{shard:05d}.json"


def missing_chunks(job: Job) -> list[int]:
    """Return the chunks that are not spilled; none where all shards are there, made of them."""
    missing = [chunk for chunk in range(job.num_chunks) if not chunk_report(job, chunk).exists()]
    if all(shard_report(job, shard).exists() for shard in range(job.num_shards)):
        return []
    return missing


def missing_shards(job: Job) -> list[int]:
    """Return the shards that are not there as their reports say, whole."""
    return [shard for shard in range(job.num_shards) if not _is_finished(job, shard)]


def _is_finished(job: Job, shard: int) -> bool:
    report = shard_report(job, shard)
    if not report.exists():
        return False
    entry = json.loads(report.read_text())["shard"]
    return not manifest.difference(job.data_dir, entry, hashes=True)


def hash_keys(seed: int, first: int, count: int) -> np.ndarray:
    """Return a 64-bit hash of each of the numbers first, first + 1, ... (SplitMix64).

    For one seed no two numbers have the same hash.
    """
    with np.errstate(over="ignore"):
        offset = _mix(np.array([seed % 2**64], np.uint64))
        return _mix(np.arange(first, first + count, dtype=np.uint64) + offset)


def _mix(keys: np.ndarray) -> np.ndarray:
    """Apply SplitMix64's finalizer, a bijection (Steele, Lea and Flood 2014)."""
    keys = keys + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _index(job: Job, orders: np.ndarray, rows: list, records: list) -> np.ndarray:
    index = np.zeros(len(records), _INDEX)
    if rows:
        numbers, index["source"], index["target"], *digest = np.array(rows, np.uint64).T
        index["digest"] = np.stack(digest, axis=1)
        index["order"] = orders[numbers]
        key = index["digest"][:, 0] if job.cleaning.drop_duplicates else _mix(index["order"])
        index["shard"] = key % np.uint64(job.num_shards)
    return index


def digest(record: bytes) -> tuple[int, int]:
    """Return a hash of a record's content, in two numbers."""
    hashed = hashlib.blake2b(record, digest_size=16).digest()
    return int.from_bytes(hashed[:8], "little"), int.from_bytes(hashed[8:], "little")


def _figures(vocab: vocabulary.Vocabulary, sides, ids) -> dict[str, int]:
    """Return what the manifest reports about the fit of the vocabulary and the encoding."""
    flat = np.fromiter((token for side in ids for one in side for token in one), np.int32)
    spelt = (flat >= vocab.byte_ids.start) & (flat < vocab.byte_ids.stop)
    broken = sum(
        text_files.REPLACEMENT in source or text_files.REPLACEMENT in target
        for source, target in zip(*sides)
    )
    return {
        "pairs": len(sides[0]),
        "words": sum(text.count(" ") + 1 for side in sides for text in side),
        "subwords": len(flat),
        "byte_subwords": int(spelt.sum()),
        "not_utf8": broken,
    }
