"""The generator on Apache Beam: the same bytes on any runner, with any number of workers.

    survey    chunks -> a Survey of each -> merged                               survey.json
    encode    chunks -> encoded -> (shard, part of the chunk) -> GroupByKey      shards, reports
    gather    nothing is left to do

Where the training text lies in plain files every worker reads its own ranges of them; anything else
(compressed files, archives, problems with a reader of their own) is read by one worker and handed
on in chunks. All workers must see the raw files, data_dir and tmp_dir under the paths given, as on
a shared file system. Beam may do a piece of work again or twice: each file appears whole under its
name, and is the same whoever writes it.
"""

import contextlib
import copy
import json
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from t2t_lite import pipelines
from t2t_lite.data import engine, reader, spill
from t2t_lite.data import survey as surveys
from t2t_lite.text import text_files

apache_beam = pipelines.apache_beam

_Part = tuple[int, tuple[int, np.ndarray, list[bytes]]]  # shard: chunk, index, records


class Beam:
    """The passes of a generation as pipelines.

    Args:
      options: see pipelines.options.
      work_dir: for unfinished work.
      progress: is told when a pass begins and ends.
    """

    def __init__(self, options: str, work_dir: pathlib.Path, progress: engine.Progress):
        self._options = pipelines.options(options)
        self._work_dir = work_dir
        self._progress = progress

    def survey(self, read: reader.Reader, seed: int) -> surveys.Survey:
        """Survey the chunks where they are read, and merge what comes of it."""
        self._progress("read text", 0, 0)
        merge = _Merge(surveys.Survey(seed, read.problem.symbolic_targets))
        path = self._work_dir / "survey.json"
        with self._pipeline(read) as pipeline:
            _ = (
                _chunks(pipeline, read)
                | apache_beam.CombineGlobally(merge)
                | apache_beam.Map(lambda survey: text_files.write_json(path, survey.to_json()))
            )
        survey = surveys.Survey.from_json(json.loads(path.read_bytes()))
        self._progress("read text", survey.pairs, survey.pairs)
        return survey

    def encode(self, job: spill.Job, read: reader.Reader, model_bytes: bytes) -> None:
        """Write all shards and reports, unless an earlier call has."""
        if not spill.missing_shards(job):
            return
        self._progress("encode and write shards", 0, job.num_shards)
        with self._pipeline(read) as pipeline:
            _ = (
                _chunks(pipeline, read)
                | apache_beam.FlatMap(_encode, job, read.chunk_pairs, model_bytes)
                | apache_beam.GroupByKey()
                | apache_beam.Map(_write_shard, job)
            )
        for chunk in range(job.num_chunks):
            _report(job, chunk).replace(spill.chunk_report(job, chunk))
        self._progress("encode and write shards", job.num_shards, job.num_shards)

    def gather(self, job: spill.Job) -> None:
        """Do nothing: `encode` has written the shards."""

    @contextlib.contextmanager
    def _pipeline(self, read: reader.Reader) -> Iterator[apache_beam.Pipeline]:
        """Yield a pipeline, and run it."""
        pipelines.send_along(read.problem)
        with (
            pipelines.running(self._options),
            apache_beam.Pipeline(options=self._options) as pipeline,
        ):
            yield pipeline


class _Merge(apache_beam.CombineFn):
    """Surveys of chunks, merged; `empty` is one of none."""

    def __init__(self, empty: surveys.Survey):
        self._empty = empty

    def create_accumulator(self) -> surveys.Survey:
        return copy.deepcopy(self._empty)

    def add_input(
        self, mutable_accumulator: surveys.Survey, element: reader.Chunk
    ) -> surveys.Survey:
        mutable_accumulator.add(*element)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[surveys.Survey]) -> surveys.Survey:
        merged = self.create_accumulator()
        for accumulator in accumulators:
            merged.merge(accumulator)
        return merged

    def extract_output(self, accumulator: surveys.Survey) -> surveys.Survey:
        return accumulator


def _chunks(pipeline: apache_beam.Pipeline, read: reader.Reader) -> Any:
    """Return the PCollection of the chunks, spread over the workers."""
    ranges = read.ranges()
    if ranges is None:
        whole = pipeline | apache_beam.Create([None])
        return whole | apache_beam.FlatMap(lambda _: read.chunks()) | apache_beam.Reshuffle()
    places = pipeline | apache_beam.Create(ranges) | apache_beam.Reshuffle()
    return places | apache_beam.Map(reader.read)


def _encode(
    chunk: reader.Chunk, job: spill.Job, chunk_pairs: int, model_bytes: bytes
) -> Iterator[_Part]:
    """Leave the chunk's report; yield its part of each shard, the first chunk's if empty, too.

    So every shard has a part, and is written.
    """
    number = chunk.first // chunk_pairs
    encoded = spill.encode(job, *chunk, model_bytes=model_bytes)
    text_files.write_json(_report(job, number), encoded.report)
    for shard in range(job.num_shards):
        index, records = encoded.part(shard)
        if records or not number:
            yield shard, (number, index, records)


def _write_shard(grouped: tuple[int, Iterable[tuple]], job: spill.Job) -> None:
    shard, parts = grouped
    parts = sorted(parts, key=lambda part: part[0])
    records = [record for *_, some in parts for record in some]
    spill.write_shard(job, shard, np.concatenate([index for _, index, _ in parts]), records)


def _report(job: spill.Job, chunk: int) -> pathlib.Path:
    """Return where a chunk's report is until all shards are there: its records are not spilled."""
    return spill.chunk_report(job, chunk).with_suffix(".beam")
