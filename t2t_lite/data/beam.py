"""The generator on Apache Beam: the same bytes on any runner, with any number of workers.

    survey    places of chunks -> a Survey of each -> merged            survey
    encode    places of the chunks that are missing -> encoded          spilled, as by processes
    gather    numbers of the shards that are missing -> gathered        shards

What passes through Beam is small whatever the corpus, since the text and the records go through
files: a chunk's place stands for its text, and what a worker has encoded it spills into work_dir.
So memory does not grow, no runner has to sort the corpus, and a second call, of this engine or
another, goes on with the chunks and shards that are missing.

Where the training text lies in plain files every worker reads its own ranges of them; anything else
(compressed files, archives, problems with a reader of their own) this process unpacks into work_dir
first. All workers must see the raw files, data_dir and tmp_dir under the paths given, as on a
shared file system. Beam may do a piece of work again or twice: each file appears whole under its
name, and is the same whoever writes it.
"""

import contextlib
import copy
import dataclasses
import functools
import pathlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence

from t2t_lite import pipelines
from t2t_lite.data import engine, reader, spill
from t2t_lite.data import survey as surveys
from t2t_lite.text import text_files

apache_beam = pipelines.apache_beam


class Beam:
    """The passes of a generation as pipelines.

    Args:
      options: see pipelines.options.
      work_dir: for unfinished work.
      progress: is told when a pass begins and ends.
    """

    def __init__(self, options: str, work_dir: pathlib.Path, progress: engine.Progress):
        self._options = pipelines.options(options)
        self._work_dir = work_dir.resolve()
        self._progress = progress

    def survey(self, read: reader.Reader, seed: int) -> surveys.Survey:
        """Survey the chunks where they are read, and merge what comes of it."""
        self._progress("read text", 0, 0)
        places = self._places(read)
        empty = surveys.Survey(seed, read.problem.symbolic_targets)
        sparse = empty.sparse(sum(place.size for place in places))
        survey = self._survey(places, sparse)
        if survey.may_lack_pairs(sparse):
            survey = self._survey(places, empty)
        self._progress("read text", survey.pairs, survey.pairs)
        return survey

    def encode(self, job: spill.Job, read: reader.Reader, model_bytes: bytes) -> None:
        """Spill every chunk that is not there yet."""
        missing = spill.missing_chunks(job)
        places = self._places(read) if missing else []
        encode = functools.partial(_encode, job=_absolute(job), model_bytes=model_bytes)
        self._run("encode", encode, [(chunk, places[chunk]) for chunk in missing], job.num_chunks)

    def gather(self, job: spill.Job) -> None:
        """Write every shard that is not written yet."""
        gather = functools.partial(_gather, job=_absolute(job))
        self._run("write shards", gather, spill.missing_shards(job), job.num_shards)

    def _run(
        self, stage: str, function: Callable[..., None], missing: Sequence, total: int
    ) -> None:
        if missing:
            self._progress(stage, total - len(missing), total)
            with self._spread(missing) as elements:
                _ = elements | apache_beam.Map(function)
            self._progress(stage, total, total)

    def _places(self, read: reader.Reader) -> Sequence[reader.Place]:
        """Return where the chunks lie: in the raw files, or unpacked here."""
        if read.ranges is not None:
            return read.ranges
        return reader.unpacked(self._work_dir) or reader.unpack(read, self._work_dir)

    def _survey(self, places: Sequence[reader.Place], empty: surveys.Survey) -> surveys.Survey:
        """Return `empty` with all that lies there."""
        if not places:
            return empty
        path = self._work_dir / "survey"
        with self._spread(places) as chunks:
            _ = (
                chunks
                | apache_beam.Map(_survey_chunk, empty)
                | apache_beam.CombineGlobally(functools.partial(_merged, empty=empty))
                | apache_beam.Map(_save, path)
            )
        return pickle.loads(path.read_bytes())

    @contextlib.contextmanager
    def _spread(self, elements: Sequence) -> Iterator[apache_beam.PCollection]:
        """Yield a PCollection of the elements, spread over the workers; run what is made of it."""
        with (
            pipelines.running(self._options),
            apache_beam.Pipeline(options=self._options) as pipeline,
        ):
            yield pipeline | apache_beam.Create(elements) | apache_beam.Reshuffle()


def _survey_chunk(place: reader.Place, empty: surveys.Survey) -> surveys.Survey:
    survey = copy.deepcopy(empty)
    survey.add(*reader.read(place))
    return survey


def _merged(parts: Iterable[surveys.Survey], empty: surveys.Survey) -> surveys.Survey:
    """Return the surveys of parts of a corpus as one, which Beam may merge further."""
    merged = copy.deepcopy(empty)
    for part in parts:
        merged.merge(part)
    return merged


def _save(survey: surveys.Survey, path: pathlib.Path) -> None:
    with text_files.replacing(path) as file:
        file.write(pickle.dumps(survey))


def _absolute(job: spill.Job) -> spill.Job:
    """Return it with the folders as a worker started elsewhere finds them."""
    return dataclasses.replace(
        job, work_dir=job.work_dir.resolve(), data_dir=job.data_dir.resolve()
    )


def _encode(numbered: tuple[int, reader.Place], job: spill.Job, model_bytes: bytes) -> None:
    chunk, place = numbered
    spill.encode_chunk(job, chunk, *reader.read(place)[:3], model_bytes=model_bytes)


def _gather(shard: int, job: spill.Job) -> None:
    spill.gather_shard(job, shard)
