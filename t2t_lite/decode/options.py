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

    beam_size: int = fields.same_as(
        config.HParams,
        "beam_size",
        help="Number of hypotheses that the search keeps at each time step; 1 is greedy decoding.",
    )
    alpha: float = fields.same_as(
        config.HParams,
        "alpha",
        help="Exponent of length_penalty. Higher values favour longer outputs.",
    )
    extra_length: int = fields.same_as(
        config.HParams,
        "extra_length",
        help="An output has at most this many subwords more than its input.",
    )
    return_beams: int = fields.option(
        1,
        "Number of outputs for each input, best first; without sampling at most beam_size. A line "
        "of plain text then has output, score, output, score and so on, separated by tabs.",
        at_least=1,
    )
    strict_ends: bool = fields.option(
        False,
        "Which hypotheses of a time step may end with EOS. true: those among the best beam_size, "
        "as in fairseq and CTranslate2. false: those among the best 2 * beam_size, as in "
        "tensor2tensor.",
    )
    length_penalty: LengthPenalty = fields.option(
        "gnmt",
        "What the log-probability of an output of n subwords, EOS included, is divided by; the "
        "result is its score. gnmt: ((5 + n) / 6)^alpha, as in tensor2tensor. power: n^alpha, as "
        "in fairseq and Marian.",
    )
    early_stop: EarlyStop = fields.option(
        "false",
        "When to stop searching. true: when beam_size outputs are finished, as in fairseq (Hugging "
        "Face's True). false: when no unfinished output can still get a better score than the "
        'worst finished one that is returned (Hugging Face\'s "never"). heuristic: when '
        "beam_size outputs are finished and no unfinished one, at its present length, has a better "
        "score than the worst of them (Hugging Face's False).",
    )
    min_length: int = fields.option(
        0, "Smallest number of subwords in an output, EOS included.", at_least=0
    )
    no_repeat_ngram: int = fields.option(
        0,
        "No sequence of this many subwords may occur twice in an output. 0: no such limit.",
        at_least=0,
    )
    prefix: str = fields.option(
        "",
        "Text that every output begins with. Put a text with a comma in double quotes, and the "
        """whole value in single ones for the shell: --decode_hparams='prefix="Ja, das"'.""",
    )
    target_language: str = fields.option(
        "",
        "Imported models with several target languages only: the language to translate into, for "
        "inputs that do not begin with a label. deu stands for the label >>deu<<.",
    )
    sampling: bool = fields.option(
        False,
        "Draw outputs at random, return_beams for each input, instead of searching.",
    )
    temperature: float = fields.option(
        1.0,
        "Sampling temperature: below 1 favours likely subwords, above 1 unlikely ones.",
        above=0,
    )
    top_k: int = fields.option(
        0, "Sample from this many of the likeliest subwords. 0: from all.", at_least=0
    )
    top_p: float = fields.option(
        1.0,
        "Sample from the smallest set of subwords whose probabilities add up to this.",
        above=0,
        at_most=1,
    )
    seed: int = fields.option(1, "Random seed for sampling.", at_least=0)
    constrained: bool = fields.option(
        True,
        "Parsers only. true: every output is a tree. false: outputs are free, and repaired if they "
        "are not trees.",
    )
    token_scores: bool = fields.option(
        False,
        "Also return the log-probability of every output subword. Needs --jsonl or --moses_nbest.",
    )
    alignments: bool = fields.option(
        False,
        "Also return the input subword that each output subword attends to most. Needs --jsonl or "
        "--moses_nbest.",
    )
    max_source_length: int = fields.option(
        512,
        "Longer inputs are cut to this many subwords, EOS included. Default: 512, or the model's "
        "hyperparameter max_length if that is larger.",
        at_least=1,
    )
    batch_size: int = fields.option(
        128, "Largest number of sentences that are translated at a time.", at_least=1
    )
    batch_tokens: int = fields.option(
        4096,
        "Largest number of source subwords that are translated at a time, padding included.",
        at_least=1,
    )
    precision: Precision = fields.option(
        "float32",
        "Precision of matrix products. bfloat16: all in bfloat16, and the weights take half the "
        "memory. mixed: only the decoder's in bfloat16, and the best candidates are scored again "
        "in float32. Both are fast on CPUs with bfloat16. mixed_int8: large matrix products in "
        "8-bit integers, the rest in float32. Needs a CPU with AVX512 VNNI, AVX VNNI or AMX.",
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
