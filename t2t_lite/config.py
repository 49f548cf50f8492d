"""Hyperparameters with the paper's names (standard library only).

A named set is a function that returns `dataclasses.replace(transformer_base(), ...)`; what it
replaces *is* the row of the paper's Table 3. See the package `t2t_lite.hparams`.
"""

import dataclasses
import json
import pathlib
from typing import Any, Literal

from t2t_lite import errors, fields

PositionEncoding = Literal["sinusoid", "learned", "sinusoid_t2t"]
Embeddings = Literal["shared", "separate"]
Activation = Literal["relu", "swish"]
AttentionFunction = Literal["scaled_dot", "dot", "additive"]

# What another value of a field changes: the function that the weights stand for, or nothing that is
# learnt. All other fields change what is learnt.
MODEL, NOTHING = "model", "nothing"


@dataclasses.dataclass(frozen=True, kw_only=True)
class HParams:
    """One model and its training; the defaults are the paper's base model (Table 3, row base)."""

    # Model (Sections 3.1-3.5)
    d_model: int = fields.option(
        512, "Width of the embeddings and layers.", at_least=1, changes=MODEL
    )
    d_ff: int = fields.option(
        2048, "Width inside the feed-forward networks.", at_least=1, changes=MODEL
    )
    num_heads: int = fields.option(8, "Heads of an attention.", at_least=1, changes=MODEL)
    d_k: int = fields.option(
        64, "Size of the queries and keys of one head.", at_least=1, changes=MODEL
    )
    d_v: int = fields.option(64, "Size of the values of one head.", at_least=1, changes=MODEL)
    num_encoder_layers: int = fields.option(6, "Layers of the encoder.", at_least=1, changes=MODEL)
    num_decoder_layers: int = fields.option(6, "Layers of the decoder.", at_least=1, changes=MODEL)
    position_encoding: PositionEncoding = fields.option(
        "sinusoid",
        "How positions are encoded: by the paper's formula, by embeddings, or as tensor2tensor "
        "lays the formula out.",
        changes=MODEL,
    )
    attention_function: AttentionFunction = fields.option(
        "scaled_dot",
        "How well a query goes with a key: by the paper's dot product over sqrt(d_k), without the "
        "root, or by additive attention (Section 3.2.1 compares them).",
        changes=MODEL,
    )
    attention_window: int = fields.option(
        0,
        "Restricted self-attention: how many positions to either side one sees, in the decoder "
        "before it; 0: all.",
        at_least=0,
        changes=MODEL,
    )
    qkv_gain: float = fields.option(
        1.0, "Initial queries, keys and values: their deviation over Glorot's.", above=0
    )
    pre_norm: bool = fields.option(
        False,
        "x + Sublayer(LayerNorm(x)) and a final norm; the paper's model is post-norm.",
        changes=MODEL,
    )
    embeddings: Embeddings = fields.option(
        "shared",
        "One matrix for source, target and softmax, as in the paper, or one for each.",
        changes=MODEL,
    )
    source_vocab_size: int = fields.option(
        0,
        "Ids of the source's own vocabulary, of data that have one for each side; 0: one for both. "
        "It goes with embeddings=separate.",
        at_least=0,
        changes=MODEL,
    )
    source_vector: bool = fields.option(
        False,
        "A learnt vector is added to every input of the encoder (tensor2tensor's target space).",
        changes=MODEL,
    )
    attention_bias: bool = fields.option(
        False,
        "Attention's queries and outputs have biases, as Marian's.",
        changes=MODEL,
    )
    activation: Activation = fields.option(
        "relu", "Within the feed-forward networks: max(0, x), or x sigmoid(x).", changes=MODEL
    )
    logits_bias: bool = fields.option(
        False, "The softmax has a bias for each id (Marian).", changes=MODEL
    )
    first_position: int = fields.option(
        0,
        "The number of a sentence's first position (OpenNMT-tf: 1, fairseq: 2).",
        at_least=0,
        changes=MODEL,
    )
    start_vector: bool = fields.option(
        False,
        "The decoder's first input is a learnt vector, not zeros (OpenNMT-tf, fairseq).",
        changes=MODEL,
    )
    source_eos: bool = fields.option(
        True, "The encoder reads an input's EOS; OpenNMT-tf's does not.", changes=MODEL
    )
    relative_bias: int = fields.option(
        0,
        "Self-attention has a learnt bias for each distance up to this to either side, in the "
        "decoder for twice as many before; 0: none.",
        at_least=0,
        changes=MODEL,
    )
    next_word: int = fields.option(
        0,
        "A parser's attention over the source has a learnt bias for each distance up to this from "
        "the word that comes next; 0: none.",
        at_least=0,
        changes=MODEL,
    )
    norm_epsilon: float = fields.option(
        1e-6,
        "Added to the variance in layer norms (OpenNMT-tf: 1e-3, fairseq: 1e-5).",
        above=0,
        changes=MODEL,
    )
    vocab_multiple: int = fields.option(
        8,
        "Rows of the embedding are rounded up to a multiple of this, which matrix units like.",
        at_least=1,
        changes=MODEL,
    )
    # Regularisation (5.4)
    dropout: float = fields.option(
        0.1,
        "Of sub-layer outputs and of the sums of embeddings and positions.",
        at_least=0,
        below=1,
    )
    attention_dropout: float = fields.option(0.0, "Of attention weights.", at_least=0, below=1)
    relu_dropout: float = fields.option(
        0.0, "Of the feed-forward networks' hidden layer.", at_least=0, below=1
    )
    label_smoothing: float = fields.option(
        0.1, "Share of a target's probability that goes to the other tokens.", at_least=0, below=1
    )
    # Optimizer (5.3)
    adam_beta1: float = fields.option(0.9, "Decay of Adam's mean.", above=0, below=1)
    adam_beta2: float = fields.option(0.98, "Decay of Adam's variance.", above=0, below=1)
    adam_epsilon: float = fields.option(1e-9, "Added to Adam's deviation.", above=0)
    learning_rate_scale: float = fields.option(
        1.0, "Multiplies the paper's learning rate.", above=0
    )
    warmup_steps: int = fields.option(4000, "Steps in which the learning rate rises.", at_least=1)
    # Batches (5.1)
    batch_tokens: int = fields.option(
        25_000, "Target (and source) tokens of one optimizer step on all devices.", at_least=1
    )
    max_tokens_per_device: int = fields.option(
        0,
        "Tokens, padding included, that a device computes at a time: more are cut into parts "
        "whose gradients are added up; each part has dropout masks of its own. 0: no limit.",
        at_least=0,
        changes=NOTHING,
    )
    max_length: int = fields.option(
        256,
        "Longer pairs do not train; learned positions are as many.",
        at_least=1,
    )
    max_buckets: int = fields.option(
        24, "Shapes of batches, at most; each is compiled once.", at_least=1
    )
    train_steps: int = fields.option(
        100_000, "Optimizer steps in all.", at_least=1, changes=NOTHING
    )
    # Decoding (6.1)
    averaged_checkpoints: int = fields.option(
        5,
        "How many of the last checkpoints t2t-lite-avg-checkpoints averages.",
        at_least=1,
        changes=NOTHING,
    )
    beam_size: int = fields.option(
        4, "Beams of the search; 1 is greedy decoding.", at_least=1, changes=NOTHING
    )
    alpha: float = fields.option(
        0.6, "Of the length penalty ((5 + n) / 6)^alpha.", at_least=-10, at_most=10, changes=NOTHING
    )
    extra_length: int = fields.option(
        50,
        "An output has at most its input's length and this many more tokens.",
        at_least=0,
        changes=NOTHING,
    )

    def __post_init__(self) -> None:
        fields.check(self)
        if self.source_vocab_size and self.embeddings == "shared":
            raise errors.UserError(
                "a source with a vocabulary of its own (source_vocab_size) has embeddings of its "
                "own: add embeddings=separate"
            )
        if self.attention_window and (self.relative_bias or self.next_word):
            raise errors.UserError(
                "relative_bias and next_word do not go with attention_window, which sees only what "
                "is near: leave one of them out"
            )
        if self.position_encoding != "learned" and self.d_model % 2:
            raise errors.UserError(
                f"d_model is even where positions are sinusoids, half of them sines; got "
                f"{self.d_model}: take {self.d_model + 1} or position_encoding=learned"
            )


def override(hparams: HParams, overrides: str) -> HParams:
    """Return `hparams` with `name=value,name=value` applied, each typed by its field.

    >>> override(HParams(), "d_ff=4096,dropout=0.3").d_ff
    4096

    Raises UserError for an unknown name (with the close matches) or a value of another type.
    """
    changes = fields.parse_changes(HParams, overrides, flag="--hparams")
    return dataclasses.replace(hparams, **changes)


def rows(hparams: HParams, vocab_size: int) -> tuple[int, int]:
    """Return how many rows the embeddings of the source and of the target have.

    They are the ids of its vocabulary, rounded up to a multiple of `vocab_multiple`. `vocab_size`
    is the target's, or that of both.
    """
    sizes = hparams.source_vocab_size or vocab_size, vocab_size
    source, target = (-(-size // hparams.vocab_multiple) for size in sizes)
    return source * hparams.vocab_multiple, target * hparams.vocab_multiple


def to_json(hparams: HParams) -> str:
    """Return the text of an output_dir's hparams.json."""
    return json.dumps(dataclasses.asdict(hparams), indent=2) + "\n"


def from_json(path: pathlib.Path) -> HParams:
    """Read hparams.json; raise UserError where it is no such file."""
    try:
        values = json.loads(path.read_text("utf-8"))
        fields.refuse_unknown(HParams, values, path)
        return HParams(**values)
    except FileNotFoundError as error:
        raise errors.UserError(f"{path.parent} is no output_dir: it has no {path.name}") from error
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise errors.UserError(f"{path} is not a hyperparameter file: {error}") from error


def difference(old: HParams, new: HParams) -> str:
    """Return what differs in what is learnt: "d_ff 2048 -> 4096, dropout 0.1 -> 0.3", or ""."""
    learnt = [f.name for f in dataclasses.fields(HParams) if f.metadata.get("changes") != NOTHING]
    differing = (name for name in learnt if getattr(old, name) != getattr(new, name))
    return ", ".join(f"{name} {getattr(old, name)} -> {getattr(new, name)}" for name in differing)


def model(hparams: HParams) -> dict[str, Any]:
    """Return the values that decide what the same weights compute."""
    marked = [f.name for f in dataclasses.fields(HParams) if f.metadata.get("changes") == MODEL]
    return {name: getattr(hparams, name) for name in marked}
