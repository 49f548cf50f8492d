"""Label-smoothed cross entropy (Section 5.4) of the tied softmax, and its gradient.

Shapes: N target tokens (all positions of a batch), D d_model, V vocabulary.

With E the embedding [V, D], a token's logits are z = h E^T and p = softmax(z). Smoothing by eps
gives the right token y the probability high = 1 - eps and each other one low = eps / (V - 1):

    loss = logsumexp(z) - (high - low) z_y - low sum(z)
    dloss/dz = p - low - (high - low) onehot(y)

Nothing of size [N, V] is needed but z, p and the two products with p, because

    logsumexp(z) = z_y - log p_y                 sum(z) = h . sum_v E_v
    dh = w (p E - low sum_v E_v - (high - low) E_y)
    dE = p^T (w h) - low sum(w h) - scatter_y((high - low) w h)

Dense targets and their passes over [N, V] would cost 10 to 20 % of a training step on a CPU.
"""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.model import linear
from t2t_lite.text import vocabulary

# The smallest probability whose logarithm is taken: a float32 softmax gives 0 below 1e-38.
_SMALLEST = 1e-37


class TokenLosses(NamedTuple):
    """Weighted sums over target tokens, in nats.

    `smoothed` has a gradient; `negative_log_likelihood` is that without smoothing, from
    which perplexity is always reported.
    """

    smoothed: tf.Tensor
    negative_log_likelihood: tf.Tensor


def token_weights(targets: tf.Tensor) -> tf.Tensor:
    """Return 1.0 for each token and 0.0 for padding: targets [[5, 1, 0]] -> [[1., 1., 0.]]."""
    return tf.cast(tf.not_equal(targets, vocabulary.PAD_ID), tf.float32)


def smoothed_cross_entropy(
    states: tf.Tensor,
    embedding: tf.Tensor,
    targets: tf.Tensor,
    weights: tf.Tensor,
    *,
    label_smoothing: float,
    dtype: str = "float32",
) -> TokenLosses:
    """Return the weighted losses of targets [B, T] given the decoder's states [B, T, D].

    Args:
      states: float32 [B, T, D].
      embedding: float32 [V, D].
      targets: int32 [B, T].
      weights: float32 [B, T]; 1 / (tokens of the global batch) for tokens and 0 for padding makes
        the sum over replicas the global mean, whatever each replica's share.
      dtype: of the matrix products and of p; all else is float32.
    """
    num_rows, d_model = embedding.shape
    low = label_smoothing / (num_rows - 1)
    gap = 1 - label_smoothing - low  # high - low

    @tf.custom_gradient
    def losses(states_ND, embedding_VD):
        y, w = tf.reshape(targets, [-1]), tf.reshape(weights, [-1])
        compute_VD = tf.cast(embedding_VD, dtype)
        z = tf.matmul(tf.cast(states_ND, dtype), compute_VD, transpose_b=True)
        p = tf.nn.softmax(z)
        at_y = tf.stack([tf.range(tf.size(y)), y], axis=1)
        p_y = tf.cast(tf.gather_nd(p, at_y), tf.float32)
        negative_log_p_y = -tf.math.log(tf.maximum(p_y, _SMALLEST))
        rows_y = tf.gather(embedding_VD, y)
        sum_rows = linear.column_sums(embedding_VD)
        # logsumexp(z) - gap z_y - low sum(z), with logsumexp(z) = z_y - log p_y. The z_y that
        # cancels in it is the one that p was made from, rounding included.
        logsumexp = negative_log_p_y + tf.cast(tf.gather_nd(z, at_y), tf.float32)
        z_y = tf.reduce_sum(states_ND * rows_y, axis=-1)
        sum_z = tf.linalg.matvec(states_ND, sum_rows)
        smoothed = tf.reduce_sum(w * (logsumexp - gap * z_y - low * sum_z))

        def gradient(d_smoothed, _):
            scaled_w = (w * d_smoothed)[:, None]
            wh = states_ND * scaled_w
            p_rows = tf.cast(tf.matmul(p, compute_VD), tf.float32)
            dh = scaled_w * (p_rows - low * sum_rows - gap * rows_y)
            de = tf.matmul(p, tf.cast(wh, dtype), transpose_a=True)
            de = tf.cast(de, tf.float32) - low * tf.reduce_sum(wh, axis=0)
            return dh, tf.tensor_scatter_nd_sub(de, y[:, None], gap * wh)

        return (smoothed, tf.reduce_sum(w * negative_log_p_y)), gradient

    return TokenLosses(*losses(tf.reshape(states, [-1, d_model]), embedding))
