"""The parameters of a model and the cost of a training step, without any data.

Parameters are counted as the model makes them (a test compares the two). Operations and memory come
from cost.py; memory is a lower bound.
"""

import dataclasses

from t2t_lite import config
from t2t_lite.train import cost

# Table 3's column "params", in millions, by the difference from base that makes the row.
_TABLE_3 = {
    "transformer_base": 65,
    "transformer_base_b1": 58,
    "transformer_base_b2": 60,
    "transformer_base_c1": 36,
    "transformer_base_c2": 50,
    "transformer_base_c3": 80,
    "transformer_base_c4": 28,
    "transformer_base_c5": 168,
    "transformer_base_c6": 53,
    "transformer_base_c7": 90,
    "transformer_big": 213,
}
_TABLE_3_VOCABULARY = (
    "Table 3's figures fit a vocabulary of about 41,000 (the big model's one of 36,000), though "
    "Section 5.1 says about 37,000"
)
PAPER_VOCABULARY = 37_000  # Section 5.1, English to German
_LENGTH = 25  # tokens a sentence where costs are counted: about WMT's mean


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the model: its name, how often it occurs, the parameters of one."""

    name: str
    count: int
    parameters: int

    @property
    def total(self) -> int:
        """The parameters of all of them."""
        return self.count * self.parameters


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """A model's parts and a step's needs.

    Attributes:
      parts: by which `parameters` adds up.
      table_3: millions of parameters in the paper's Table 3; None if the model is not a row of it.
      flops: of one step, 3 times those of the forward pass (train.cost).
      weight_bytes: of weights, gradients and Adam's two moments, in float32.
      activation_bytes: what the backward pass needs of as many tokens as are computed at a time.
    """

    parts: tuple[Part, ...]
    table_3: int | None
    vocab_size: int
    tokens: int
    flops: int
    weight_bytes: int
    activation_bytes: int

    @property
    def parameters(self) -> int:
        """All parameters."""
        return sum(part.total for part in self.parts)


def describe(
    hparams: config.HParams, vocab_size: int = PAPER_VOCABULARY, *, hparams_set: str | None = None
) -> Description:
    """Describe a model.

    Args:
      hparams: the model's sizes.
      vocab_size: the number of ids.
      hparams_set: the row of Table 3, if the model is one.
    """
    h = hparams
    source_rows, rows = config.rows(h, vocab_size)
    attention = h.d_model * h.num_heads * (2 * h.d_k + h.d_v) + h.num_heads * h.d_v * h.d_model
    if h.attention_function == "additive":
        attention += h.num_heads * h.d_k
    attention += h.imported.attention_bias * (h.num_heads * h.d_k + h.d_model)
    feed_forward = 2 * h.d_model * h.d_ff + h.d_ff + h.d_model
    norm = 2 * h.d_model
    encoders, decoders = h.num_encoder_layers, h.num_decoder_layers
    if h.embeddings == "shared":
        matrices = [Part("embedding, shared by both sides and the softmax", 1, rows * h.d_model)]
    elif source_rows == rows:
        matrices = [Part("embeddings of both sides, and the softmax", 3, rows * h.d_model)]
    else:
        matrices = [
            Part("embedding of the source", 1, source_rows * h.d_model),
            Part("embedding of the target, and the softmax", 2, rows * h.d_model),
        ]
    parts = [
        *matrices,
        Part("encoder self-attention", encoders, attention),
        Part("encoder feed-forward", encoders, feed_forward),
        Part("decoder self-attention", decoders, attention),
        Part("decoder attention over the source", decoders, attention),
        Part("decoder feed-forward", decoders, feed_forward),
        Part("layer norms", 2 * encoders + 3 * decoders + 2 * h.pre_norm, norm),
    ]
    relative = (2 * h.relative_bias + 1) * h.num_heads
    next_word = (2 * h.next_word + 1) * h.num_heads
    for is_there, part in [
        (h.imported.logits_bias, Part("bias of the softmax", 1, rows)),
        (h.imported.source_vector, Part("vector of the source", 1, h.d_model)),
        (h.imported.start_vector, Part("vector before the targets", 1, h.d_model)),
        (h.relative_bias, Part("relative position biases", encoders + decoders, relative)),
        (h.next_word, Part("relative position biases from the next word", decoders, next_word)),
        (h.position_encoding == "learned", Part("learned positions", 1, h.max_length * h.d_model)),
    ]:
        if is_there:
            parts.append(part)
    sentences = max(h.batch_tokens // _LENGTH, 1)
    shape = {"batch": sentences, "source": _LENGTH, "target": _LENGTH}
    return Description(
        parts=tuple(parts),
        table_3=_TABLE_3.get(hparams_set or ""),
        vocab_size=vocab_size,
        tokens=h.batch_tokens,
        flops=cost.step_flops(h, rows, **shape),
        weight_bytes=4 * 4 * sum(part.total for part in parts),
        activation_bytes=cost.activation_bytes(h, rows, **shape),
    )


def table(description: Description) -> str:
    """Return the description as lines of text."""
    width = max(len(part.name) for part in description.parts)
    lines = [f"{'parameters':{width}}  layers      of one         all"]
    for part in description.parts:
        lines.append(f"{part.name:{width}}  {part.count:6}{part.parameters:12,}{part.total:12,}")
    lines.append(f"{'in all':{width}}  {description.parameters:30,}")
    if description.table_3:
        lines.append(f"{'Table 3 of the paper':{width}}  {f'{description.table_3} million':>30}")
        lines.append(_TABLE_3_VOCABULARY)
    lines += [
        f"of them {description.vocab_size:,} ids; one step of {description.tokens:,} source and as "
        f"many target tokens: {description.flops:.2e} FLOPs",
        "memory of a step on one device, at least: weights, gradients and Adam's moments "
        f"{_size(description.weight_bytes)}, activations {_size(description.activation_bytes)}",
    ]
    return "\n".join(lines)


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
