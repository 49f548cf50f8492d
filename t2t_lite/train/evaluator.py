"""Scores of the dev split while a model trains: likelihood and real decoding."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite.data import pipeline
from t2t_lite.decode import translator
from t2t_lite.model import transformer
from t2t_lite.train import loss, preparation


class Figures(NamedTuple):
    """Scores of the dev split; `scores` are those of decoded sentences, by name.

    The first of them is mostly the task's own: BLEU, or for a parser the F1 of labelled brackets.
    """

    loss: float  # unsmoothed mean per target token, in nats
    accuracy: float  # share of target tokens that are the model's first guess
    scores: Mapping[str, float]

    @property
    def perplexity(self) -> float:
        """e^loss; infinite rather than an overflow."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    @property
    def best_by(self) -> tuple[float, ...]:
        """The values to maximise: the scores, of equal ones the next, in the end the lower loss."""
        return (*self.scores.values(), -self.loss)

    def scalars(self) -> dict[str, float]:
        """Return the figures under TensorBoard's names."""
        return {
            "loss": self.loss,
            "neg_log_perplexity": -self.loss,
            "perplexity": self.perplexity,
            "accuracy": self.accuracy,
            **{name.lower(): value for name, value in self.scores.items()},
        }

    def __str__(self) -> str:
        text = f"loss {self.loss:.4f}  perplexity {self.perplexity:.3f}"
        text += f"  accuracy {self.accuracy:.4f}"
        return text + "".join(f"  {name} {value:.2f}" for name, value in self.scores.items())


class Evaluator:
    """Evaluates a model while it trains.

    `measure` describes `Figures.best_by`, for `best.Best`. `is_empty`: the dev split has no pairs.
    `remarks` are lines to show before training.
    """

    def __init__(self, setup: preparation.Setup, model: transformer.Transformer):
        self._setup = setup
        ids = tf.TensorSpec([None, None], tf.int32)
        self._count = tf.function(
            lambda inputs, targets: count_tokens(model(inputs, targets), targets),
            input_signature=[ids, ids],
            autograph=False,
        )
        self._translator = translator.Translator(model, setup.task)
        text, sentences = setup.data.text("dev"), setup.options.eval_sentences
        self._sources, references = text.sources[:sentences], text.references[:sentences]
        language = setup.data.target_language
        self._metrics = setup.task.metrics(references, language) if references else {}
        self.is_empty = setup.data.pairs("dev") == 0
        self.measure = self._measure()
        self.remarks = text.remarks("dev")
        score, usual = self.measure["score"], setup.task.score_name
        if score not in (usual, "loss"):
            self.remarks.append(
                f"checkpoints are compared by {score}: it fits dev, {usual} does not"
            )

    def evaluate(self) -> Figures:
        """Return the scores of the model with its current weights."""
        counts, h = [0.0, 0.0, 0.0], self._setup.hparams
        batches = pipeline.eval_batches(
            self._setup.data,
            "dev",
            # Small, because the logits of a batch are kept whole.
            batch_tokens=min(h.batch_tokens, h.max_tokens_per_device or 4096, 4096),
            max_length=h.max_length,
            max_buckets=h.max_buckets,
        )
        for batch in batches:
            batch_counts = self._count(batch["inputs"], batch["targets"])
            counts = [a + float(b) for a, b in zip(counts, batch_counts)]
        likelihood, correct, tokens = counts
        return Figures(likelihood / max(tokens, 1), correct / max(tokens, 1), scores=self._decode())

    def _measure(self) -> dict[str, Any]:
        dev = self._setup.data.content_hash("dev")[:16]
        if not self._metrics:
            return {"score": "loss", "dev": dev}
        decoding = self._translator.options
        return {
            "score": next(iter(self._metrics)),
            "dev": dev,
            "sentences": len(self._sources),
            "beam_size": decoding.beam_size,
            "alpha": decoding.alpha,
            "extra_length": decoding.extra_length,
        }

    def _decode(self) -> dict[str, float]:
        if not self._metrics:
            return {}
        outputs = [item.text for item in self._translator.translate(self._sources)]
        return {name: metric(outputs) for name, metric in self._metrics.items()}


def count_tokens(logits: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return sums over targets [B, T] of negative log-likelihood, right first guesses and tokens.

    `logits` are [B, T, V]; padding counts nowhere.
    """
    weights = loss.token_weights(targets)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    guesses = tf.argmax(logits, axis=-1, output_type=targets.dtype)
    return (
        tf.reduce_sum(losses * weights),
        tf.reduce_sum(tf.cast(tf.equal(guesses, targets), tf.float32) * weights),
        tf.reduce_sum(weights),
    )
