"""The Transformer (Section 3, Figure 1): stacks of encoder and decoder layers.

Shapes: B batch, S source length, T target length, D d_model, V vocabulary.

The residual stream and layer norms are float32 whatever the compute type; sub-layers compute in
the type of their policy ("float32", "mixed_bfloat16" with float32 variables, or "bfloat16").
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from t2t_lite import config as configs
from t2t_lite.model import dropout as dropouts
from t2t_lite.model import embedding, feed_forward, normalization, variants
from t2t_lite.text import vocabulary


class Encoded(NamedTuple):
    """A source as the decoder sees it."""

    states: tf.Tensor  # [B, S, D]
    mask: tf.Tensor  # bool [B, S], False at padding


class _StackLayer(keras.layers.Layer):
    """What the layers of both stacks share: self-attention, feed-forward, residuals."""

    is_causal = False

    def __init__(
        self,
        hparams: configs.HParams,
        seed_generator: keras.random.SeedGenerator | None = None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.hparams = hparams
        self.seed_generator = seed_generator or keras.random.SeedGenerator()
        self.residual = variants.residual_connection(hparams)
        self.dropout = dropouts.Dropout(hparams.dropout, self.seed_generator, name="dropout")
        parts = {"seed_generator": self.seed_generator, "dtype": self.dtype_policy}
        self.self_attention = variants.self_attention(
            hparams, causal=self.is_causal, name="self_attention", **parts
        )
        self.self_attention_norm = self._norm("self_attention_norm")
        self.feed_forward = feed_forward.FeedForward(
            hparams.d_model,
            hparams.d_ff,
            activation=hparams.imported.activation,
            dropout=hparams.relu_dropout,
            name="feed_forward",
            **parts,
        )
        self.feed_forward_norm = self._norm("feed_forward_norm")
        self.supports_masking = True

    def build(self, input_shape=None):
        for layer in (
            self.self_attention,
            self.self_attention_norm,
            self.feed_forward,
            self.feed_forward_norm,
        ):
            layer.build(input_shape)

    def _add(self, x, sublayer, norm, training) -> tf.Tensor:
        """Return LayerNorm(x + Dropout(Sublayer(x)))."""
        return self.residual(x, sublayer, norm, functools.partial(self.dropout, training=training))

    def _norm(self, name: str) -> normalization.LayerNormalization:
        epsilon = self.hparams.imported.norm_epsilon
        return normalization.LayerNormalization(
            self.hparams.d_model, epsilon=epsilon, name=name, dtype="float32"
        )

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "hparams": dataclasses.asdict(self.hparams)}

    @classmethod
    def from_config(cls, config):
        """Make the layer of a `get_config`."""
        return super().from_config({**config, "hparams": configs.from_dict(config["hparams"])})


@keras.saving.register_keras_serializable("t2t_lite")
class EncoderLayer(_StackLayer):
    """Self-attention and a feed-forward network, each with dropout, residual and layer norm.

    Args:
      hparams: sizes and rates.
      seed_generator: for dropout; the layers of a model share one. Default: its own.
    """

    def call(self, x, mask=None, training=False):
        """Map x [B, S, D] to [B, S, D]; `mask` [B, S] is False at padding."""

        def attend(y):
            return self.self_attention(y, attention_mask=mask, training=training)

        def feed_forward(y):
            return self.feed_forward(y, training=training)

        x = self._add(x, attend, self.self_attention_norm, training)
        return self._add(x, feed_forward, self.feed_forward_norm, training)


@keras.saving.register_keras_serializable("t2t_lite")
class DecoderLayer(_StackLayer):
    """Self-attention over what is already written, attention over the source, feed-forward.

    Args:
      hparams: sizes and rates.
      seed_generator: for dropout; the layers of a model share one. Default: its own.
    """

    is_causal = True

    def __init__(
        self,
        hparams: configs.HParams,
        seed_generator: keras.random.SeedGenerator | None = None,
        **kwargs,
    ):
        super().__init__(hparams, seed_generator, **kwargs)
        self.cross_attention = variants.cross_attention(
            hparams,
            seed_generator=self.seed_generator,
            name="cross_attention",
            dtype=self.dtype_policy,
        )
        self.cross_attention_norm = self._norm("cross_attention_norm")

    def build(self, input_shape=None):
        super().build(input_shape)
        self.cross_attention.build(input_shape)
        self.cross_attention_norm.build(input_shape)

    def call(self, x, memory, memory_mask=None, training=False):
        """Map x [B, T, D] to [B, T, D], given the encoder's output.

        Args:
          x: [B, T, D]. Each position attends to itself and those before.
          memory: [B, S, D].
          memory_mask: bool [B, S], False at padding.
          training: whether to use dropout.
        """

        def attend(y):
            return self.self_attention(y, training=training)

        def attend_to_memory(y):
            return self.cross_attention(y, memory, attention_mask=memory_mask, training=training)

        def feed_forward(y):
            return self.feed_forward(y, training=training)

        x = self._add(x, attend, self.self_attention_norm, training)
        x = self._add(x, attend_to_memory, self.cross_attention_norm, training)
        return self._add(x, feed_forward, self.feed_forward_norm, training)


@keras.saving.register_keras_serializable("t2t_lite")
class Transformer(keras.Model):
    """The whole model: logits of the targets, given the source and the targets before.

    The model shifts the targets right itself: give it the same ids, each sequence ended by EOS, as
    targets and as labels.

    Args:
      hparams: sizes and rates.
      vocab_size: number of ids, of targets where a source has a vocabulary of its own; rows of the
        embedding are rounded up to a multiple of `hparams.vocab_multiple`. The spare rows are ids
        that never occur.
      dtype: a Keras dtype policy, see the module.
    """

    def __init__(self, hparams: configs.HParams, vocab_size: int, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.hparams = hparams
        self.vocab_size = vocab_size
        self.seed_generator = keras.random.SeedGenerator()
        # XLA takes longer than it saves on a CPU, and compiles each shape of batch anew.
        self.supports_jit = bool(tf.config.list_physical_devices("GPU"))
        self.dropout = dropouts.Dropout(hparams.dropout, self.seed_generator, name="dropout")
        source_rows, num_rows = configs.rows(hparams, vocab_size)
        # Of the target and, if it is shared (Section 3.4), of the source and of the softmax.
        self.embedding = self.source_embedding = self.softmax = self._matrix("embedding", num_rows)
        if hparams.embeddings == "separate":
            self.source_embedding = self._matrix("source_embedding", source_rows)
            self.softmax = self._matrix("softmax", num_rows)
        self.source, self.target = variants.stack_inputs(
            hparams, self.source_embedding, self.embedding, self.dropout
        )
        parts = {"seed_generator": self.seed_generator, "dtype": self.dtype_policy}
        self.encoder_layers = [
            EncoderLayer(hparams, name=f"encoder_{i}", **parts)
            for i in range(hparams.num_encoder_layers)
        ]
        self.decoder_layers = [
            DecoderLayer(hparams, name=f"decoder_{i}", **parts)
            for i in range(hparams.num_decoder_layers)
        ]
        self.encoder = [*self.encoder_layers, *variants.after_stack(hparams, "encoder_norm")]
        self.decoder = [*self.decoder_layers, *variants.after_stack(hparams, "decoder_norm")]
        self.logits = variants.logits(hparams, self.softmax)
        self.build()

    def _matrix(self, name: str, num_rows: int) -> embedding.SharedEmbedding:
        d_model = self.hparams.d_model
        return embedding.SharedEmbedding(num_rows, d_model, name=name, dtype=self.dtype_policy)

    def build(self, input_shape=None):
        ids, vectors = (None, None), (None, None, self.hparams.d_model)
        # One matrix may be all three embeddings.
        for part in dict.fromkeys((self.embedding, self.source_embedding, self.softmax)):
            part.build(ids)
        self.source.positions.build((None,))
        self.source.build(ids)
        self.target.build(ids)
        for layer in (self.dropout, *self.encoder, *self.decoder, self.logits):
            layer.build(vectors)
        self.built = True

    def call(self, inputs, targets=None, training=False):
        """Return the logits, float32 [B, T, V].

        Args:
          inputs: source ids, int [B, S], 0 for padding; or both sides, as a pair or as
            {"inputs": ..., "targets": ...}.
          targets: ids int [B, T], where `inputs` is the source. The logits of a position do not
            depend on its own id, nor on those after it.
          training: whether to use dropout.
        """
        inputs, targets = _both_sides(inputs, targets)
        encoded = self.encode(inputs, training)
        return self.logits(self.decode(targets, encoded, training))

    def encode(self, inputs: tf.Tensor, training: bool = False) -> Encoded:
        """Encode source ids [B, S]."""
        mask = self.source.mask(inputs)
        x = self.source(inputs, training=training)
        for layer in self.encoder:
            x = layer(x, mask, training=training)
        return Encoded(x, mask)

    def decode(self, targets: tf.Tensor, encoded: Encoded, training: bool = False) -> tf.Tensor:
        """Return the states [B, T, D] that predict targets [B, T], teacher forced."""
        x = self.target(shift_right(targets), training=training)
        for layer in self.decoder:
            x = layer(x, encoded.states, memory_mask=encoded.mask, training=training)
        return x

    def named_variables(self) -> dict[str, tf.Variable]:
        """Return every weight under its name in a checkpoint: "decoder_0/self_attention/qkv"."""
        prefix = f"{self.name}/"
        return {v.path.removeprefix(prefix): v.value for v in self.trainable_variables}

    def compute_output_shape(self, inputs_shape, targets_shape=None):
        _, targets_shape = _both_sides(inputs_shape, targets_shape)
        return (*targets_shape, self.softmax.num_rows)

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kw):
        """Export logits of (inputs, targets), ids of any shape; see keras.Model.export."""
        ids = keras.InputSpec(shape=(None, None), dtype="int32")
        signature = input_signature or [(ids, ids)]
        super().export(filepath, format, verbose, input_signature=signature, **kw)

    def get_config(self):
        config = {"hparams": dataclasses.asdict(self.hparams), "vocab_size": self.vocab_size}
        return {**super().get_config(), **config}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Make the model of a `get_config`, with new weights."""
        return cls(**{**config, "hparams": configs.from_dict(config["hparams"])})


def shift_right(targets: tf.Tensor) -> tf.Tensor:
    """Return the decoder's input ids: targets [[5, 6, 1]] -> [[0, 5, 6]]; 0 is the zero vector."""
    return tf.pad(targets[:, :-1], [[0, 0], [1, 0]], constant_values=vocabulary.PAD_ID)


def _both_sides(inputs: Any, targets: Any) -> tuple[Any, Any]:
    """Return source and target of the three forms that `Transformer.call` takes."""
    if isinstance(inputs, dict) and targets is None and inputs.keys() == {"inputs", "targets"}:
        return inputs["inputs"], inputs["targets"]
    if isinstance(inputs, (tuple, list)) and targets is None and len(inputs) == 2:
        return inputs[0], inputs[1]
    if targets is None:
        raise ValueError(
            "a Transformer is called with source and target ids: model(inputs, targets), "
            'model((inputs, targets)) or model({"inputs": inputs, "targets": targets}); '
            f"got {type(inputs).__name__} alone"
        )
    return inputs, targets
