"""The engines that generate data: processes of this machine, or Apache Beam (see beam)."""

import functools
from collections.abc import Callable, Iterable

from t2t_lite.data import reader, spill, workers
from t2t_lite.data import survey as surveys

Progress = Callable[[str, int, int], None]  # stage, units done, units in all (0: unknown)


class Processes:
    """The three passes of a generation on a pool of processes; this one reads the text.

    Each resumes where an earlier call was interrupted.
    """

    def __init__(self, num_workers: int, progress: Progress):
        self._num_workers = num_workers
        self._progress = progress

    def survey(self, read: reader.Reader, seed: int) -> surveys.Survey:
        """Survey the training text chunk by chunk."""
        survey = surveys.Survey(seed, read.problem.symbolic_targets)
        for chunk in read.chunks():
            survey.add(*chunk)
            self._progress("read text", survey.pairs, 0)
        return survey

    def encode(self, job: spill.Job, read: reader.Reader, model_bytes: bytes) -> None:
        """Spill every chunk that is not there yet."""
        missing = set(spill.missing_chunks(job))
        if missing:
            tasks = ((job, i, *chunk[:3]) for i, chunk in enumerate(read.chunks()) if i in missing)
            encode = functools.partial(spill.encode_chunk, model_bytes=model_bytes)
            self._run("encode", encode, tasks, len(missing), job.num_chunks)

    def gather(self, job: spill.Job) -> None:
        """Write every shard that is not written yet."""
        missing = spill.missing_shards(job)
        tasks = ((job, shard) for shard in missing)
        self._run("write shards", spill.gather_shard, tasks, len(missing), job.num_shards)

    def _run(
        self, stage: str, function: Callable[..., None], tasks: Iterable, missing: int, total: int
    ) -> None:
        num_workers = min(self._num_workers, missing)
        for finished in workers.run(function, tasks, num_workers=num_workers):
            self._progress(stage, total - missing + finished, total)
