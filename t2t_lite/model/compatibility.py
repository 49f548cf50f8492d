"""How well a query goes with a key (Section 3.2.1 compares three functions).

    scaled_dot    q . k / sqrt(d_k)      the paper's own, in `attention`
    dot           q . k
    additive      v . tanh(q + k)

The last is v . tanh(W q + U k) of Bahdanau et al. (2015) with W and U in the projections that make
queries and keys: a product of two matrices without anything between them is one matrix.

Shapes: B batch, H heads, T queries, S keys, K size of one head.
"""

import keras
import tensorflow as tf

from t2t_lite.model import attention

# So many queries are computed at once whatever the other sizes: decoding has one for each beam.
_FEW = 8
# Of more as many at once as have so many sums q + k, since [B, H, T, K, S] is K times what the
# scores take. They are 1 MiB, which stays in a core's cache.
_MOST_SUMS = 2**18


@keras.saving.register_keras_serializable("t2t_lite")
class DotAttention(attention.MultiHeadAttention):
    """Attention by q . k, without the scale."""

    def scores(self, queries, keys):
        return tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32)


@keras.saving.register_keras_serializable("t2t_lite")
class AdditiveAttention(attention.MultiHeadAttention):
    """Attention by v . tanh(q + k), with a vector v for each head, "additive" [H, d_k]."""

    def build(self, input_shape=None):
        super().build()
        limit = (6 / (self.d_k + 1)) ** 0.5  # Glorot's uniform, of a kernel [d_k, 1] a head
        self.additive = self.add_weight(
            name="additive",
            shape=(self.num_heads, self.d_k),
            initializer=keras.initializers.RandomUniform(-limit, limit),
        )

    def scores(self, queries, keys):
        return additive(queries, keys, tf.convert_to_tensor(self.additive))


def additive(queries: tf.Tensor, keys: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
    """Return v . tanh(q + k), float32 [B, H, T, S].

    Args:
      queries: [B, H, T, K].
      keys: [B, H, S, K].
      vectors: v of each head, [H, K].

    Memory is that of the scores and of 2^18 sums q + k, or those of one query where they are more,
    in training too: the gradient computes tanh again. Up to 8 queries are computed at once, and
    their tanh is kept for the gradient.
    """
    keys_BHKS = tf.transpose(keys, [0, 1, 3, 2])
    if (queries.shape[2] or _FEW + 1) <= _FEW:
        return _additive(queries, keys_BHKS, vectors)
    batch, heads, num_queries, size = tf.unstack(tf.shape(queries))
    num_keys = tf.shape(keys)[2]
    # At least 1 also where there is no row, query or key.
    sums_of_query = tf.maximum(batch * heads * num_keys * size, 1)
    most_queries = tf.maximum(_MOST_SUMS // sums_of_query, 1)
    num_chunks = tf.maximum(-(-num_queries // most_queries), 1)
    chunk = -(-num_queries // num_chunks)
    some_queries = tf.recompute_grad(_additive)
    # [B, H, T, K] --> [chunks, B, H, chunk, K], the last chunk filled up with zeros
    chunks = tf.pad(queries, [[0, 0], [0, 0], [0, num_chunks * chunk - num_queries], [0, 0]])
    chunks = tf.reshape(chunks, [batch, heads, num_chunks, chunk, size])
    scores = tf.map_fn(
        lambda queries: some_queries(queries, keys_BHKS, vectors),
        tf.transpose(chunks, [2, 0, 1, 3, 4]),
        fn_output_signature=tf.float32,
    )
    # [chunks, B, H, chunk, S] --> [B, H, T, S]
    shape = [batch, heads, num_chunks * chunk, num_keys]
    scores = tf.reshape(tf.transpose(scores, [1, 2, 0, 3, 4]), shape)
    return scores[:, :, :num_queries]


def _additive(queries: tf.Tensor, keys: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
    """Return v . tanh(q + k), float32 [B, H, T, S], of keys [B, H, K, S].

    A sum over the last axis would not be compiled to vector instructions.
    """
    z_BHTKS = tf.tanh(queries[..., None] + keys[:, :, None])
    v_HK = tf.cast(vectors, tf.float32)
    return tf.reduce_sum(tf.cast(z_BHTKS, tf.float32) * v_HK[:, None, :, None], axis=3)
