"""Parallel heads while decoding: what model/parallel_heads computes, of one position a sentence.

Weights are prepared once, as a cached decoder's are. A guess may be wrong: it is only proposed, and
whoever proposes it sees what the model itself chooses. So the product with the vocabulary's matrix,
most of a guess' work, is of 8-bit integers wherever weights are known (see `products`).

Shapes: B sentences, S source length, D d_model, F d_ff, H heads of attention of size K, P guesses.
"""

import tensorflow as tf

from t2t_lite.decode import cached_decoder, products
from t2t_lite.model import compatibility, normalization, transformer


class Guesser:
    """The first P parallel heads of a model.

    Args:
      model: which has them.
      num_guesses: P.
      integers: whether the vocabulary's matrix, if it is known, is multiplied as 8-bit integers.
    """

    def __init__(self, model: transformer.Transformer, num_guesses: int, *, integers: bool):
        heads = model.parallel_heads
        self.num_guesses = num_guesses
        self.model = model
        self.attention = heads.cross_attention
        self.activation = heads.activation

        def constant(weight, size: int | None = None):
            tensor = tf.cast(tf.convert_to_tensor(weight), tf.float32)
            return products.constant(tensor if size is None else tensor[..., :size])

        def product(kernel, bias=None):
            return products.product(tf.convert_to_tensor(kernel), bias, dtype=tf.float32)

        cross, width = self.attention, num_guesses * heads.d_ff
        self.q = product(cross.q, cross.q_bias if cross.use_bias else None)
        self.output = product(cross.output_kernel, cross.output_bias if cross.use_bias else None)
        self.additive = constant(cross.additive) if cross.function == "additive" else None
        self.norm = (constant(heads.norm.scale), constant(heads.norm.bias))
        self.input_to_hidden = product(heads.kernel_1[:, :width], heads.bias_1[:width])
        shape = [num_guesses, heads.d_ff, heads.d_model]
        kernel_PFD = tf.reshape(tf.convert_to_tensor(heads.kernel_2)[:width], shape)
        self.kernel_PFD = products.constant(tf.cast(kernel_PFD, tf.float32))
        self.bias_PD = constant(heads.bias_2[:num_guesses])
        self.norms = (constant(heads.scale[:num_guesses]), constant(heads.bias[:num_guesses]))
        self.start = constant(heads.start)
        matrix_DV = tf.transpose(tf.cast(model.softmax_matrix(), tf.float32))
        integers = integers and hasattr(matrix_DV, "numpy")
        self.softmax = products.product(matrix_DV, dtype=tf.int8 if integers else tf.float32)

    def first(self, memory: cached_decoder.KeysValues, mask: tf.Tensor) -> tf.Tensor:
        """Return int32 [B, P], what outputs may begin with; arguments as of a call."""
        batch_size = tf.shape(mask)[0]
        states = tf.tile(self.start[None], [batch_size, 1])
        return self(states, tf.zeros([batch_size], tf.int32), memory, mask)

    def __call__(
        self, states: tf.Tensor, ids: tf.Tensor, memory: cached_decoder.KeysValues, mask: tf.Tensor
    ) -> tf.Tensor:
        """Return int32 [B, P], what may follow.

        Args:
          states: float32 [B, D], the decoder's.
          ids: int32 [B], the tokens that these chose.
          memory: keys and values [B, H, S, K] of the heads' cross-attention.
          mask: float32 [B, 1, 1, S], hides padding.
        """
        x = states + self.model.embedding(ids)
        x = _normalized(x + self._attended(x, memory, mask), self.norm)
        y_BPD = self._to_outputs(self.activation(self.input_to_hidden(x)))
        y_BPD = _normalized(y_BPD + states[:, None] + self.bias_PD, self.norms)
        flat = tf.reshape(y_BPD, [-1, y_BPD.shape[2]])
        logits = self.softmax(self.model.softmax_inputs(flat))
        best = tf.argmax(logits, axis=1, output_type=tf.int32)
        return tf.reshape(best, [-1, self.num_guesses])

    def _attended(self, x: tf.Tensor, memory: cached_decoder.KeysValues, mask: tf.Tensor):
        """Let x [B, D] attend to the memory; return float32 [B, D]."""
        cross = self.attention
        # With one query a sentence nothing is to be transposed.
        queries = tf.reshape(self.q(x), [-1, cross.num_heads, 1, cross.d_k])
        queries = tf.cast(queries, memory.keys.dtype)
        if self.additive is None:
            scores = getattr(compatibility, cross.function)(queries, memory.keys)
        else:
            scores = compatibility.additive(queries, memory.keys, self.additive)
        weights = tf.cast(tf.nn.softmax(scores + mask), memory.values.dtype)
        joined = tf.reshape(tf.matmul(weights, memory.values), [-1, cross.num_heads * cross.d_v])
        return tf.cast(self.output(joined), tf.float32)

    def _to_outputs(self, hidden: tf.Tensor) -> tf.Tensor:
        """Return [B, P, D] of the hidden layers of all heads [B, P F]."""
        num_guesses, width, _ = self.kernel_PFD.shape
        if hidden.shape[0] == 1:
            y = tf.matmul(tf.reshape(hidden, [num_guesses, 1, width]), self.kernel_PFD)
            return tf.reshape(y, [1, num_guesses, -1])
        hidden_PBF = tf.transpose(tf.reshape(hidden, [-1, num_guesses, width]), [1, 0, 2])
        return tf.transpose(tf.matmul(hidden_PBF, self.kernel_PFD), [1, 0, 2])


def _normalized(x: tf.Tensor, scale_bias: tuple) -> tf.Tensor:
    scale, bias = scale_bias
    return normalization.standardized(x)[0] * scale + bias
