"""Scores of the dev split while a model trains: likelihood and real decoding."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite import config
from t2t_lite.data import data_dir, pipeline
from t2t_lite.decode import translator
from t2t_lite.model import transformer
from t2t_lite.tasks import task as tasks
from t2t_lite.train import metrics


class Figures(NamedTuple):
    """Scores of the dev split; `scores` are those of decoded sentences, by name.

    The first of them is the task's own: BLEU, or for a parser the F1 of labelled brackets.
    """

    tokens: metrics.Evaluation
    scores: Mapping[str, float]

    @property
    def best_by(self) -> float:
        """The value to maximise: the first score, else the negative loss."""
        return next(iter(self.scores.values()), -self.tokens.loss)

    def scalars(self) -> dict[str, float]:
        """Return the figures under TensorBoard's names."""
        return {
            "loss": self.tokens.loss,
            "neg_log_perplexity": -self.tokens.loss,
            "perplexity": self.tokens.perplexity,
            "accuracy": self.tokens.accuracy,
            **{name.lower(): value for name, value in self.scores.items()},
        }

    def __str__(self) -> str:
        text = f"loss {self.tokens.loss:.4f}  perplexity {self.tokens.perplexity:.3f}"
        text += f"  accuracy {self.tokens.accuracy:.4f}"
        return text + "".join(f"  {name} {value:.2f}" for name, value in self.scores.items())


class Evaluator:
    """Evaluates a model while it trains.

    Args:
      sentences: number of dev sentences to decode, from the start of the split; 0: none.

    `measure` describes `Figures.best_by`, for `best.Best`. `is_empty`: the dev split has no pairs.
    """

    def __init__(
        self,
        data: data_dir.Data,
        model: transformer.Transformer,
        *,
        hparams: config.HParams,
        task: tasks.Task,
        sentences: int,
    ):
        self._data = data
        self._hparams = hparams
        self._task = task
        ids = tf.TensorSpec([None, None], tf.int32)
        self._count = tf.function(
            lambda inputs, targets: metrics.token_counts(model(inputs, targets), targets),
            input_signature=[ids, ids],
            autograph=False,
        )
        self._translator = translator.Translator(model, task)
        text = data.text("dev")
        self._sources, self._references = text.sources[:sentences], text.references[:sentences]
        self.is_empty = data.pairs("dev") == 0
        self.measure = self._measure()

    def evaluate(self) -> Figures:
        """Return the scores of the model with its current weights."""
        counts, h = [0.0, 0.0, 0.0], self._hparams
        batches = pipeline.eval_batches(
            self._data,
            "dev",
            # Small, because the logits of a batch are kept whole.
            batch_tokens=min(h.batch_tokens, h.max_tokens_per_device or 4096, 4096),
            max_length=h.max_length,
            max_buckets=h.max_buckets,
        )
        for batch in batches:
            batch_counts = self._count(batch["inputs"], batch["targets"])
            counts = [a + float(b) for a, b in zip(counts, batch_counts)]
        return Figures(metrics.evaluation(*counts), self._decode())

    def _measure(self) -> dict[str, Any]:
        dev = self._data.content_hash("dev")[:16]
        if not self._sources:
            return {"score": "loss", "dev": dev}
        decoding = self._translator.options
        return {
            "score": self._task.score_name,
            "dev": dev,
            "sentences": len(self._sources),
            "beam_size": decoding.beam_size,
            "alpha": decoding.alpha,
            "extra_length": decoding.extra_length,
        }

    def _decode(self) -> dict[str, float]:
        if not self._sources:
            return {}
        outputs = [item.text for item in self._translator.translate(self._sources)]
        return self._task.scores(outputs, self._references)
