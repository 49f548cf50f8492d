"""Label-smoothed cross entropy (Section 5.4) of the tied softmax, R-Drop's distance between two
predictions, and their gradient; and the loss of guided alignment.

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

R-Drop predicts each token twice, in rows n and n' of the same weight. With g = z_n - z_n' and
a = p_n . g,

    KL(p_n || p_n') + KL(p_n' || p_n) = a_n + a_n'

since what logsumexp adds to g cancels; and to w c times half of that distance, c being r_drop,
belongs the gradient w c / 2 (p (g + 1 - a) - p'). Together with w p it is w c / 2 q with

    q = p (g + 1 - a + 2 / c) - p'

which takes the place of w p in both products, so that they stay two. Automatic differentiation of
the definition made a whole step of transformer_tiny 1.8 times as long (bfloat16, one core).
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
    r_drop: float = 0.0,
    dtype: str = "float32",
) -> TokenLosses:
    """Return the weighted losses of targets [B, T] given the decoder's states [B, T, D].

    Args:
      states: float32 [B, T, D].
      embedding: float32 [V, D].
      targets: int32 [B, T].
      weights: float32 [B, T]; 1 / (tokens of the global batch) for tokens and 0 for padding makes
        the sum over replicas the global mean, whatever each replica's share.
      r_drop: where it is not 0, the second half of the rows has the targets and weights of the
        first under other dropout masks, and this many times how far the two predictions are apart
        is added to the smoothed loss: (KL(p || q) + KL(q || p)) / 4, half of equation 2 in R-Drop
        (Liang et al. 2021), because its other term is the sum of both predictions' losses, and ours
        the mean.
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
        negative_log_p_y = _negative_log(p_y)
        rows_y = tf.gather(embedding_VD, y)
        sum_rows = linear.column_sums(embedding_VD)
        # logsumexp(z) - gap z_y - low sum(z), with logsumexp(z) = z_y - log p_y. The z_y that
        # cancels in it is the one that p was made from, rounding included.
        logsumexp = negative_log_p_y + tf.cast(tf.gather_nd(z, at_y), tf.float32)
        z_y = tf.reduce_sum(states_ND * rows_y, axis=-1)
        sum_z = tf.linalg.matvec(states_ND, sum_rows)
        smoothed = tf.reduce_sum(w * (logsumexp - gap * z_y - low * sum_z))
        q, scale = p, 1.0
        if r_drop:
            q, distances = _toward_each_other(z, p, 1 + 2 / r_drop)
            scale = r_drop / 2
            smoothed += scale * tf.reduce_sum(w * tf.cast(distances, tf.float32))

        def gradient(d_smoothed, _):
            scaled_w = (w * d_smoothed)[:, None]
            wh = states_ND * scaled_w
            q_rows = tf.cast(tf.matmul(q, compute_VD), tf.float32)
            dh = scaled_w * (scale * q_rows - low * sum_rows - gap * rows_y)
            de = tf.matmul(q, tf.cast(scale * wh, dtype), transpose_a=True)
            de = tf.cast(de, tf.float32) - low * tf.reduce_sum(wh, axis=0)
            return dh, tf.tensor_scatter_nd_sub(de, y[:, None], gap * wh)

        return (smoothed, tf.reduce_sum(w * negative_log_p_y)), gradient

    return TokenLosses(*losses(tf.reshape(states, [-1, d_model]), embedding))


def _toward_each_other(z: tf.Tensor, p: tf.Tensor, bias: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Return p (g - a + bias) - p' [N, V] and a [N] of two predictions of each token.

    a comes from the rounded z, as g does, not from the states: where p_y is nearly 1, g_y - a is
    nearly 0, and bfloat16's rounding of z would be all that is left of it.
    """
    one, two = tf.split(p, 2)
    g = tf.subtract(*tf.split(z, 2))  # of a second row it is the negative
    a = tf.reduce_sum(one * g, axis=1, keepdims=True)
    b = -tf.reduce_sum(two * g, axis=1, keepdims=True)
    q = tf.concat([one * (g + (bias - a)) - two, two * ((bias - b) - g) - one], axis=0)
    return q, tf.squeeze(tf.concat([a, b], axis=0), axis=1)


def guided_alignment_loss(
    attention_weights: tf.Tensor, alignment: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """Return the weighted sum of -log(the attention that a head gives to the right places).

    As a further loss it teaches that head where to look ("guided alignment", Chen et al. 2016),
    which from the outputs' own loss alone takes long to learn where outputs do not resemble inputs.

    Args:
      attention_weights: float32 [B, T, S], of the one head.
      alignment: float32 [B, T, S], 1.0 at the right places; tokens that have none count as 0.
      weights: float32 [B, T].
    """
    is_aligned = tf.reduce_max(alignment, axis=2)
    losses = _negative_log(tf.reduce_sum(attention_weights * alignment, axis=2))
    return tf.reduce_sum(weights * is_aligned * losses)


def _negative_log(probability: tf.Tensor) -> tf.Tensor:
    return -tf.math.log(tf.maximum(probability, _SMALLEST))
