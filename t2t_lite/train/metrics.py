"""Loss, perplexity and accuracy over a split."""

import math
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.train import loss


class TokenCounts(NamedTuple):
    """Sums over a batch: negative log-likelihood (nats), right first guesses, target tokens."""

    negative_log_likelihood: tf.Tensor
    correct: tf.Tensor
    tokens: tf.Tensor


class Evaluation(NamedTuple):
    """What is reported of a split; `loss` is the unsmoothed mean per target token, in nats."""

    loss: float
    perplexity: float
    accuracy: float
    tokens: int


def token_counts(logits: tf.Tensor, targets: tf.Tensor) -> TokenCounts:
    """Count logits [B, T, V] against targets [B, T]; padding counts nowhere."""
    weights = loss.token_weights(targets)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    guesses = tf.argmax(logits, axis=-1, output_type=targets.dtype)
    return TokenCounts(
        negative_log_likelihood=tf.reduce_sum(losses * weights),
        correct=tf.reduce_sum(tf.cast(tf.equal(guesses, targets), tf.float32) * weights),
        tokens=tf.reduce_sum(weights),
    )


def evaluation(negative_log_likelihood: float, correct: float, tokens: float) -> Evaluation:
    """Return the means of summed counts; perplexity e^loss (infinite rather than an overflow)."""
    mean = negative_log_likelihood / max(tokens, 1)
    perplexity = math.exp(mean) if mean < 700 else math.inf
    return Evaluation(mean, perplexity, correct / max(tokens, 1), int(tokens))
