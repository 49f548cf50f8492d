"""A parser's attention over the source is biased by the distance from the word that comes next.

A tree has one symbol for each word, in their order, so the symbols that are written tell the
number of the next word. Attention must count else to find it, and loses count in long sentences.

Shapes: B batch, S source length, T target length.
"""

from typing import Protocol

import tensorflow as tf

from t2t_lite import config
from t2t_lite.model import relative, transformer


class WordOrder(Protocol):
    """Which word comes next."""

    def numbers(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return int32 [B, S]: the number of each id's word, from 0; EOS is a word of its own."""
        ...

    def passes(self, ids: tf.Tensor) -> tf.Tensor:
        """Return bool, of the shape of target ids: after which it is the next word's turn."""
        ...


class NextWordTransformer(transformer.Transformer):
    """A Transformer whose attention over the source knows the next word.

    Args:
      words: tells the next word.
    """

    def __init__(self, hparams: config.HParams, vocab_size: int, *, words: WordOrder, **kwargs):
        super().__init__(hparams, vocab_size, **kwargs)
        self.words = words

    def encode(self, inputs, training=False):
        encoded = super().encode(inputs, training)
        return encoded._replace(mask=relative.Words(encoded.mask, self.words.numbers(inputs)))

    def decode(self, targets, encoded, training=False):
        passes = tf.cast(self.words.passes(targets), tf.int32)
        passed = tf.cumsum(passes, axis=1, exclusive=True)
        distances = encoded.mask.numbers[:, None] - passed[:, :, None]
        mask = encoded.mask._replace(numbers=distances)
        return super().decode(targets, encoded._replace(mask=mask), training)

    def get_config(self):
        raise NotImplementedError(
            "a model with next_word is not saved by Keras, because it needs the parser's grammar: "
            "take hparams with next_word=0, or an output_dir"
        )


def create(
    hparams: config.HParams, vocab_size: int, *, words: WordOrder | None, dtype: str | None = None
) -> transformer.Transformer:
    """Return the model of these hparams; `words` is used where next_word asks for it."""
    if not hparams.next_word:
        return transformer.Transformer(hparams, vocab_size, dtype=dtype)
    if not words:
        raise ValueError("hparams.next_word needs words")
    return NextWordTransformer(hparams, vocab_size, words=words, dtype=dtype)
