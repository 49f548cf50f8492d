"""How the workers of one training agree, so that all do the same.

Gradients are summed over workers unchecked: a worker with other flags or data, or one that did not
find the checkpoint from which the others resume, would spoil the sum unnoticed.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.train import devices

_WIDTH = 4096  # bytes of a worker's text


class Workers:
    """The workers of a strategy; a single worker agrees with itself."""

    def __init__(self, strategy: tf.distribute.Strategy):
        self._strategy = strategy
        self.count = devices.num_workers(strategy)

    def agree(self, what: str, **values: Any) -> None:
        """Wait for all workers; raise UserError if one has other values than the chief.

        Args:
          what: the name of the values in the message: "... begin with the same <what>".
        """
        answers = [json.loads(text) for text in self.gather(json.dumps(values))]
        for number, other in enumerate(answers):
            if differing := [name for name in values if other[name] != answers[0][name]]:
                name = differing[0]
                self.wait_for_all()
                raise errors.UserError(
                    f"the workers must begin with the same {what}, but {name} is "
                    f"{answers[0][name]} at the chief and {other[name]} at worker {number} of "
                    f"{self.count}: give all the same flags, the same data and one output_dir that "
                    "they share, or copies of it"
                )

    @contextlib.contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Wait at the end for all workers; if one fails, all raise UserError with its reason."""
        try:
            yield
        except (errors.UserError, OSError) as error:
            self.gather(str(error)[: _WIDTH // 4])  # a character has at most 4 bytes
            self.wait_for_all()
            raise
        if failures := list(filter(None, self.gather(""))):
            self.wait_for_all()
            raise errors.UserError(f"another worker could not begin: {failures[0]}")

    def gather(self, text: str) -> list[str]:
        """Return every worker's text, the chief's first; waits until all have called this."""
        if self.count == 1:
            return [text]
        encoded = np.frombuffer(text.encode("utf-8"), np.uint8)
        assert len(encoded) <= _WIDTH
        # Float32 is the one type that every collective moves on every device.
        codes = np.zeros([1, _WIDTH], np.float32)
        codes[0, : len(encoded)] = encoded

        @tf.function
        def gather_codes() -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            return context.all_gather(tf.constant(codes), axis=0)

        with explain_lost_worker("before the first step"):
            gathered = self._strategy.run(gather_codes)
            rows = self._strategy.experimental_local_results(gathered)[0].numpy()
        return [_text(row) for row in rows[:: len(rows) // self.count]]

    def wait_for_all(self) -> None:
        """Wait until every worker is here: one that left earlier would be a lost worker."""
        with contextlib.suppress(errors.UserError):
            self.gather("")


@contextlib.contextmanager
def explain_lost_worker(when: str) -> Iterator[None]:
    """Turn TensorFlow's errors for a worker that is gone into what to do about it."""
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as error:
        raise errors.UserError(
            f"a worker was lost {when}; start the same command on every worker again, "
            "training continues from the last checkpoint"
        ) from error


def fingerprint(variables: Mapping[str, tf.Variable]) -> str:
    """Return a short hash of the weights."""
    digest = hashlib.sha256()
    for name in sorted(variables):
        digest.update(name.encode("utf-8"))
        digest.update(np.ascontiguousarray(variables[name].numpy()).data)
    return digest.hexdigest()[:16]


def _text(codes: np.ndarray) -> str:
    return bytes(codes.astype(np.uint8)).rstrip(b"\0").decode("utf-8")
