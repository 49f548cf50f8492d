"""How to decode: what `--decode_hparams=beam_size=4,alpha=0.6` sets (no TensorFlow)."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from t2t_lite import config, errors, fields

Precision = Literal["float32", "mixed", "bfloat16", "mixed_int8"]
LengthPenalty = Literal["gnmt", "power"]
_OF_SAMPLING = ("temperature", "top_k", "top_p", "seed")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """One way of decoding. The defaults are the paper's (Section 6.1)."""

    beam_size: int = fields.same_as(config.HParams, "beam_size")
    alpha: float = fields.same_as(config.HParams, "alpha")
    extra_length: int = fields.same_as(config.HParams, "extra_length")
    return_beams: int = fields.option(1, "Outputs of each input, best first.", at_least=1)
    strict_ends: bool = fields.option(
        False,
        "Only the best beam_size extensions may end an output, as in fairseq and CTranslate2; if "
        "not, any of the best 2 * beam_size, as in tensor2tensor.",
    )
    length_penalty: LengthPenalty = fields.option(
        "gnmt",
        "What an output's log-probability is divided by: ((5 + n) / 6)^alpha, or with power "
        "n^alpha, as in fairseq and Marian.",
    )
    early_stop: bool = fields.option(
        False,
        "A sentence is done with its first beam_size outputs, as in fairseq; if not, when no other "
        "one can be better.",
    )
    min_length: int = fields.option(0, "The fewest tokens of an output, EOS included.", at_least=0)
    prefix: str = fields.option(
        "", 'Every output begins with this text; with a comma in it, prefix="Ja, das".'
    )
    sampling: bool = fields.option(
        False, "Draw return_beams outputs at random, instead of searching."
    )
    temperature: float = fields.option(
        1.0, "Of sampling: below 1 the probable becomes more probable.", above=0
    )
    top_k: int = fields.option(
        0, "Sample from this many of the likeliest tokens; 0: from all.", at_least=0
    )
    top_p: float = fields.option(
        1.0,
        "Sample from the fewest tokens that together have this probability.",
        above=0,
        at_most=1,
    )
    seed: int = fields.option(1, "Of sampling.", at_least=0)
    constrained: bool = fields.option(
        True, "A parser's outputs are trees; false: search freely, then repair."
    )
    token_scores: bool = fields.option(
        False, "Tell the log-probability of every token of an output."
    )
    alignments: bool = fields.option(
        False, "Tell which input token each output token attended to most."
    )
    max_source_length: int = fields.option(
        512,
        "The most tokens that are read of an input; if the model learnt from longer ones, as many "
        "as there.",
        at_least=1,
    )
    batch_size: int = fields.option(128, "Sentences of a batch, at most.", at_least=1)
    batch_tokens: int = fields.option(
        4096, "Source tokens of a batch, padding included, at most.", at_least=1
    )
    precision: Precision = fields.option(
        "float32",
        "Precision of matrix products. mixed: the decoder's in bfloat16, and the best candidates "
        "scored again in float32. bfloat16: all of them, and the weights. Both are fast where the "
        "processor has bfloat16. mixed_int8: large ones in 8-bit integers, the rest in float32; "
        "the fastest on processors with AVX512 VNNI, AVX VNNI or AMX.",
    )

    def __post_init__(self) -> None:
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
    def products_dtype(self) -> str:
        """The type of the decoder's products with weights."""
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
    }
    return DecodeOptions(**{**defaults, **changes})


def parse(text: str) -> dict[str, Any]:
    """Return the changes that a flag asks for, each typed by its field.

    >>> parse("beam_size=8,alpha=1")
    {'beam_size': 8, 'alpha': 1.0}

    Raises UserError for an unknown name (with the close matches) or a wrong value.
    """
    return fields.parse_changes(DecodeOptions, text, flag="--decode_hparams")
