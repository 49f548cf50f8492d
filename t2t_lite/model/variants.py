"""The parts of a model, chosen by its hyperparameters: the paper's, unless they ask for others.

The model and its layers know only the paper's parts. Each variant is a subclass in a file of its
own; this is the one place that chooses.
"""

import keras

from t2t_lite import config
from t2t_lite.model import (
    attention,
    compatibility,
    dropout,
    embedding,
    imported,
    position,
    pre_norm,
    relative,
    residual,
    restricted,
)

_FUNCTIONS = {
    "scaled_dot": attention.MultiHeadAttention,
    "dot": compatibility.DotAttention,
    "additive": compatibility.AdditiveAttention,
}
_POSITIONS = {
    "sinusoid": position.PositionalEncoding,
    "sinusoid_halves": imported.SinusoidHalves,
    "sinusoid_t2t": imported.T2TSinusoids,
}


def self_attention(
    hparams: config.HParams, *, causal: bool, **kwargs
) -> attention.MultiHeadAttention:
    """Return the self-attention of a layer."""
    kwargs["causal"] = causal
    if n := hparams.attention_window:
        return _attention(restricted.RestrictedAttention, hparams, window=n, **kwargs)
    if n := hparams.relative_bias:
        ends = {"first": -2 * n, "last": 0} if causal else {"first": -n, "last": n}
        return _attention(relative.RelativeAttention, hparams, **ends, **kwargs)
    return _attention(_plain_attention(hparams), hparams, **kwargs)


def cross_attention(hparams: config.HParams, **kwargs) -> attention.MultiHeadAttention:
    """Return a decoder layer's attention over the source."""
    if n := hparams.next_word:
        kwargs |= {"first": -n, "last": n}
        return _attention(relative.NextWordAttention, hparams, cross=True, **kwargs)
    return _attention(_plain_attention(hparams), hparams, cross=True, **kwargs)


def _plain_attention(hparams: config.HParams) -> type[attention.MultiHeadAttention]:
    if hparams.imported.attention_bias:
        return imported.BiasedAttention
    return _FUNCTIONS[hparams.attention_function]


def _attention(
    attention_class: type[attention.MultiHeadAttention], hparams: config.HParams, **kwargs
) -> attention.MultiHeadAttention:
    return attention_class(
        hparams.d_model,
        hparams.num_heads,
        d_k=hparams.d_k,
        d_v=hparams.d_v,
        qkv_gain=hparams.qkv_gain,
        dropout=hparams.attention_dropout,
        **kwargs,
    )


def residual_connection(hparams: config.HParams):
    """Return the function that adds a sub-layer: see `residual.residual`."""
    return pre_norm.residual if hparams.pre_norm else residual.residual


def after_stack(hparams: config.HParams, name: str) -> list[keras.layers.Layer]:
    """Return what follows the last layer of a stack: nothing, or the last norm."""
    if not hparams.pre_norm:
        return []
    epsilon = hparams.imported.norm_epsilon
    return [pre_norm.FinalNorm(hparams.d_model, epsilon=epsilon, name=name, dtype="float32")]


def positions(hparams: config.HParams) -> position.PositionalEncoding:
    """Return the position encoding of both stacks."""
    if hparams.position_encoding == "learned":
        return position.LearnedPositions(
            hparams.d_model, max_length=hparams.max_length, name="position"
        )
    return _POSITIONS[hparams.position_encoding](hparams.d_model, name="position")


def stack_inputs(
    hparams: config.HParams,
    source: embedding.SharedEmbedding,
    target: embedding.SharedEmbedding,
    dropouts: dropout.Dropout,
) -> tuple[embedding.StackInput, embedding.StackInput]:
    """Return the inputs of encoder and decoder."""
    parts = hparams.imported
    both = positions(hparams)
    plain = not (parts.first_position or parts.source_vector or parts.start_vector)
    if plain and parts.source_eos:
        return (
            embedding.StackInput(source, both, dropouts, name="source"),
            embedding.StackInput(target, both, dropouts, name="target"),
        )
    first = parts.first_position
    return (
        imported.StackInput(
            *(source, both, dropouts),
            first=first,
            vector="everywhere" if parts.source_vector else "",
            reads_eos=parts.source_eos,
            name="source",
        ),
        imported.StackInput(
            *(target, both, dropouts),
            first=first,
            vector="start" if parts.start_vector else "",
            name="target",
        ),
    )


def logits(hparams: config.HParams, softmax: embedding.SharedEmbedding) -> embedding.Logits:
    """Return the linear transformation before the softmax."""
    logits_class = imported.BiasedLogits if hparams.imported.logits_bias else embedding.Logits
    return logits_class(softmax, name="logits", dtype=softmax.dtype_policy)
