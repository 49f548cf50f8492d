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

R-Drop predicts each token twice, in rows n and n'. With g = z_n - z_n' and a = p_n . g,

    KL(p_n || p_n') + KL(p_n' || p_n) = a_n + a_n'     a = (p E) . (h_n - h_n')

since what logsumexp adds to g cancels; and to k times that distance belong

    dh = k (p g E + (1 - a) p E - p' E)
    dE = (p g)^T (k h) + p^T (k (1 - a) h - k h')

so it needs p g and two products with it beyond the above. Automatic differentiation of the
definition made a whole step of transformer_tiny 1.8 times as long (bfloat16, one core).
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
      r_drop: where it is not 0, the second half of the rows has the targets of the first under
        other dropout masks, and this many times how far the two predictions are apart is added to
        the smoothed loss: (KL(p || q) + KL(q || p)) / 4, half of equation 2 in R-Drop (Liang et
        al. 2021), because its other term is the sum of both predictions' losses, and ours the mean.
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
        mean_rows = tf.cast(tf.matmul(p, compute_VD), tf.float32)
        # logsumexp(z) - gap z_y - low sum(z), with logsumexp(z) = z_y - log p_y. The z_y that
        # cancels in it is the one that p was made from, rounding included.
        logsumexp = negative_log_p_y + tf.cast(tf.gather_nd(z, at_y), tf.float32)
        z_y = tf.reduce_sum(states_ND * rows_y, axis=-1)
        sum_z = tf.linalg.matvec(states_ND, sum_rows)
        smoothed = tf.reduce_sum(w * (logsumexp - gap * z_y - low * sum_z))
        if r_drop:
            k = (r_drop / 4) * (w + _other_half(w))[:, None]
            apart = mean_rows * (states_ND - _other_half(states_ND))
            a = tf.reduce_sum(apart, axis=-1, keepdims=True)
            smoothed += tf.reduce_sum(k * a)

        def gradient(d_smoothed, _):
            scaled_w = (w * d_smoothed)[:, None]
            wh = states_ND * scaled_w
            dh = scaled_w * (mean_rows - low * sum_rows - gap * rows_y)
            of_p = wh
            if r_drop:
                scaled_k = k * d_smoothed
                g = tf.subtract(*tf.split(z, 2))  # of a second row its negative
                p_first, p_second = tf.split(p, 2)
                pg = tf.concat([p_first * g, p_second * -g], axis=0)
                pg_rows = tf.cast(tf.matmul(pg, compute_VD), tf.float32)
                dh += scaled_k * (pg_rows + (1 - a) * mean_rows - _other_half(mean_rows))
                of_p += scaled_k * ((1 - a) * states_ND - _other_half(states_ND))
            de = tf.cast(tf.matmul(p, tf.cast(of_p, dtype), transpose_a=True), tf.float32)
            if r_drop:
                kh = tf.cast(scaled_k * states_ND, dtype)
                de += tf.cast(tf.matmul(pg, kh, transpose_a=True), tf.float32)
            de -= low * tf.reduce_sum(wh, axis=0)
            return dh, tf.tensor_scatter_nd_sub(de, y[:, None], gap * wh)

        return (smoothed, tf.reduce_sum(w * negative_log_p_y)), gradient

    return TokenLosses(*losses(tf.reshape(states, [-1, d_model]), embedding))


def _other_half(x: tf.Tensor) -> tf.Tensor:
    """Return x [2 M, ...] with its halves exchanged: the other prediction of each token."""
    first, second = tf.split(x, 2)
    return tf.concat([second, first], axis=0)


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
