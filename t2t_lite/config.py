"""Hyperparameters with the paper's names (standard library only).

A named set is a function that returns `dataclasses.replace(transformer_base(), ...)`; what it
replaces *is* the row of the paper's Table 3. See the package `t2t_lite.hparams`.
"""

import dataclasses
import difflib
import json
import pathlib
from collections.abc import Mapping
from typing import Any, Literal

from t2t_lite import errors

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}

PositionEncoding = Literal["sinusoid", "learned", "sinusoid_t2t"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class HParams:
    """One model and its training; the defaults are the paper's base model (Table 3, row base)."""

    # Model (Sections 3.1-3.5)
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    d_k: int = 64  # of one head
    d_v: int = 64  # of one head
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    position_encoding: PositionEncoding = "sinusoid"
    qkv_gain: float = 1.0  # initial queries, keys and values: deviation over Glorot's
    pre_norm: bool = False  # x + Sublayer(LayerNorm(x)) and a final norm; the paper is post-norm
    # Regularisation (5.4)
    dropout: float = 0.1  # of sub-layer outputs and of the sums of embeddings and positions
    attention_dropout: float = 0.0  # of attention weights
    relu_dropout: float = 0.0  # of the feed-forward network's hidden layer
    label_smoothing: float = 0.1
    guided_alignment: float = 0.0  # weight of a loss that shows a parser which word comes next
    # Optimizer (5.3)
    adam_beta1: float = 0.9
    adam_beta2: float = 0.98
    adam_epsilon: float = 1e-9
    learning_rate_scale: float = 1.0  # multiplies the paper's formula
    warmup_steps: int = 4000
    # Batches (5.1)
    batch_tokens: int = 25_000  # target tokens (and source tokens) of one optimizer step, global
    packing: bool = False  # several pairs in one row: next to no padding, one shape
    max_tokens_per_device: int = 0  # more are cut into parts that follow one another; 0: no limit
    accumulation_steps: int = 1  # such parts at least
    max_length: int = 256  # longer pairs do not train; positions of `learned`
    max_buckets: int = 24  # shapes of batches, at most; each is compiled once
    train_steps: int = 100_000
    # Decoding (6.1)
    averaged_checkpoints: int = 5  # the last ones, written every 10 minutes
    beam_size: int = 4
    alpha: float = 0.6
    extra_length: int = 50  # an output has at most its input's length + this many tokens

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(self, field)


def override(hparams: HParams, overrides: str) -> HParams:
    """Return `hparams` with `name=value,name=value` applied, each typed by its field.

    >>> override(HParams(), "d_ff=4096,dropout=0.3").d_ff
    4096

    Raises UserError for an unknown name (with the close matches) or a value of another type.
    """
    types = {
        field.name: type(getattr(hparams, field.name)) for field in dataclasses.fields(hparams)
    }
    return dataclasses.replace(hparams, **parse_changes(overrides, types, flag="--hparams"))


def parse_changes(text: str, types: Mapping[str, type], *, flag: str) -> dict[str, Any]:
    """Return {name: value} of `name=value,name=value`, each value of its name's type.

    >>> parse_changes("beam_size=8, alpha=1", {"beam_size": int, "alpha": float}, flag="--f")
    {'beam_size': 8, 'alpha': 1.0}

    Raises UserError that begins with `flag`, as `override` does.
    """
    changes: dict[str, Any] = {}
    for item in filter(None, text.split(",")):
        name, equals, value = item.partition("=")
        name = name.strip()
        if not equals:
            raise errors.UserError(f"{flag}: expected name=value, got {item!r}")
        if name not in types:
            close = difflib.get_close_matches(name, types, n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(types)}"
            raise errors.UserError(f"{flag}: unknown name {name!r}; {hint}")
        kind = types[name]
        try:
            changes[name] = _TRUTHS[value.strip().lower()] if kind is bool else kind(value)
        except (ValueError, KeyError) as error:
            expected = f"{name} is {kind.__name__}, got {value!r}"
            raise errors.UserError(f"{flag}: {expected}") from error
    return changes


def to_json(hparams: HParams) -> str:
    """Return the text of an output_dir's hparams.json."""
    return json.dumps(dataclasses.asdict(hparams), indent=2) + "\n"


def from_json(path: pathlib.Path) -> HParams:
    """Read hparams.json; raise UserError where it is no such file."""
    try:
        return HParams(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError as error:
        raise errors.UserError(f"{path.parent} is no output_dir: it has no {path.name}") from error
    except (TypeError, json.JSONDecodeError) as error:
        raise errors.UserError(f"{path} is not a hyperparameter file: {error}") from error


def difference(old: HParams, new: HParams) -> str:
    """Return what differs, e.g. "d_ff 2048 -> 4096, dropout 0.1 -> 0.3"; "" where nothing does."""
    pairs = ((f.name, getattr(old, f.name), getattr(new, f.name)) for f in dataclasses.fields(old))
    return ", ".join(f"{name} {was} -> {now}" for name, was, now in pairs if was != now)


def _check(hparams: HParams, field: dataclasses.Field) -> None:
    value = getattr(hparams, field.name)
    if field.name == "position_encoding":
        choices = PositionEncoding.__args__
        if value not in choices:
            raise errors.UserError(f"position_encoding is one of {choices}, got {value!r}")
    elif "dropout" in field.name or field.name == "label_smoothing":
        if not 0 <= value < 1:
            raise errors.UserError(f"{field.name} is at least 0 and below 1, got {value}")
    elif field.name in ("alpha", "extra_length", "pre_norm", "packing", "max_tokens_per_device"):
        pass  # any value has a meaning
    elif field.name == "guided_alignment":
        if not value >= 0:
            raise errors.UserError(f"{field.name} is at least 0, got {value}")
    elif value <= 0:
        raise errors.UserError(f"{field.name} is positive, got {value}")
