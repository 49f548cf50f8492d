"""From a problem's raw text to shards, vocabulary and manifest in a data_dir.

Two passes over the raw text: the first counts it and draws the sample for the vocabulary, the
second encodes it in chunks by a pool of processes; then the pool gathers the shards (see spill).
All that is unfinished lies in `<problem>.incomplete/` with a plan of what it is; the same command
goes on from there after it was killed. The manifest comes last, and only then is the data_dir of
use to anyone.
"""

import collections
import contextlib
import dataclasses
import fcntl
import importlib.metadata
import itertools
import json
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from t2t_lite import errors
from t2t_lite.data import manifest, shards, spill, workers
from t2t_lite.data import options as generator_options
from t2t_lite.data import problem as problems
from t2t_lite.text import cleaning as cleanings
from t2t_lite.text import text_files, vocabulary

Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much (0: unknown)

MAX_SHARDS = 100
_PAIRS_PER_SHARD = 10_000  # of a small corpus, which gets fewer shards
# The vocabulary's sample, both sides together. With 40 million characters 37,000 subwords would cut
# texts into 0.2 % fewer pieces, and learning them would take 5 s instead of 2, whatever the corpus.
_SAMPLE_CHARACTERS = 16_000_000


def generate(
    problem: problems.Problem,
    *,
    data_dir: str | os.PathLike[str],
    raw_dir: problems.Directory = None,
    tmp_dir: problems.Directory = None,
    cleaning: cleanings.Cleaning = cleanings.Cleaning(),  # noqa: B008 (it is frozen)
    progress: Progress = lambda stage, done, total: None,
    chunk_pairs: int = 20_000,
    **changes: Any,
) -> manifest.Manifest:
    """Make a problem's data in `data_dir`, or finish making them, and return the manifest.

    `changes` are fields of GeneratorOptions. The bytes follow from raw text, options and seed,
    whatever `num_workers` and `chunk_pairs` (pairs of a task) are. Data that are there already are
    left as they are if they were made from the same, else UserError says what differs; `overwrite`
    makes them anew. For a `_rev` problem the data are those of the problem itself.
    """
    options = generator_options.GeneratorOptions(**changes)
    data_dir = pathlib.Path(data_dir)
    vocab_size = options.vocab_size or problem.vocabulary_size
    request = {
        "options": {
            "vocab_size": vocab_size,
            "random_seed": options.random_seed,
            **dataclasses.asdict(cleaning),
        },
        "raw_files": spill.file_entries(problem.raw_files(raw_dir)),
    }
    work_dir = pathlib.Path(tmp_dir or data_dir) / f"{problem.base_name}.incomplete"
    if not options.overwrite:
        existing = _existing(problem, data_dir, request)
        if existing:
            shutil.rmtree(work_dir, ignore_errors=True)  # killed while it was being removed
            return existing
    read = _Reader(problem, raw_dir, tmp_dir or work_dir / "tmp", chunk_pairs)
    num_workers = options.num_workers or os.cpu_count() or 1
    with _only_one(work_dir):
        _begin(problem, data_dir, work_dir, request, overwrite=options.overwrite)
        try:
            plan, vocab = _plan(read, work_dir, vocab_size, options.random_seed, progress)
        except errors.UserError:
            _undo_beginning(data_dir, work_dir)
            raise
        read.chunk_pairs = plan["chunk_pairs"]
        job = spill.Job(
            work_dir=work_dir,
            data_dir=data_dir,
            base_name=problem.base_name,
            num_chunks=-(-plan["pairs"] // plan["chunk_pairs"]),
            num_shards=plan["num_shards"],
            seed=options.random_seed,
            cleaning=cleaning,
        )
        _encode(job, read, vocab, num_workers, progress)
        _gather(job, num_workers, progress)
        vocab_path = data_dir / problem.vocabulary_file(vocab_size)
        with text_files.replacing(vocab_path) as file:
            file.write(vocab.model_bytes)
        finished = manifest.Manifest(
            problem=problem.base_name,
            data_dir=data_dir,
            versions=_versions(),
            vocabulary=_vocabulary_entry(job, vocab_path, vocab),
            splits={"train": _train_entry(job), **_write_other_splits(job, read, vocab)},
            **request,
        )
        manifest.save(finished)
    shutil.rmtree(work_dir)
    return finished


class _Reader:
    """The problem's text; the number of pairs in a chunk is that of the plan."""

    def __init__(self, problem: problems.Problem, raw_dir, tmp_dir, chunk_pairs: int):
        self.problem, self.raw_dir, self.tmp_dir = problem, raw_dir, tmp_dir
        self.chunk_pairs = chunk_pairs
        self.splits = problem.splits(raw_dir)

    def samples(self, split: str) -> Iterator[problems.Sample]:
        return self.problem.samples(split, raw_dir=self.raw_dir, tmp_dir=self.tmp_dir)

    def chunks(self) -> Iterator[tuple[int, list[str], list[str]]]:
        """Yield the training pairs as (number of the first, inputs, targets)."""
        samples = self.samples("train")
        for first in itertools.count(step=self.chunk_pairs):
            chunk = list(itertools.islice(samples, self.chunk_pairs))
            if not chunk:
                return
            yield first, [one["inputs"] for one in chunk], [one["targets"] for one in chunk]


# Beginning, and going on


def _existing(problem, data_dir: pathlib.Path, request: dict) -> manifest.Manifest | None:
    """Return the finished data if they are what is asked for; None if there are none."""
    if not (data_dir / manifest.file_name(problem.base_name)).exists():
        return None
    found = manifest.load(data_dir, problem)
    _refuse_difference(
        f"{data_dir} holds {problem.base_name}",
        {"options": found.options, "raw_files": found.raw_files},
        request,
    )
    found.check_files()
    return found


def _begin(problem, data_dir, work_dir, request: dict, *, overwrite: bool) -> None:
    """Make sure that work_dir continues this request and no other."""
    data_dir.mkdir(parents=True, exist_ok=True)
    finished = data_dir / manifest.file_name(problem.base_name)
    path, plan = work_dir / "request.json", work_dir / "plan.json"
    request = {**request, "versions": _versions()}
    if path.exists() and plan.exists() and not finished.exists():
        old = json.loads(path.read_text("utf-8"))
        if old == request:
            return
        if not overwrite:
            where = f"{work_dir} holds an unfinished {problem.base_name}"
            _refuse_difference(where, old, request)
    # The manifest goes first: what it spoke for is about to go.
    finished.unlink(missing_ok=True)
    for shard in shards.find(data_dir, problem.base_name, "*"):
        if not overwrite:
            raise errors.UserError(
                f"{data_dir} holds {shard.name}, which no manifest speaks for; "
                "give another --data_dir or remove it with --overwrite"
            )
        shard.unlink()
    for half_written in data_dir.glob(f"{problem.base_name}-*.incomplete"):
        half_written.unlink()
    for entry in work_dir.iterdir():
        if entry.name != "lock":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    spill.write_json(path, request)


def _undo_beginning(data_dir: pathlib.Path, work_dir: pathlib.Path) -> None:
    """Remove the folders of a work that cannot begin, but not what was downloaded into them."""
    if not (work_dir / "tmp").exists():
        shutil.rmtree(work_dir)
        with contextlib.suppress(OSError):  # it is not empty: not ours
            data_dir.rmdir()


def _refuse_difference(where: str, old: dict, new: dict) -> None:
    """Raise UserError that names what differs between two requests."""
    old, new = (
        {
            **request["options"],
            **request.get("versions", {}),
            **{f"file {f['name']}": f"{f['bytes']} bytes {f['sha256'][:8]}" for f in files},
        }
        for request in (old, new)
        for files in [request["raw_files"]]
    )
    differences = [
        f"{key} {old.get(key, 'absent')} -> {new.get(key, 'absent')}"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]
    if differences:
        raise errors.UserError(
            f"{where} made otherwise: {', '.join(differences)}; give another --data_dir, "
            "the same flags and files as then, or --overwrite"
        )


def _versions() -> dict[str, str]:
    """Return what may change the bytes: of the format and of SentencePiece."""
    return {
        "t2t_lite_data": str(manifest.FORMAT),
        "sentencepiece": importlib.metadata.version("sentencepiece"),
    }


@contextlib.contextmanager
def _only_one(work_dir: pathlib.Path) -> Iterator[None]:
    """Hold the folder's lock; UserError if another process does."""
    work_dir.mkdir(parents=True, exist_ok=True)
    with open(work_dir / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise errors.UserError(f"another process is at work in {work_dir}") from error
        yield


# First pass


def _plan(
    read: _Reader, work_dir, vocab_size: int, seed: int, progress: Progress
) -> tuple[dict[str, int], vocabulary.Vocabulary]:
    """Count the pairs and learn the vocabulary, or read what an earlier run found."""
    plan_path, model_path = work_dir / "plan.json", work_dir / "vocabulary.model"
    if plan_path.exists():
        return json.loads(plan_path.read_text()), vocabulary.Vocabulary.load(model_path)
    pairs, sample, symbols = _survey(read, seed, progress)
    if not pairs:
        raise errors.UserError(f"{read.problem.base_name} has no training text")
    progress("learn vocabulary", 0, 0)
    model = vocabulary.train(sample, vocab_size, symbols=symbols)
    with text_files.replacing(model_path) as file:
        file.write(model)
    num_shards = min(MAX_SHARDS, -(-pairs // _PAIRS_PER_SHARD))
    plan = {"pairs": pairs, "num_shards": num_shards, "chunk_pairs": read.chunk_pairs}
    spill.write_json(plan_path, plan)
    return plan, vocabulary.Vocabulary(model)


def _survey(read: _Reader, seed: int, progress: Progress) -> tuple[int, list[str], list[str]]:
    """Return the number of pairs, sentences of a sample spread evenly over them, and the symbols.

    A pair is in the sample if its hash is below a limit; whenever the sample outgrows its bound the
    limit is halved, which leaves about half of it, still spread evenly. The symbols are all tokens
    of symbolic targets, which then are not in the sample.
    """
    for split in read.splits:  # so that a mistake in dev or test does not come last
        if split != "train":
            collections.deque(read.samples(split), maxlen=0)
    pairs, size, limit = 0, 0, 2**64 - 1
    symbols: set[str] = set()
    sample: list[tuple[int, str, str]] = []  # hash, inputs, targets
    for first, inputs, targets in read.chunks():
        if read.problem.symbolic_targets:
            tokens = (token for target in targets for token in target.split(" "))
            symbols.update(f" {token}" for token in tokens if token)
            targets = [""] * len(inputs)
        keys = spill.hash_keys(seed + 1, first, len(inputs))
        for i in np.flatnonzero(keys <= np.uint64(limit)).tolist():
            sample.append((int(keys[i]), inputs[i], targets[i]))
            size += len(inputs[i]) + len(targets[i])
        while size > _SAMPLE_CHARACTERS and len(sample) > 1:
            limit //= 2
            sample = [one for one in sample if one[0] <= limit]
            size = sum(len(inputs) + len(targets) for _, inputs, targets in sample)
        pairs = first + len(inputs)
        progress("read text", pairs, 0)
    return pairs, [sentence for _, *sides in sample for sentence in sides], sorted(symbols)


# Second pass


def _encode(job, read: _Reader, vocab, num_workers: int, progress: Progress) -> None:
    """Spill every chunk that is not spilt yet."""
    missing = [i for i in range(job.num_chunks) if not spill.chunk_report(job, i).exists()]
    if not missing or all(spill.shard_report(job, i).exists() for i in range(job.num_shards)):
        return
    wanted = set(missing)
    tasks = (
        (job, chunk, first, inputs, targets)
        for chunk, (first, inputs, targets) in enumerate(read.chunks())
        if chunk in wanted
    )
    done = job.num_chunks - len(missing)
    encode = _Encode(vocab.model_bytes)
    for finished in workers.run(encode, tasks, num_workers=min(num_workers, len(missing))):
        progress("encode", done + finished, job.num_chunks)


@dataclasses.dataclass(frozen=True)
class _Encode:
    model_bytes: bytes

    def __call__(self, *task: Any) -> None:
        spill.encode_chunk(*task, model_bytes=self.model_bytes)


def _gather(job: spill.Job, num_workers: int, progress: Progress) -> None:
    """Write every shard that is not written yet."""
    missing = [i for i in range(job.num_shards) if not _is_finished(job, i)]
    done = job.num_shards - len(missing)
    tasks = ((job, shard) for shard in missing)
    for finished in workers.run(
        spill.gather_shard, tasks, num_workers=min(num_workers, len(missing))
    ):
        progress("write shards", done + finished, job.num_shards)


def _is_finished(job: spill.Job, shard: int) -> bool:
    report = spill.shard_report(job, shard)
    if not report.exists():
        return False
    entry = json.loads(report.read_text())["shard"]
    path = job.data_dir / entry["name"]
    return path.exists() and path.stat().st_size == entry["bytes"]


# What the manifest says


def _train_entry(job: spill.Job) -> dict[str, Any]:
    counts, dropped = _chunk_totals(job)
    reports = [json.loads(spill.shard_report(job, i).read_text()) for i in range(job.num_shards)]
    rows: dict[tuple[int, int], int] = {}
    for source, target, number in itertools.chain.from_iterable(r["lengths"] for r in reports):
        rows[source, target] = rows.get((source, target), 0) + number
    if job.cleaning.drop_duplicates:
        dropped["duplicate"] = sum(report["duplicates"] for report in reports)
    return {
        "pairs": sum(report["shard"]["records"] for report in reports),
        "pairs_read": counts["pairs"],
        "dropped": dropped,
        "not_utf8": counts["not_utf8"],
        "source_tokens": sum(report["source_tokens"] for report in reports),
        "target_tokens": sum(report["target_tokens"] for report in reports),
        "shards": [report["shard"] for report in reports],
        "lengths": [[*cell, rows[cell]] for cell in sorted(rows)],
    }


def _chunk_totals(job: spill.Job) -> tuple[dict[str, int], dict[str, int]]:
    """Return the sums of the chunks' counts and of the pairs dropped by reason."""
    counts: dict[str, int] = {}
    dropped = {"empty": 0, "too_long": 0, "length_ratio": 0}
    for i in range(job.num_chunks):
        report = json.loads(spill.chunk_report(job, i).read_text())
        for totals, part in ((counts, report["counts"]), (dropped, report["dropped"])):
            for key, number in part.items():
                totals[key] = totals.get(key, 0) + number
    return counts, dropped


def _write_other_splits(job: spill.Job, read: _Reader, vocab) -> dict[str, dict[str, Any]]:
    """Write dev and test splits in their own order: one shard, and the raw text for scoring."""
    entries = {}
    for split in read.splits:
        if split == "train":
            continue
        found = list(read.samples(split))
        samples = [sample for sample in found if sample.get("reference") != ""]
        sides = [[sample[key] for sample in samples] for key in ("inputs", "targets")]
        ids = [[[*one, vocabulary.EOS_ID] for one in vocab.encode_batch(side)] for side in sides]
        path = job.data_dir / shards.name(job.base_name, split, 0, 1)
        shards.write(path, [shards.example(*pair) for pair in zip(*ids)])
        text = [job.data_dir / name for name in manifest.text_names(job.base_name, split)]
        references = [sample.get("reference", sample["targets"]) for sample in samples]
        for text_path, side in zip(text, (sides[0], references)):
            text_files.write_lines(text_path, side)
        lengths = [np.array([len(one) for one in side], np.int64) for side in ids]
        entries[split] = {
            "pairs": len(samples),
            "source_tokens": int(lengths[0].sum()),
            "target_tokens": int(lengths[1].sum()),
            "text": [spill.file_entry(text_path) for text_path in text],
            "shards": [{**spill.file_entry(path), "records": len(samples)}],
            "lengths": manifest.histogram(*lengths),
        }
        if len(samples) < len(found):
            entries[split]["dropped"] = {"empty": len(found) - len(samples)}
    return entries


def _vocabulary_entry(job: spill.Job, path: pathlib.Path, vocab) -> dict[str, Any]:
    counts, _ = _chunk_totals(job)
    entry = spill.file_entry(path)
    return {
        "file": entry.pop("name"),
        **entry,
        "size": vocab.size,
        "subwords_per_word": round(counts["subwords"] / counts["words"], 4),
        "byte_subwords_share": round(counts["byte_subwords"] / max(counts["subwords"], 1), 7),
    }
