"""The data of a training: batches, the position in them, a check that they stay the same."""

import collections
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from t2t_lite import errors
from t2t_lite.data import data_dir, lengths, manifest, pipeline, share
from t2t_lite.train import devices, preparation


class TrainingData:
    """The training split of a data_dir, batch after batch without end.

    Of several workers each reads its own rows of a batch only.

    Args:
      setup: of the training.
      rows_of: returns this worker's rows in a batch of a given shape.

    Attributes:
      batches: {"inputs": int32 [B, S], "targets": int32 [B, T], ...}, one by one.
      position: the iterator whose state a tf.train.Checkpoint saves.
      position_name: the name of that kind of position.
    """

    def __init__(self, setup: preparation.Setup, *, rows_of: share.RowsOf):
        self._data, self._hparams = data, hparams = setup.data, setup.hparams
        self._times_then = self._times()
        sizes = {**hparams.batch_limits, "seed": setup.options.random_seed}
        self.position_name = "data"
        self.batches: Iterator[dict[str, tf.Tensor]]
        self.position: Any
        if devices.num_workers(setup.strategy) == 1:
            batches = pipeline.train_batches(data, **sizes)
            self.batches = self.position = iter(batches)
            return
        self.position_name = "pairs"
        self.batches = shared = share.SharedBatches(data, **sizes, rows_of=rows_of)
        self.position = shared.position

    def pass_over(self, num_batches: int) -> None:
        """Skip that many batches."""
        collections.deque(itertools.islice(self.position, num_batches), maxlen=0)

    def whole(self, batch: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
        """Return a batch with the rows of all workers."""
        return self.batches.whole(batch) if isinstance(self.batches, share.SharedBatches) else batch

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
        shapes = pipeline.bucket_shapes(self._data, **self._hparams.batch_limits)
        source, target = pipeline.mean_tokens(self._data, shapes, max_length=max_length)
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
