"""What the decoder of a parser reads beside its last token: the encoder's state of the next word.

An output has one symbol for each word, in their order, so which word comes next is known: it has
the number of those that are written. Attention has to learn to count them, and loses count in long
sentences; here the state of the next word is added to the decoder's input (as a stack-Transformer's
heads are led to the front of its buffer: Fernandez Astudillo et al. 2020). After the last word it
is that of EOS.

Shapes: B sentences, S source length, T target length, D d_model.
"""

from typing import Protocol

import tensorflow as tf


class WordOrder(Protocol):
    """Which word comes next, of rows that may hold several sentences, each ended by EOS."""

    def places(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return int32 [B, S]: the number of the word that begins at an id of [B, S], from 0, EOS
        being the last word of a sentence; -1 where none begins."""
        ...

    def passes(self, ids: tf.Tensor) -> tf.Tensor:
        """Return bool, of the shape of target ids: after which it is the next word's turn."""
        ...


def states(places: tf.Tensor, passed: tf.Tensor, encoded: tf.Tensor) -> tf.Tensor:
    """Return float32 [B, T, D], what encoded [B, S, D] has of the words passed [B, T]."""
    is_next = places[:, None, :] == passed[:, :, None]
    return tf.matmul(tf.cast(is_next, tf.float32), encoded)
