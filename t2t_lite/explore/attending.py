"""The attention weights of a model over one text, by name, as computed (Figures 3 to 5).

    weights = attending.attention(translator, "A dog runs.")
    weights.cross[layer, head, query, key]

The weights come from one teacher-forced pass over the source and an output, by default the model's
best. A decoder query predicts the token at its own position and attends to the tokens before it, so
the decoder's keys begin with the start (a vector of zeros, Section 3.1).

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
    """The attention weights of one text; a notebook draws them.

    Attributes:
      encoder: float32 [layer, head, query, key], the source over itself.
      decoder: the same, the output over the start and its earlier tokens.
      cross: the same, the output over the source.
      source_tokens: subwords of the source and EOS: queries and keys of `encoder`, keys of `cross`.
      target_tokens: subwords of the output: queries of `decoder` and `cross`.
    """

    encoder: np.ndarray
    decoder: np.ndarray
    cross: np.ndarray
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]

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
            "examples": [""],
        }
        text = {"text": "", "target": None, "translation": translation, "attention": weights}
        return document.notebook({"about": about, "texts": [text]}, title="Attention")


def attention(model: translator.Translator, text: str, target: str | None = None) -> Attention:
    """Return the attention weights of a text and its translation.

    Args:
      model: the translator; of an ensemble the weights are those of the first model.
      text: the source; it is cut to options.max_source_length tokens.
      target: an output to use instead of the model's best.

    Raises:
      UserError: for a blank text, and for a parser's target that is not a tree.
    """
    source_ids, target_ids = ids_of(model, text, target)
    return Attention(
        **of_ids(model, source_ids, target_ids),
        source_tokens=tuple(pieces.of_ids(model.vocabulary, source_ids)),
        target_tokens=tuple(pieces.of_ids(model.vocabulary.targets, target_ids)),
    )


def ids_of(
    model: translator.Translator, text: str, target: str | None
) -> tuple[Sequence[int], Sequence[int]]:
    """Return the ids of a text and of its output: `target`, or the model's best."""
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
    inputs, targets = (tf.constant(translator.pad([ids])) for ids in (source_ids, target_ids))
    by_kind = weights(model.models[0], inputs, targets)._asdict()
    return {kind: tensor.numpy()[0] for kind, tensor in by_kind.items()}


def weights(model: transformer.Transformer, inputs: tf.Tensor, targets: tf.Tensor) -> Weights:
    """Return the weights of a pass over inputs [B, S] and targets [B, T], padded with 0."""
    with attentions.recording() as attended:
        model.decode(targets, model.encode(inputs))

    def stack(side: str, layer: str, count: int) -> tf.Tensor:
        return tf.stack([attended[f"{side}_{i}/{layer}"] for i in range(count)], axis=1)

    num_encoders, num_decoders = len(model.encoder_layers), len(model.decoder_layers)
    return Weights(
        encoder=stack("encoder", "self_attention", num_encoders),
        decoder=stack("decoder", "self_attention", num_decoders),
        cross=stack("decoder", "cross_attention", num_decoders),
    )
