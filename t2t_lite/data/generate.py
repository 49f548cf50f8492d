"""From a problem's raw text to shards, vocabulary and manifest in a data_dir.

Two passes over the raw text: the first counts it and draws the sample for the vocabulary, the
second encodes it in chunks by a pool of processes; then the pool gathers the shards (see spill).
All that is unfinished lies in `<problem>.incomplete/` with a plan of what it is; the same command
goes on from there after it was killed. The manifest comes last, and only then is the data_dir of
use to anyone.
"""

import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_lite import errors, locks, machine
from t2t_lite.data import data_dir as data_dirs
from t2t_lite.data import engine as engines
from t2t_lite.data import lengths, manifest, remarks, resuming, shards, spill
from t2t_lite.data import options as generator_options
from t2t_lite.data import problem as problems
from t2t_lite.data import reader as readers
from t2t_lite.data import survey as surveys
from t2t_lite.run import output_dir as output_dirs
from t2t_lite.text import any_vocabulary, sentencepiece_vocabulary, text_files, vocabulary
from t2t_lite.text import cleaning as cleanings

if TYPE_CHECKING:
    from t2t_lite.data import beam

# Up to 100 million pairs (WMT's largest corpus has 41) there are 100 shards; beyond it more, since
# whoever gathers a shard holds it, some 270 bytes a pair.
MAX_SHARDS = 100
_MAX_PAIRS_PER_SHARD = 1_000_000
_PAIRS_PER_SHARD = 10_000  # of a small corpus, which gets fewer shards
_MAX_NAMED = 100  # overlong pairs whose numbers the manifest has


def generate(
    problem: problems.Problem,
    *,
    data_dir: str | os.PathLike[str],
    raw_dir: problems.Directory = None,
    tmp_dir: problems.Directory = None,
    cleaning: cleanings.Cleaning = cleanings.Cleaning(),  # noqa: B008 (it is frozen)
    progress: engines.Progress = lambda stage, done, total: None,
    chunk_pairs: int = 20_000,
    **changes: Any,
) -> data_dirs.Data:
    """Make a problem's data in `data_dir`, or finish making them, and return them.

    `changes` are fields of GeneratorOptions. The bytes follow from raw text, options and seed,
    whatever `num_workers` and `chunk_pairs` (pairs of a task) are. Data that are there already are
    left as they are if they were made from the same, else UserError says what differs; `overwrite`
    makes them anew. For a `_rev` problem the data are those of the problem itself. With several
    processes, which is the default, a script calls this under `if __name__ == "__main__":`.
    """
    options = generator_options.GeneratorOptions(**changes)
    data_dir = pathlib.Path(data_dir)
    given = _given_vocabulary(options.vocab_from, problem) if options.vocab_from else None
    vocab_size = given.vocab.targets.size if given else options.vocab_size
    if options.columns:
        problem = _with_columns(problem, options.columns)
    request = {
        "options": {
            "vocab_size": vocab_size or problem.vocabulary_size,
            "random_seed": options.random_seed,
            **({"vocabulary": given.vocab.fingerprint} if given else {}),
            **options.not_default(),
            **dataclasses.asdict(cleaning),
        },
        "raw_files": manifest.file_entries(problem.raw_files(raw_dir)),
        "versions": resuming.versions(),
    }
    work_dir = pathlib.Path(tmp_dir or data_dir) / f"{problem.base_name}.incomplete"
    find_existing = functools.partial(
        resuming.existing, problem, data_dir, request, hashes=options.verify
    )
    if not options.overwrite:
        existing = find_existing()
        if existing:
            _remove_leftovers(data_dir, work_dir)
            return existing
    read = readers.Reader(
        problem,
        raw_dir=raw_dir,
        tmp_dir=download_dir(data_dir, tmp_dir),
        chunk_pairs=chunk_pairs,
    )
    engine = _engine(options, work_dir, progress)
    with _removed_if_empty(data_dir / "tmp", data_dir), _only_one(data_dir, work_dir):
        if not options.overwrite:
            existing = find_existing()  # another process may have finished since
            if existing:
                return existing
        resuming.begin(problem, data_dir, work_dir, request, overwrite=options.overwrite)
        with _undone_by_a_mistake(work_dir):
            plan, model_bytes = _plan(
                engine, read, work_dir, data_dir, given, request, options, progress
            )
        vocab = any_vocabulary.from_bytes(model_bytes)
        read.chunk_pairs = plan["chunk_pairs"]
        job = spill.Job(
            work_dir=work_dir,
            data_dir=data_dir,
            base_name=problem.base_name,
            num_chunks=plan["chunks"],
            num_shards=plan["num_shards"],
            seed=options.random_seed,
            cleaning=cleaning,
        )
        engine.encode(job, read, model_bytes)
        with _undone_by_a_mistake(work_dir):
            _refuse_change(job, plan["pairs"], request, problem.raw_files(raw_dir))
            _refuse_nothing(job)
        engine.gather(job)
        finished = _finish(job, read, vocab, plan, given.name if given else None)
        # Without its plan what is left of the work, if this is killed, is not gone on with.
        (work_dir / "plan.json").unlink()
        shutil.rmtree(work_dir)
    return finished


@dataclasses.dataclass(frozen=True)
class _Given:
    """A vocabulary that is not learnt, and the name of its file here."""

    name: str
    vocab: vocabulary.Vocabulary


def _given_vocabulary(vocab_from: str, problem: problems.Problem) -> _Given:
    """Return the vocabulary of an output_dir; UserError where it does not fit."""
    run = output_dirs.read(vocab_from)
    vocab = any_vocabulary.load(run.vocabulary_path)
    if problem.task != run.run.task:
        raise errors.UserError(
            f"--vocab_from={vocab_from} has learnt {run.run.task}, not {problem.task}: its "
            f"vocabulary cannot spell {problem.base_name}"
        )
    if problem.is_reversed and vocab.targets is not vocab:
        raise errors.UserError(
            f"{problem.name} is made of the data of {problem.base_name}, and the vocabulary of "
            f"{vocab_from} cuts each side by itself: give files with the sides in each "
            "other's place"
        )
    ending = ".".join(run.run.vocabulary.split(".")[-2:])  # without its own problem's name
    return _Given(f"vocab.{problem.base_name}.{ending}", vocab)


def _with_columns(problem: problems.Problem, columns: str) -> problems.Problem:
    """Return the problem that reads these columns of tables; UserError where it reads none."""
    if not isinstance(problem, problems.ParallelTextProblem):
        raise errors.UserError(f"{problem.name} reads no tables: leave out --columns")
    problem = copy.copy(problem)
    problem.columns = tuple(column.strip() for column in columns.split(","))
    if len(problem.columns) != 2:
        raise errors.UserError(
            f"--columns are two, the source's and the target's, as in 3,4; got {columns!r}"
        )
    return problem


def _engine(
    options: generator_options.GeneratorOptions,
    work_dir: pathlib.Path,
    progress: engines.Progress,
) -> "engines.Processes | beam.Beam":
    if options.beam_pipeline_options is None:
        return engines.Processes(options.num_workers or machine.cores(), progress)
    from t2t_lite.data import beam

    return beam.Beam(options.beam_pipeline_options, work_dir, progress)


def download_dir(
    data_dir: str | os.PathLike[str], tmp_dir: problems.Directory = None
) -> pathlib.Path:
    """Return the folder that problems download into; what is there stays there."""
    return pathlib.Path(tmp_dir or pathlib.Path(data_dir) / "tmp")


@contextlib.contextmanager
def _only_one(data_dir: pathlib.Path, work_dir: pathlib.Path) -> Iterator[None]:
    """Lock data_dir and work_dir, since another process may use either of them."""
    with contextlib.ExitStack() as stack:
        both = (data_dir / work_dir.name).resolve(), work_dir.resolve()
        for folder in dict.fromkeys(both):  # they may be the same one
            stack.enter_context(locks.only_one(folder / "lock", keep_folder=False))
        yield


def _remove_leftovers(data_dir: pathlib.Path, work_dir: pathlib.Path) -> None:
    """Remove the work_dir of a process that was killed after it wrote the manifest.

    A work_dir outside data_dir may belong to another data_dir and stays. Its lock in data_dir goes.
    """
    left = data_dir / work_dir.name
    if left.exists():
        with contextlib.suppress(errors.UserError), _only_one(data_dir, work_dir):
            shutil.rmtree(left)


@contextlib.contextmanager
def _removed_if_empty(*folders: pathlib.Path) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            for folder in folders:
                if folder.exists():
                    folder.rmdir()


@contextlib.contextmanager
def _undone_by_a_mistake(work_dir: pathlib.Path) -> Iterator[None]:
    """Remove the unfinished work if a UserError shows that it cannot be finished."""
    try:
        yield
    except errors.UserError:
        shutil.rmtree(work_dir)
        raise


# First pass


def _plan(
    engine: "engines.Processes | beam.Beam",
    read: readers.Reader,
    work_dir: pathlib.Path,
    data_dir: pathlib.Path,
    given: _Given | None,
    request: dict[str, Any],
    options: generator_options.GeneratorOptions,
    progress: engines.Progress,
) -> tuple[dict[str, Any], bytes]:
    """Count the pairs and learn a vocabulary if none is given; or read what an earlier run left.

    Return the plan and the vocabulary's content.
    """
    plan_path, model_path = work_dir / "plan.json", work_dir / "vocabulary.model"
    if plan_path.exists():
        return json.loads(plan_path.read_text()), model_path.read_bytes()
    dev = _check_other_splits(read)
    survey = engine.survey(read, request["options"]["random_seed"] + 1)
    survey.check(read.problem.base_name)
    if given:
        model = given.vocab.model_bytes
        _refuse_unknown(survey.symbols, given.vocab)
    else:
        progress("learn vocabulary", 0, 0)
        symbols = dict.fromkeys([*options.symbols(), *sorted(survey.symbols)])
        model = sentencepiece_vocabulary.train(
            survey.sentences(),
            request["options"]["vocab_size"],
            symbols=list(symbols),
            character_coverage=options.character_coverage,
            split_digits=options.split_digits,
        )
    with text_files.replacing(model_path) as file:
        file.write(model)
    resuming.clear(read.problem, data_dir)
    pairs = survey.pairs
    plan = {
        "request": request,
        "pairs": pairs,
        "chunks": survey.chunks,
        "files": {name: count for name, _, count in survey.in_order()},
        "remarks": remarks.of_sides(survey, dev),
        "num_shards": _num_shards(pairs),
        "chunk_pairs": read.chunk_pairs,
    }
    text_files.write_json(plan_path, plan)
    return plan, model


def _refuse_unknown(symbols: set[str], vocab: vocabulary.Vocabulary) -> None:
    """Raise UserError where a given vocabulary lacks symbols of the trees: it would spell them in
    pieces, which the search for trees never takes."""
    known = {vocab.pieces[token].replace(vocabulary.SPACE, " ") for token in vocab.symbol_ids}
    if unknown := sorted(symbols - known):
        names = ", no".join(unknown[:5]) + (", ..." if unknown[5:] else "")
        raise errors.UserError(
            f"--vocab_from has no{names}, which the trees have: train the first parser on both "
            "treebanks, or rename these in the new one"
        )


def _num_shards(pairs: int) -> int:
    return max(min(MAX_SHARDS, -(-pairs // _PAIRS_PER_SHARD)), -(-pairs // _MAX_PAIRS_PER_SHARD))


def _check_other_splits(read: readers.Reader) -> list[problems.Sample]:
    """Return the samples of dev. Raises UserError if a dev or test split has no text or is not
    UTF-8, before the long first pass."""
    dev: list[problems.Sample] = []
    for split in read.splits:
        if split == "train":
            continue
        samples = list(read.samples(split))
        if not any(map(_has_text, samples)):
            raise errors.UserError(
                f"{read.problem.base_name} has no {split} pair with text on both sides: expected "
                "at least one"
            )
        surveys.refuse_not_utf8(read.problem.base_name, split, _not_utf8(samples), len(samples))
        dev = samples if split == "dev" else dev
    return dev


def _not_utf8(samples: Sequence[problems.Sample]) -> int:
    return sum(text_files.REPLACEMENT in one["inputs"] + one["targets"] for one in samples)


def _has_text(sample: problems.Sample) -> bool:
    texts = sample["inputs"], sample["targets"], sample.get("reference", "x")
    return all(text.strip() for text in texts)


# Second pass


def _refuse_change(
    job: spill.Job, pairs: int, request: dict[str, Any], raw_files: Sequence[pathlib.Path]
) -> None:
    """Raise UserError if the second pass has read another text than the first."""
    missing = [i for i in range(job.num_chunks) if not spill.chunk_report(job, i).exists()]
    if missing or _chunk_totals(job)[0]["pairs"] != pairs:
        was = f"no longer gives the {pairs:,} training pairs that were counted"
    elif manifest.file_entries(raw_files) != request["raw_files"]:
        was = "is no longer what its files held at the start"
    else:
        return
    raise errors.UserError(
        f"the text of {job.base_name} {was}: it was changed meanwhile; give the command again when "
        "it is complete"
    )


def _refuse_nothing(job: spill.Job) -> None:
    """Raise UserError if cleaning leaves no pair."""
    counts, dropped = _chunk_totals(job)
    if sum(dropped.values()) >= counts["pairs"]:
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in dropped.items() if number)
        raise errors.UserError(
            f"cleaning drops all {counts['pairs']:,} training pairs of {job.base_name}: {reasons}"
        )


# What is not sharded, and what the manifest says


def _finish(
    job: spill.Job, read: readers.Reader, vocab, plan: dict[str, Any], name: str | None
) -> data_dirs.Data:
    """Write the vocabulary (`name`: of one that was given), the other splits and, last of all, the
    manifest."""
    request = plan["request"]
    vocab_size = request["options"]["vocab_size"]
    vocab_path = job.data_dir / (name or read.problem.vocabulary_file(vocab_size))
    with text_files.replacing(vocab_path) as file:
        file.write(vocab.model_bytes)
    counts, dropped = _chunk_totals(job)
    train = _train_entry(job, counts, dropped)
    train.update(files=plan["files"], languages=list(read.languages))
    others = {}
    held_out: dict[str, list[tuple[bytes, bytes]]] = {}
    for split in read.splits:
        if split != "train":
            others[split], held_out[split] = _write_split(job, read, vocab, split)
    train["remarks"] = plan["remarks"] + remarks.of_pairs(job, held_out, counts["pairs"])
    finished = data_dirs.Data(
        problem=read.problem,
        folder=job.data_dir,
        vocabulary_file=_vocabulary_entry(counts, vocab_path, vocab),
        splits={"train": train, **others},
        **request,
    )
    finished.check_files(hashes=True)
    finished.save()
    return finished


def _train_entry(job: spill.Job, counts: dict[str, int], dropped: dict[str, int]) -> dict[str, Any]:
    reports = [json.loads(spill.shard_report(job, i).read_text()) for i in range(job.num_shards)]
    pairs: collections.Counter[tuple[int, int]] = collections.Counter()
    for source, target, number in itertools.chain.from_iterable(r["lengths"] for r in reports):
        pairs[source, target] += number
    if job.cleaning.drop_duplicates:
        dropped = {**dropped, "duplicate": sum(report["duplicates"] for report in reports)}
    overlong = [number for report in _chunk_reports(job) for number in report.get("overlong", ())]
    return {
        "pairs": sum(report["shard"]["records"] for report in reports),
        "pairs_read": counts["pairs"],
        "dropped": dropped,
        "not_utf8": counts["not_utf8"],
        "source_tokens": sum(report["source_tokens"] for report in reports),
        "target_tokens": sum(report["target_tokens"] for report in reports),
        "shards": [report["shard"] for report in reports],
        "lengths": [[*cell, pairs[cell]] for cell in sorted(pairs)],
        **({"overlong": overlong[:_MAX_NAMED]} if overlong else {}),
    }


def _chunk_totals(job: spill.Job) -> tuple[dict[str, int], dict[str, int]]:
    """Return the sums of the chunks' counts and of the pairs dropped by reason."""
    counts: collections.Counter[str] = collections.Counter()
    dropped = collections.Counter(empty=0, too_long=0, length_ratio=0)
    for report in _chunk_reports(job):
        counts.update(report["counts"])
        dropped.update(report["dropped"])
    return dict(counts), dict(dropped)


def _chunk_reports(job: spill.Job) -> Iterator[dict[str, Any]]:
    return (json.loads(spill.chunk_report(job, i).read_text()) for i in range(job.num_chunks))


def _write_split(
    job: spill.Job, read: readers.Reader, vocab, split: str
) -> tuple[dict[str, Any], list[tuple[bytes, bytes]]]:
    """Write a dev or test split in its own order: one shard, and the raw text for scoring.

    Return its entry, and its records as they are and with sides swapped.
    """
    every = list(read.samples(split))
    samples = [sample for sample in every if sample.get("reference") != ""]
    sides = [[sample[key] for sample in samples] for key in ("inputs", "targets")]
    # Their lines stay line for line the same text, so of one without end the ids are cut.
    cut = [[text[: cleanings.MAX_CHARACTERS] for text in side] for side in sides]
    rows = vocab.encode_batch(cut[0]), vocab.targets.encode_batch(cut[1])
    ids = [[[*one, vocabulary.EOS_ID] for one in side] for side in rows]
    records = [(shards.example(*pair), shards.example(*pair[::-1])) for pair in zip(*ids)]
    path = job.data_dir / shards.name(job.base_name, split, 0, 1)
    shards.write(path, [record for record, _ in records])
    text = [job.data_dir / name for name in manifest.text_names(job.base_name, split)]
    references = [sample.get("reference", sample["targets"]) for sample in samples]
    for text_path, side in zip(text, (sides[0], references)):
        text_files.write_lines(text_path, side)
    tokens = [np.array([len(one) for one in side], np.int64) for side in ids]
    overlong = [i for i, pair in enumerate(zip(*sides), 1) if cleanings.is_overlong(*pair)]
    entry = {
        "pairs": len(samples),
        "not_utf8": _not_utf8(samples),
        "source_tokens": int(tokens[0].sum()),
        "target_tokens": int(tokens[1].sum()),
        "text": [manifest.file_entry(text_path) for text_path in text],
        "shards": [{**manifest.file_entry(path), "records": len(samples)}],
        "lengths": lengths.histogram(*tokens),
        "files": readers.file_counts(samples),
        **({"overlong": overlong[:_MAX_NAMED]} if overlong else {}),
        **({"dropped": {"empty": len(every) - len(samples)}} if len(samples) < len(every) else {}),
    }
    return entry, records


def _vocabulary_entry(counts: dict[str, int], path: pathlib.Path, vocab) -> dict[str, Any]:
    return {
        **manifest.file_entry(path),
        **({"source_size": vocab.size} if vocab.size != vocab.targets.size else {}),
        "size": vocab.targets.size,
        "subwords_per_word": round(counts["subwords"] / counts["words"], 4),
        "byte_subwords_share": round(counts["byte_subwords"] / max(counts["subwords"], 1), 7),
    }
