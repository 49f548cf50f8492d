"""The attention weights of a model over one text, by name, as computed (Figures 3 to 5).

    weights = attending.attention(translator, "A dog runs.")
    weights.cross[layer, head, query, key]

All come from one teacher-forced pass over the source and an output, the model's best unless another
is given. A query of the decoder predicts the token of the same place; what it may look at are the
tokens before it, so that the decoder's keys begin with the start (a vector of zeros, Section 3.1).

Shapes: B sentences, S source length, T target length, L layers, H heads, V vocabulary.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import translator
from t2t_lite.explore import document, pieces
from t2t_lite.model import attention as attentions
from t2t_lite.model import transformer

KINDS = ("encoder", "decoder", "cross")


class Weights(NamedTuple):
    """The weights of a pass: encoder [B, L, H, S, S], decoder [B, L, H, T, T], cross
    [B, L, H, T, S], all float32."""

    encoder: tf.Tensor
    decoder: tf.Tensor
    cross: tf.Tensor


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention:
    """What attended to what; draws itself in a notebook.

    Attributes:
      encoder: float32 [layer, head, query, key], of the source over itself.
      decoder: the same of the output over what was written before; the key 0 is the start.
      cross: of the output over the source.
      source_tokens: the pieces of the source, EOS included: the encoder's queries and keys, and the
        keys of `cross`.
      target_tokens: the pieces of the output: the queries of `decoder` and `cross`.
      start_tokens: the keys of `decoder`, the start and the output without its last token.
    """

    encoder: np.ndarray
    decoder: np.ndarray
    cross: np.ndarray
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]

    @property
    def start_tokens(self) -> tuple[str, ...]:
        """The keys of the decoder's attention to itself."""
        return (pieces.START, *self.target_tokens[:-1])

    def _repr_html_(self) -> str:
        weights = {
            kind: [document.weight_text(document.weight_bytes(x)) for x in getattr(self, kind)]
            for kind in KINDS
        }
        translation = {
            "text": "",
            "source": self.source_tokens,
            "target": self.target_tokens,
            "start": pieces.START,
            "is_blank": False,
        }
        about = {
            "name": "",
            "only": "attention",
            "num_models": 1,
            "heads": self.encoder.shape[1],
            "layers": {"encoder": len(self.encoder), "decoder": len(self.decoder)},
            "examples": [],
        }
        text = {"text": "", "target": None, "translation": translation, "attention": weights}
        return document.notebook({"about": about, "texts": [text]}, title="Attention")


def attention(model: translator.Translator, text: str, target: str | None = None) -> Attention:
    """Return the attention weights of a text and its translation.

    Args:
      model: of several models, the weights are those of the first.
      text: the source; what is longer than options.max_source_length is not read.
      target: an output to use in place of the model's best.

    Raises:
      UserError: for a blank text, and for a target that is no output (of a parser, no tree).
    """
    source_ids, target_ids = ids_of(model, text, target)
    found = of_ids(model, source_ids, target_ids)
    return Attention(
        **found,
        source_tokens=tuple(pieces.of_ids(model.vocabulary, source_ids)),
        target_tokens=tuple(pieces.of_ids(model.vocabulary.targets, target_ids)),
    )


def ids_of(
    model: translator.Translator, text: str, target: str | None
) -> tuple[Sequence[int], Sequence[int]]:
    """Return the ids of a text and of its output, a given one or the best."""
    limit = model.options.max_source_length
    if not model.task.cut(text, limit).strip():
        raise errors.UserError("a blank text has no attention: give a sentence")
    if target is None:
        (translation,) = model.translate([text])
        return translation.source_ids, translation.ids
    (source,) = model.task.encode([text], limit)
    (output,) = model.task.encode_targets([target], limit + model.options.extra_length)
    return source.ids, output.ids


def of_ids(
    model: translator.Translator, source_ids: Sequence[int], target_ids: Sequence[int]
) -> dict[str, np.ndarray]:
    """Return the weights by kind, float32 [layer, head, query, key] each."""
    found = weights(
        model.models[0],
        tf.constant(translator.pad([source_ids])),
        tf.constant(translator.pad([target_ids])),
    )
    return {kind: tensor.numpy()[0] for kind, tensor in found._asdict().items()}


def weights(model: transformer.Transformer, inputs: tf.Tensor, targets: tf.Tensor) -> Weights:
    """Return the weights of a pass over inputs [B, S] and targets [B, T], padded with 0."""
    with attentions.recording() as attended:
        model.decode(targets, model.encode(inputs))

    def stack(side: str, layer: str, count: int) -> tf.Tensor:
        return tf.stack([attended[f"{side}_{i}/{layer}"].weights() for i in range(count)], axis=1)

    num_encoders, num_decoders = len(model.encoder_layers), len(model.decoder_layers)
    return Weights(
        encoder=stack("encoder", "self_attention", num_encoders),
        decoder=stack("decoder", "self_attention", num_decoders),
        cross=stack("decoder", "cross_attention", num_decoders),
    )
