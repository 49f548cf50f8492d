"""Hyperparameters with the paper's names (standard library only).

A named set is a function that returns `dataclasses.replace(transformer_base(), ...)`; what it
replaces *is* the row of the paper's Table 3. See the package `t2t_lite.hparams`.
"""

import dataclasses
import json
import pathlib
from collections.abc import Collection, Mapping
from typing import Any, Literal

from t2t_lite import errors, fields

PositionEncoding = Literal["sinusoid", "learned", "sinusoid_t2t", "sinusoid_halves"]
Embeddings = Literal["shared", "separate"]
Activation = Literal["relu", "swish"]
AttentionFunction = Literal["scaled_dot", "dot", "additive"]

# Effect of changing a field. MODEL: existing weights no longer fit. LEARNT (the default): another
# training. NOTHING: safe at any time.
MODEL, LEARNT, NOTHING = "model", "learnt", "nothing"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportedModel:
    """Parts that only models of other frameworks have; the defaults are the paper's model.

    t2t-lite-import sets them.
    """

    source_vocab_size: int = fields.option(
        0,
        "Size of the source vocabulary if each side has its own (needs embeddings=separate); 0: "
        "one vocabulary for both.",
        at_least=0,
    )
    source_vector: bool = fields.option(
        False,
        "Add a learnt vector to every encoder input (tensor2tensor's target space).",
    )
    attention_bias: bool = fields.option(
        False,
        "Biases in attention's query and output projections (Marian).",
    )
    activation: Activation = fields.option(
        "relu",
        "Activation of feed-forward networks. relu: max(0, x); swish: x sigmoid(x).",
    )
    logits_bias: bool = fields.option(False, "A softmax bias for each id (Marian).")
    first_position: int = fields.option(
        0,
        "Number of a sentence's first position (OpenNMT-tf: 1, fairseq: 2).",
        at_least=0,
    )
    start_vector: bool = fields.option(
        False,
        "The decoder's first input is a learnt vector instead of zeros (OpenNMT-tf, fairseq).",
    )
    source_eos: bool = fields.option(
        True, "Whether the encoder reads the input's EOS (OpenNMT-tf: false)."
    )
    norm_epsilon: float = fields.option(
        1e-6,
        "Epsilon of layer norm, added to the variance (OpenNMT-tf: 1e-3, fairseq: 1e-5).",
        above=0,
    )

    decoding: str = fields.option(
        "",
        "Decoding options that the framework has other defaults for, as --decode_hparams takes "
        "them (Hugging Face).",
        changes=NOTHING,
    )

    def __post_init__(self) -> None:
        fields.check(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HParams:
    """One model and its training; the defaults are the paper's base model (Table 3, row base)."""

    # Model (Sections 3.1-3.5)
    d_model: int = fields.option(512, "Width of embeddings and layers.", at_least=1, changes=MODEL)
    d_ff: int = fields.option(
        2048, "Width of the hidden layer in feed-forward networks.", at_least=1, changes=MODEL
    )
    num_heads: int = fields.option(8, "Number of attention heads.", at_least=1, changes=MODEL)
    d_k: int = fields.option(
        64, "Size of queries and keys in each head.", at_least=1, changes=MODEL
    )
    d_v: int = fields.option(64, "Size of values in each head.", at_least=1, changes=MODEL)
    num_encoder_layers: int = fields.option(
        6, "Number of encoder layers.", at_least=1, changes=MODEL
    )
    num_decoder_layers: int = fields.option(
        6, "Number of decoder layers.", at_least=1, changes=MODEL
    )
    position_encoding: PositionEncoding = fields.option(
        "sinusoid",
        "Position encoding. sinusoid: the paper's formula. learned: a vector for each position, as "
        "in row E of Table 3. For imported models only: sinusoid_t2t, the sinusoids of "
        "tensor2tensor, Marian, OpenNMT-tf and fairseq; sinusoid_halves, those of Hugging Face's "
        "transformers.",
        changes=MODEL,
    )
    attention_function: AttentionFunction = fields.option(
        "scaled_dot",
        "Attention score of a query and a key (Section 3.2.1). scaled_dot: their dot product "
        "divided by sqrt(d_k), as in the paper. dot: their dot product. additive: a "
        "feed-forward network with one hidden layer.",
        changes=MODEL,
    )
    attention_window: int = fields.option(
        0,
        "Restricted self-attention: a position attends to this many positions on either side (in "
        "the decoder: before it). 0: to all.",
        at_least=0,
        changes=MODEL,
    )
    qkv_gain: float = fields.option(
        1.0,
        "Scale of the initial Q, K, V kernels relative to Glorot initialisation. 0.5 helps small "
        "models.",
        above=0,
    )
    pre_norm: bool = fields.option(
        False,
        "true: layer norm before each sub-layer and after each stack. false: after each sub-layer, "
        "as in the paper.",
        changes=MODEL,
    )
    embeddings: Embeddings = fields.option(
        "shared",
        "shared: one matrix for source, target and softmax, as in the paper. separate: one for "
        "each.",
        changes=MODEL,
    )
    relative_bias: int = fields.option(
        0,
        "Relative position bias: self-attention learns a bias for each distance between two "
        "positions, up to this many, or twice as many in the decoder, which sees only earlier "
        "positions. All larger distances share one bias. 8 helps with small corpora. 0: none.",
        at_least=0,
        changes=MODEL,
    )
    next_word: int = fields.option(
        0,
        "Parsers only: cross-attention learns a bias for each distance (in words, up to this many) "
        "between an input word and the word that the tree needs next. 0: none.",
        at_least=0,
        changes=MODEL,
    )
    vocab_multiple: int = fields.option(
        8,
        "Round the number of rows of the embedding matrix up to a multiple of this, because GPUs "
        "multiply such matrices faster. The additional rows are unused.",
        at_least=1,
        changes=MODEL,
    )
    imported: ImportedModel = dataclasses.field(
        default=ImportedModel(),
        metadata={"help": "Parts that only imported models have.", "changes": MODEL},
    )
    # Regularisation (5.4)
    dropout: float = fields.option(
        0.1,
        "Dropout rate for sub-layer outputs and for the sum of embeddings and positions.",
        at_least=0,
        below=1,
    )
    attention_dropout: float = fields.option(
        0.0, "Dropout rate for attention weights.", at_least=0, below=1
    )
    relu_dropout: float = fields.option(
        0.0, "Dropout rate for the feed-forward networks' hidden layer.", at_least=0, below=1
    )
    label_smoothing: float = fields.option(
        0.1,
        "Label smoothing: the probability that all subwords but the right one share.",
        at_least=0,
        below=1,
    )
    # Optimizer (5.3)
    adam_beta1: float = fields.option(
        0.9, "Adam's beta1, the decay of its first moment.", above=0, below=1
    )
    adam_beta2: float = fields.option(
        0.98, "Adam's beta2, the decay of its second moment.", above=0, below=1
    )
    adam_epsilon: float = fields.option(1e-9, "Adam's epsilon.", above=0)
    learning_rate_scale: float = fields.option(
        1.0,
        "Factor of the learning rate. The peak learning rate is this / sqrt(d_model * "
        "warmup_steps): 0.0007 for the base model.",
        above=0,
    )
    warmup_steps: int = fields.option(
        4000,
        "Steps in which the learning rate rises to its peak. Fewer steps: a higher peak.",
        at_least=1,
    )
    # Batches (5.1)
    batch_tokens: int = fields.option(
        25_000,
        "Largest number of source subwords, and of target subwords, in one step, on all devices "
        "together, padding included.",
        at_least=1,
    )
    max_tokens_per_device: int = fields.option(
        0,
        "Largest number of source subwords, and of target subwords, that a device computes at a "
        "time, padding included. Larger batches are computed in parts, whose gradients are summed. "
        "Set it if memory runs out. 0: on GPUs as many as memory allows, on CPUs no limit.",
        at_least=0,
        changes=NOTHING,
    )
    max_length: int = fields.option(
        256,
        "Pairs with more subwords than this on either side, EOS included, are not trained on. Also "
        "the number of positions of position_encoding=learned.",
        at_least=1,
    )
    max_buckets: int = fields.option(
        24,
        "Largest number of batch shapes. Pairs of similar lengths share a shape, which is compiled "
        "once. More shapes: less padding, but more time to compile.",
        at_least=1,
    )
    train_steps: int = fields.option(
        100_000, "Total number of optimizer steps.", at_least=1, changes=NOTHING
    )
    # Decoding (6.1)
    averaged_checkpoints: int = fields.option(
        5,
        "How many of the newest checkpoints t2t-lite-avg-checkpoints averages.",
        at_least=1,
        changes=NOTHING,
    )
    beam_size: int = fields.option(
        4,
        "Number of hypotheses that the search keeps at each time step; 1 is greedy decoding. Used "
        "by evaluations and, by default, by the decoder.",
        at_least=1,
        changes=NOTHING,
    )
    alpha: float = fields.option(
        0.6,
        "Exponent of the length penalty: an output of n subwords, EOS included, has the score "
        "log-probability / ((5 + n) / 6)^alpha. Higher values favour longer outputs. Used as "
        "beam_size is.",
        at_least=-10,
        at_most=10,
        changes=NOTHING,
    )
    extra_length: int = fields.option(
        50,
        "An output has at most this many subwords more than its input. Used as beam_size is.",
        at_least=0,
        changes=NOTHING,
    )

    def __post_init__(self) -> None:
        fields.check(self)
        check(self)

    @property
    def batch_limits(self) -> dict[str, int]:
        """What the shapes of the training's batches follow from, as data.pipeline takes it."""
        names = ("batch_tokens", "max_length", "max_buckets")
        return {name: getattr(self, name) for name in names}


def check(
    hparams: HParams, *, is_parser: bool | None = None, source_vocab_size: int | None = None
) -> None:
    """Raise UserError if settings do not go together: the one place that says which do.

    Args:
      hparams: checked alone when they are made, and again when the data are known.
      is_parser: whether the problem is parsing; None: not known yet.
      source_vocab_size: of the data's source vocabulary, 0 if both sides share one; None: not known
        yet.
    """
    h = hparams
    if h.imported.source_vocab_size and h.embeddings == "shared":
        raise errors.UserError(
            "a source with its own vocabulary needs embeddings of its own: add embeddings=separate"
        )
    attention = {
        "attention_window": h.attention_window > 0,
        "relative_bias or next_word": bool(h.relative_bias or h.next_word),
        "attention_function": h.attention_function != "scaled_dot",
        "attention_bias": h.imported.attention_bias,
    }
    changes = [name for name, is_changed in attention.items() if is_changed]
    if len(changes) > 1:
        raise errors.UserError(
            f"{' and '.join(changes)} change attention in different ways: take one of them"
        )
    if h.position_encoding != "learned" and h.d_model % 2:
        raise errors.UserError(
            f"d_model is even where positions are sinusoids, half of them sines; got "
            f"{h.d_model}: take {h.d_model + 1} or position_encoding=learned"
        )
    if is_parser is False and h.next_word:
        raise errors.UserError(
            "next_word is for parsing problems only: take another --hparams_set or add "
            "--hparams=next_word=0"
        )
    if source_vocab_size not in (None, h.imported.source_vocab_size):
        sides = (
            "a vocabulary for each side" if source_vocab_size else "one vocabulary for both sides"
        )
        raise errors.UserError(
            f"the data have {sides}, and the hparams expect otherwise (source_vocab_size "
            f"{h.imported.source_vocab_size}, data {source_vocab_size}): give the output_dir "
            "of datagen's --vocab_from as --hparams_set"
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
    """Return the number of rows of the source's and of the target's embedding.

    That is the size of its vocabulary, rounded up to a multiple of `vocab_multiple`. `vocab_size`
    is the target's, or that of both.
    """
    sizes = hparams.imported.source_vocab_size or vocab_size, vocab_size
    source, target = (-(-size // hparams.vocab_multiple) for size in sizes)
    return source * hparams.vocab_multiple, target * hparams.vocab_multiple


def to_json(hparams: HParams) -> str:
    """Return the text of an output_dir's hparams.json."""
    return json.dumps(dataclasses.asdict(hparams), indent=2) + "\n"


def from_json(path: pathlib.Path) -> HParams:
    """Read hparams.json; raise UserError if it is missing or not such a file."""
    try:
        return from_dict(json.loads(path.read_text("utf-8")), path)
    except FileNotFoundError as error:
        raise errors.UserError(
            f"{path.parent} is not an output_dir (no {path.name} in it)"
            f"{errors.missing_folder(path)}"
        ) from error
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise errors.UserError(f"{path} is not a hyperparameter file: {error}") from error


def from_dict(values: Mapping[str, Any], path: object = "the hyperparameters") -> HParams:
    """Return the hparams of `dataclasses.asdict`; raise UserError, which names `path`, for an
    unknown field."""
    values = dict(values)
    fields.refuse_unknown(HParams, values, path)
    imported = values.pop("imported", {})
    fields.refuse_unknown(ImportedModel, imported, path)
    return HParams(**values, imported=ImportedModel(**imported))


def difference(old: HParams, new: HParams) -> str:
    """Return the differences in what is learnt: "d_ff 2048 -> 4096, dropout 0.1 -> 0.3", or ""."""
    before, after = (_values(hparams, changes=(LEARNT, MODEL)) for hparams in (old, new))
    differing = (name for name in before if before[name] != after[name])
    return ", ".join(f"{name} {before[name]} -> {after[name]}" for name in differing)


def model(hparams: HParams) -> dict[str, Any]:
    """Return the values that decide what given weights compute."""
    return _values(hparams, changes=(MODEL,))


def _values(hparams: HParams, *, changes: Collection[str]) -> dict[str, Any]:
    """Return the values of fields whose change has one of these effects, all by their own names."""

    def chosen(record: HParams | ImportedModel, default: str) -> dict[str, Any]:
        every = dataclasses.fields(record)
        names = [f.name for f in every if f.metadata.get("changes", default) in changes]
        return {name: getattr(record, name) for name in names}

    values = chosen(hparams, LEARNT)
    return values | chosen(values.pop("imported"), MODEL)
