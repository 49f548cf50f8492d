"""How to decode: what `--decode_hparams=beam_size=4,alpha=0.6` sets (no TensorFlow)."""

import dataclasses
import math
from typing import Any, Literal

from t2t_lite import config, errors

# mixed: weights and all else in float32, but the products with a decoder's weights in bfloat16, and
# then the best logits again in float32. bfloat16: weights, products and attention. Both are for
# processors that have it.
Precision = Literal["float32", "mixed", "bfloat16"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """One way of decoding. The defaults are the paper's (Section 6.1)."""

    beam_size: int = 4  # 1 is greedy decoding
    alpha: float = 0.6  # of the length penalty ((5 + n) / 6)^alpha
    extra_length: int = 50  # an output has at most its input's length + this many tokens
    return_beams: int = 1  # outputs of each input, best first
    # Any of the best 2 * beam_size extensions may end an output, as in tensor2tensor; if strict,
    # only the best beam_size, as in fairseq and CTranslate2.
    strict_ends: bool = False
    min_length: int = 0  # an output has at least so many tokens, EOS included
    prefix: str = ""  # every output begins with this text
    sampling: bool = False  # draw return_beams outputs at random, instead of searching
    temperature: float = 1.0  # of sampling: below 1 the probable becomes more probable
    top_k: int = 0  # sample from so many tokens; 0: from all
    top_p: float = 1.0  # sample from the fewest tokens that together have this probability
    seed: int = 1  # of sampling
    constrained: bool = True  # a parser's outputs are trees; False: search freely, then repair
    max_source_length: int = 512  # of a longer input only so many tokens are read
    batch_size: int = 128  # sentences of a batch, at most
    batch_tokens: int = 4096  # source tokens of a batch, padding included, at most
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        positive = ("beam_size", "return_beams", "max_source_length", "batch_size", "batch_tokens")
        leasts = {**dict.fromkeys(positive, 1), "min_length": 0, "top_k": 0, "seed": 0}
        for name, least in leasts.items():
            if getattr(self, name) < least:
                raise errors.UserError(f"{name} is at least {least}, got {getattr(self, name)}")
        if not math.isfinite(self.alpha):
            raise errors.UserError(f"alpha is a number, got {self.alpha}")
        if not 0 < self.temperature < math.inf or not 0 < self.top_p <= 1:
            raise errors.UserError(
                "expected temperature above 0, top_p above 0 and at most 1; got "
                f"{self.temperature}, {self.top_p}"
            )
        if self.return_beams > self.beam_size and not self.sampling:
            raise errors.UserError(
                f"return_beams is at most beam_size ({self.beam_size}), got {self.return_beams}"
            )
        if self.precision not in Precision.__args__:
            raise errors.UserError(
                f"precision is one of {Precision.__args__}, got {self.precision!r}"
            )

    @property
    def weights_dtype(self) -> str:
        """The type of the weights, the encoder and attention."""
        return "bfloat16" if self.precision == "bfloat16" else "float32"

    @property
    def products_dtype(self) -> str:
        """The type of the decoder's products with weights."""
        return "float32" if self.precision == "float32" else "bfloat16"


def for_model(hparams: config.HParams, **changes: Any) -> DecodeOptions:
    """Return the options that a model's hparams ask for, with `changes`."""
    own = {name: getattr(hparams, name) for name in ("beam_size", "alpha", "extra_length")}
    return DecodeOptions(**{**own, **changes})


def defaults() -> dict[str, Any]:
    """Return every option's name and default."""
    return {field.name: field.default for field in dataclasses.fields(DecodeOptions)}


def parse(text: str) -> dict[str, Any]:
    """Return the changes that a flag asks for, each typed by its field.

    >>> parse("beam_size=8,alpha=1")
    {'beam_size': 8, 'alpha': 1.0}

    Raises UserError for an unknown name (with the close matches) or a value of another type.
    """
    types = {name: type(default) for name, default in defaults().items()}
    return config.parse_changes(text, types, flag="--decode_hparams")
