"""The one matrix that is both embeddings and pre-softmax projection (Section 3.4).

Shapes: V rows (the vocabulary, rounded up), D d_model.
"""

import keras
import tensorflow as tf

from t2t_lite.text import vocabulary


class SharedEmbedding(keras.layers.Layer):
    """Look ids up and multiply by sqrt(d_model); PAD is the zero vector.

    The initialiser is N(0, d_model^-0.5): with the scaling, embeddings start with unit variance,
    and without it (in the softmax) logits do.
    """

    def __init__(self, num_rows: int, d_model: int, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.num_rows = num_rows
        self.d_model = d_model

    def build(self, input_shape=None):
        initializer = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        self.matrix = self.add_weight(
            name="matrix", shape=(self.num_rows, self.d_model), initializer=initializer
        )

    def call(self, ids):
        """Map ids [...] to float32 vectors [..., D]."""
        rows = lookup(tf.convert_to_tensor(self.matrix), ids)
        not_pad = tf.cast(tf.not_equal(ids, vocabulary.PAD_ID), tf.float32)[..., None]
        return tf.cast(rows, tf.float32) * (not_pad * self.d_model**0.5)


class AddedVector(keras.layers.Layer):
    """A vector that is learnt and added to what it is called with."""

    def __init__(self, size: int, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.size = size

    def build(self, input_shape=None):
        self.vector = self.add_weight(
            name="vector", shape=(self.size,), initializer="zeros", dtype="float32"
        )

    def call(self, x):
        """Add the vector to float32 x [..., D]."""
        return x + tf.convert_to_tensor(self.vector)


@tf.custom_gradient
def lookup(matrix: tf.Tensor, ids: tf.Tensor):
    """Return matrix[ids], with a dense gradient.

    The matrix also has the softmax's dense gradient, so a sparse one would be made dense anyway,
    by a slower op.
    """

    def gradient(dy: tf.Tensor):
        flat_dy = tf.reshape(dy, [-1, matrix.shape[-1]])
        dense = tf.scatter_nd(tf.reshape(ids, [-1, 1]), flat_dy, tf.shape(matrix))
        return dense, None

    return tf.gather(matrix, ids), gradient
