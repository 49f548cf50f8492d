"""How to decode: what `--decode_hparams=beam_size=4,alpha=0.6` sets (no TensorFlow)."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from t2t_lite import config, errors, fields

Precision = Literal["float32", "mixed", "bfloat16", "mixed_int8"]
LengthPenalty = Literal["gnmt", "power"]
EarlyStop = Literal["false", "true", "heuristic"]
_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")
# Fields that the scores of given outputs depend on, and their speed.
OF_SCORING = (
    *("max_source_length", "extra_length", "target_language", "precision"),
    *("batch_size", "batch_tokens"),
)
DETAILS = ("token_scores", "alignments")
# An export searches, and returns one output or all, without details of their tokens.
NOT_EXPORTED = (
    *("sampling", *_OF_SAMPLING, "return_beams"),
    *DETAILS,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """One way of decoding. The defaults are the paper's (Section 6.1)."""

    beam_size: int = fields.same_as(config.HParams, "beam_size")
    alpha: float = fields.same_as(config.HParams, "alpha")
    extra_length: int = fields.same_as(config.HParams, "extra_length")
    return_beams: int = fields.option(
        1, "Number of outputs for each input, best first.", at_least=1
    )
    strict_ends: bool = fields.option(
        False,
        "true: only the best beam_size extensions of a time step may end an output, as in fairseq "
        "and CTranslate2: take it for their outputs. false: any of the best 2 * beam_size, as in "
        "tensor2tensor.",
    )
    length_penalty: LengthPenalty = fields.option(
        "gnmt",
        "Length penalty by which the log-probability of n tokens is divided. gnmt: "
        "((5 + n) / 6)^alpha. power: n^alpha, as in fairseq and Marian.",
    )
    early_stop: EarlyStop = fields.option(
        "false",
        "true: stop searching after the first beam_size finished outputs, as in fairseq. false: "
        "stop when no unfinished output can become better. heuristic: stop when no unfinished "
        "output, at its present length, is better than the worst of beam_size finished ones, as in "
        "Hugging Face's transformers.",
    )
    min_length: int = fields.option(
        0, "Smallest number of tokens in an output, EOS included.", at_least=0
    )
    no_repeat_ngram: int = fields.option(
        0,
        "No sequence of this many tokens may occur twice in an output. 0: no such limit.",
        at_least=0,
    )
    prefix: str = fields.option(
        "", 'Text that every output begins with. If it has a comma: prefix="Ja, das".'
    )
    target_language: str = fields.option(
        "",
        "For imported models with several target languages: the language of inputs without a "
        "label. deu stands for the label >>deu<<.",
    )
    sampling: bool = fields.option(
        False, "Draw return_beams outputs at random instead of searching."
    )
    temperature: float = fields.option(
        1.0, "Sampling temperature: below 1 favours likely tokens, above 1 unlikely ones.", above=0
    )
    top_k: int = fields.option(
        0, "Sample from this many of the likeliest tokens. 0: from all.", at_least=0
    )
    top_p: float = fields.option(
        1.0,
        "Sample from the smallest set of tokens whose probabilities add up to this.",
        above=0,
        at_most=1,
    )
    seed: int = fields.option(1, "Random seed for sampling.", at_least=0)
    constrained: bool = fields.option(
        True,
        "Parsers only. true: search among trees. false: search freely, then repair the output.",
    )
    token_scores: bool = fields.option(
        False, "Also return the log-probability of every output token (see --jsonl, --moses_nbest)."
    )
    alignments: bool = fields.option(
        False,
        "Also return the input token that each output token attends to most (see --jsonl, "
        "--moses_nbest).",
    )
    max_source_length: int = fields.option(
        512,
        "Longer inputs are cut to this many tokens. Default: 512, or the run's max_length if that "
        "is larger.",
        at_least=1,
    )
    batch_size: int = fields.option(128, "Largest number of sentences in a batch.", at_least=1)
    batch_tokens: int = fields.option(
        4096, "Largest number of source tokens in a batch, padding included.", at_least=1
    )
    precision: Precision = fields.option(
        "float32",
        "Precision of matrix products. mixed: those of the model's decoder in bfloat16, with the "
        "best candidates scored again in float32. bfloat16: all of them, and the weights take half "
        "the memory. Both are fast on processors with bfloat16. mixed_int8: large products in "
        "8-bit integers, the rest in float32; needs a processor with AVX512 VNNI, AVX VNNI or AMX.",
    )

    def __post_init__(self) -> None:
        if isinstance(self.early_stop, bool):
            object.__setattr__(self, "early_stop", str(self.early_stop).lower())
        fields.check(self)
        if self.sampling:
            return
        if self.return_beams > self.beam_size:
            raise errors.UserError(
                f"return_beams is at most beam_size ({self.beam_size}), got {self.return_beams}"
            )
        self._refuse_changed(_OF_SAMPLING, "sampling: add sampling=true")

    def _refuse_changed(self, names: Sequence[str], purpose: str) -> None:
        """Raise UserError for fields that do nothing, and have another value than their default."""
        for field in dataclasses.fields(self):
            if field.name in names and getattr(self, field.name) != field.default:
                raise errors.UserError(f"{field.name} is for {purpose}")

    @property
    def weights_dtype(self) -> str:
        """The type of the weights, the encoder and attention."""
        return "bfloat16" if self.precision == "bfloat16" else "float32"

    @property
    def matmul_dtype(self) -> str:
        """The type of the decoder's matmuls with weights."""
        if self.precision == "float32":
            return "float32"
        return "int8" if self.precision == "mixed_int8" else "bfloat16"


def for_model(hparams: config.HParams, **changes: Any) -> DecodeOptions:
    """Return the options that a model's hparams ask for, with `changes`."""
    defaults = {
        "beam_size": hparams.beam_size,
        "alpha": hparams.alpha,
        "extra_length": hparams.extra_length,
        "max_source_length": max(DecodeOptions.max_source_length, hparams.max_length),
        **parse(hparams.imported.decoding),
    }
    return DecodeOptions(**{**defaults, **changes})


def parse(text: str) -> dict[str, Any]:
    """Return the changes that a flag asks for, each typed by its field.

    >>> parse("beam_size=8,alpha=1")
    {'beam_size': 8, 'alpha': 1.0}

    Raises UserError for an unknown name (with the close matches) or a wrong value.
    """
    return fields.parse_changes(DecodeOptions, text, flag="--decode_hparams")
