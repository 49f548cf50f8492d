"""Ids to vectors and vectors to logits (Sections 3.4 and 3.5).

Shapes: V rows (the vocabulary, rounded up), D d_model.
"""

import keras
import tensorflow as tf

from t2t_lite.model import attention, gradients, position
from t2t_lite.model import dropout as dropouts
from t2t_lite.model.replaceable import Replaceable
from t2t_lite.text import vocabulary


@keras.saving.register_keras_serializable("t2t_lite")
class SharedEmbedding(keras.layers.Layer):
    """The matrix that is both embeddings and pre-softmax linear transformation (Section 3.4).

    Look ids up and multiply by sqrt(d_model); PAD is the zero vector.

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
        ids = tf.cast(ids, tf.int32)  # int64 as well, as Keras' Embedding takes them
        rows = look_up(self.matrix, ids)
        not_pad = tf.cast(tf.not_equal(ids, vocabulary.PAD_ID), tf.float32)[..., None]
        return tf.cast(rows, tf.float32) * (not_pad * self.d_model**0.5)

    def compute_mask(self, ids, previous=None):
        """Return bool, True for tokens, False for PAD."""
        return attention.padding_mask(ids)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.d_model)

    def get_config(self):
        return {**super().get_config(), "num_rows": self.num_rows, "d_model": self.d_model}


class StackInput(keras.layers.Layer):
    """Dropout(embedding + position): what enters the encoder or the decoder (Sections 3.4 to 5.4).

    Args:
      embedding: of the ids.
      positions: of the positions.
      dropout: applied to the sum.
    """

    def __init__(
        self,
        embedding: SharedEmbedding,
        positions: position.PositionalEncoding,
        dropout: dropouts.Dropout,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.embedding = embedding
        self.positions = positions
        self.dropout = dropout

    def build(self, input_shape=None):
        """The parts are shared: the model builds them."""

    def call(self, ids, position=None, training=False):
        """Map ids [B, T] to float32 [B, T, D]; they stand at 0 to T - 1, or all at `position`."""
        if position is None:
            position = tf.range(tf.shape(ids)[1])
        return self.dropout(self.sum(ids, position), training=training)

    def sum(self, ids, position) -> tf.Tensor:
        """Return embedding + position, without dropout."""
        return self.embedding(ids) + self.positions(position)

    def mask(self, ids) -> tf.Tensor:
        """Return bool [B, T], True for tokens, False for PAD."""
        return self.embedding.compute_mask(ids)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.embedding.d_model)


class Logits(keras.layers.Layer):
    """The linear transformation before the softmax, an embedding's matrix transposed (3.4)."""

    def __init__(self, embedding: SharedEmbedding, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.embedding = embedding

    def matrix(self) -> tf.Tensor:
        """Return the matrix [V, D]."""
        return tf.convert_to_tensor(self.embedding.matrix)

    def inputs(self, states: tf.Tensor) -> tf.Tensor:
        """Return what the matrix is multiplied with: the decoder's states [..., D]."""
        return states

    def call(self, states):
        """Map states [..., D] to float32 logits [..., V]."""
        matrix = tf.cast(self.matrix(), self.compute_dtype)
        states = tf.cast(self.inputs(states), self.compute_dtype)
        flat = tf.reshape(states, [-1, matrix.shape[1]])
        logits = tf.cast(tf.matmul(flat, matrix, transpose_b=True), tf.float32)
        return tf.reshape(logits, tf.concat([tf.shape(states)[:-1], [tf.shape(matrix)[0]]], 0))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.embedding.num_rows)


def lookup(matrix: keras.Variable, ids: tf.Tensor) -> tf.Tensor:
    """Return the rows [..., D] of ids [...] in a matrix [V, D]."""
    return _gather(tf.convert_to_tensor(matrix), ids)


look_up = Replaceable(lookup)


@gradients.by_hand
def _gather(matrix: tf.Tensor, ids: tf.Tensor):
    """Return matrix[ids], with a dense gradient.

    The matrix also has the softmax's dense gradient, so a sparse one would be made dense anyway,
    by a slower op.
    """

    def gradient(dy: tf.Tensor):
        flat_dy = tf.reshape(dy, [-1, matrix.shape[-1]])
        dense = tf.scatter_nd(tf.reshape(ids, [-1, 1]), flat_dy, tf.shape(matrix))
        return dense, None

    return tf.gather(matrix, ids), gradient
