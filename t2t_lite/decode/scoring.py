"""How probable given translations are: forced decoding.

Shapes: B sentences, S source length, T target length, V rows of the embedding.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import tensorflow as tf

from t2t_lite.decode import forced, translator
from t2t_lite.text import vocabulary as vocabularies


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairScore:
    """The natural log-probability of a target given its input, and its tokens, EOS included.

    `truncated` says that only the input's first max_source_length tokens were read, and
    `target_truncated` that a target longer than any output counts only as far as one can go.
    """

    log_probability: float
    num_tokens: int
    truncated: bool
    target_truncated: bool

    @property
    def loss(self) -> float:
        """The loss of a token, without label smoothing: as training reports it of the dev split."""
        return -self.log_probability / self.num_tokens


class Scorer:
    """Scores pairs with a Translator's models."""

    def __init__(self, model: translator.Translator):
        self._translator = model
        ids = tf.TensorSpec([None, None], tf.int32)
        self.log_probabilities = tf.function(
            self._forced, input_signature=[ids, ids], autograph=False
        )

    def score(
        self, inputs: Sequence[str], targets: Sequence[str]
    ) -> Iterator[list[tuple[int, PairScore]]]:
        """Yield (index, score) of every pair in batches, longest first."""
        options = self._translator.options
        sources = self._translator.task.encode(inputs, options.max_source_length)
        limit = options.max_source_length + options.extra_length  # as long as an output can be
        ends = self._translator.task.encode_targets(targets, limit)
        lengths = [max(len(one.ids), len(other.ids)) for one, other in zip(sources, ends)]
        for batch in translator.batches(
            lengths, batch_size=options.batch_size, batch_tokens=options.batch_tokens
        ):
            totals = self.log_probabilities(
                translator.pad([sources[i].ids for i in batch]),
                translator.pad([ends[i].ids for i in batch]),
            )
            yield [
                (
                    i,
                    PairScore(
                        log_probability=float(total),
                        num_tokens=len(ends[i].ids),
                        truncated=sources[i].truncated,
                        target_truncated=ends[i].truncated,
                    ),
                )
                for i, total in zip(batch, totals.numpy())
            ]

    def _forced(self, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        """Return [B]: the sum of the log-probabilities of targets' tokens."""
        logs_BT = forced.log_probabilities(self._translator.models, inputs, targets)
        return tf.reduce_sum(tf.where(targets != vocabularies.PAD_ID, logs_BT, 0.0), axis=1)
