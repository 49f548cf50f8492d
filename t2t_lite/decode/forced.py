"""Forced decoding: one teacher-forced pass over given outputs.

It gives the probability of each token, and what the decoder attended to as it predicted the token.

Shapes: B sentences, S source length, T target length, H heads.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.model import attention, transformer


class Forced(NamedTuple):
    """Details of each target token.

    `log_probabilities` [B, T], natural; undefined for padding. `sources` int32 [B, T]: the source
    position that the token's prediction attended to most.
    """

    log_probabilities: tf.Tensor
    sources: tf.Tensor


def run(models: Sequence[transformer.Transformer], inputs: tf.Tensor, targets: tf.Tensor) -> Forced:
    """Return the details of targets [B, T]; several models have their mean probability.

    Args:
      models: one, or several that share the vocabulary.
      inputs: int32 [B, S], each with EOS, padded with 0.
      targets: int32 [B, T], the same.
    """
    logs, weights = [], []
    for model in models:
        with attention.recording() as attended:
            logits = model(inputs, targets)
        logs.append(_of_targets(logits, targets))
        weights.append(tf.reduce_mean(attended[_alignment_layer(model)].weights(), axis=1))
    return Forced(
        _mean(logs),
        tf.argmax(tf.add_n(weights), axis=2, output_type=tf.int32),
    )


def log_probabilities(
    models: Sequence[transformer.Transformer], inputs: tf.Tensor, targets: tf.Tensor
) -> tf.Tensor:
    """Return the log-probabilities of `run` alone, [B, T], without looking at attention."""
    return _mean([_of_targets(model(inputs, targets), targets) for model in models])


def _of_targets(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)


def _mean(logs: Sequence[tf.Tensor]) -> tf.Tensor:
    """Return the logarithm of the mean of probabilities whose logarithms are given."""
    if len(logs) == 1:
        return logs[0]
    return tf.reduce_logsumexp(tf.stack(logs), axis=0) - tf.math.log(len(logs) * 1.0)


def _alignment_layer(model: transformer.Transformer) -> str:
    """Return the name of the cross attention whose mean over heads aligns.

    That is the last layer but one, which aligns best in deep models (Garg et al. 2019, Section 3.1:
    the last one looks for what comes next).
    """
    return f"decoder_{max(len(model.decoder_layers) - 2, 0)}/cross_attention"
