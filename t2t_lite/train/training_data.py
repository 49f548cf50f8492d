"""The data of a training: batches, a check that they stay the same, remarks about them."""

import collections
import itertools
from collections.abc import Iterator

from t2t_lite import errors
from t2t_lite.data import data_dir, lengths, manifest, pipeline
from t2t_lite.train import preparation


class TrainingData:
    """The training split of a data_dir, batch after batch without end, the same for all workers.

    Attributes:
      batches: the iterator over {"inputs": int32 [B, S], "targets": int32 [B, T]}, whose position a
        tf.train.Checkpoint saves.
      shapes: those of all batches, small to large.
    """

    def __init__(self, setup: preparation.Setup):
        self._data, self._hparams = setup.data, setup.hparams
        self._times_then = self._times()
        limits, seed = setup.hparams.batch_limits, setup.options.random_seed
        self.shapes = pipeline.bucket_shapes(setup.data, **limits)
        self.batches = iter(pipeline.train_batches(setup.data, **limits, seed=seed))

    def pass_over(self, num_batches: int) -> None:
        """Skip that many batches."""
        collections.deque(itertools.islice(self.batches, num_batches), maxlen=0)

    def check_unchanged(self, step: int) -> None:
        """Raise UserError if the data were generated again meanwhile: ids may have changed."""
        if self._times() == self._times_then:
            return
        data = data_dir.read(self._data.folder, self._data.problem)
        if data.content_hash("train") != self._data.content_hash("train"):
            raise errors.UserError(
                f"the data in {data.folder} were made anew while the training was at work, step "
                f"{step} is not saved; earlier checkpoints are intact and resume with the old data"
            )
        self._times_then = self._times()

    def remarks(self) -> Iterator[str]:
        """Yield the mean number of real tokens a step, and the number of pairs left out."""
        max_length = self._hparams.max_length
        source, target = pipeline.mean_tokens(self._data, self.shapes, max_length=max_length)
        yield f"without padding {source:,.0f} source and {target:,.0f} target tokens a step"
        table = self._data.lengths("train")
        if too_long := int(table[lengths.is_too_long(table, max_length), 2].sum()):
            limit = f"max_length={max_length} tokens"
            yield f"{too_long:,} training pairs have a side of more than {limit}: left out"

    def _times(self) -> list[float]:
        """Return when the manifest and the data_dir last changed."""
        manifest_path = manifest.file_name(self._data.problem.base_name)
        paths = (self._data.folder / name for name in (manifest_path, "."))
        return [path.stat().st_mtime for path in paths if path.exists()]
