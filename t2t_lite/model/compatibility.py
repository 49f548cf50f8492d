"""How well a query goes with a key (Section 3.2.1 compares three functions).

    scaled_dot    q . k / sqrt(d_k)      the paper's own
    dot           q . k
    additive      v . tanh(q + k)

The last is v . tanh(W q + U k) of Bahdanau et al. (2015) with W and U in the projections that make
queries and keys: a product of two matrices without anything between them is one matrix.

Shapes: B batch, H heads, T queries, S keys, K size of one head.
"""

import tensorflow as tf

# As many queries are computed at once; of more one after the other, since [B, H, T, S, K] is K
# times what the scores take.
_FEW = 8


def scaled_dot(queries: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """Return q . k / sqrt(d_k) of queries [B, H, T, K] and keys [B, H, S, K]: float32
    [B, H, T, S]."""
    return dot(queries * tf.constant(queries.shape[-1] ** -0.5, queries.dtype), keys)


def dot(queries: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """Return q . k of queries [B, H, T, K] and keys [B, H, S, K]: float32 [B, H, T, S]."""
    return tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32)


def additive(queries: tf.Tensor, keys: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
    """Return v . tanh(q + k), float32 [B, H, T, S].

    Args:
      queries: [B, H, T, K].
      keys: [B, H, S, K].
      vectors: v of each head, [H, K].

    Memory is O(B H S K) for any T, in training too: the gradient computes tanh again.
    """
    if (queries.shape[2] or _FEW + 1) <= _FEW:
        return _additive(queries[:, :, :, None], keys[:, :, None], vectors[:, None, None])
    one_query = tf.recompute_grad(_additive)
    scores_TBHS = tf.map_fn(
        lambda query_BHK: one_query(query_BHK[:, :, None], keys, vectors[:, None]),
        tf.transpose(queries, [2, 0, 1, 3]),
        fn_output_signature=tf.float32,
    )
    return tf.transpose(scores_TBHS, [1, 2, 0, 3])


def _additive(queries: tf.Tensor, keys: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
    """Return v . tanh(q + k) over the last axis of what broadcasts."""
    return tf.reduce_sum(
        tf.cast(tf.tanh(queries + keys), tf.float32) * tf.cast(vectors, tf.float32), axis=-1
    )
