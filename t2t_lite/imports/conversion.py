"""Weights and settings of other frameworks under this package's names."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from t2t_lite import config, errors
from t2t_lite.imports import imported

NO_ROW = -1  # in place of a row's number: a row of zeros
_PART = re.compile(r"/(?:kernel|bias)/[qkvo]$")
_PAD = "<pad>"  # of frameworks that have none
EMBEDDINGS: tuple[str, ...] = ("source_embedding/matrix", "embedding/matrix", "softmax/matrix")
LOGITS_BIAS = "logits/bias"
NEVER = -100.0  # the logit of PAD where a framework has none, or never gives it a probability


@dataclasses.dataclass(frozen=True, kw_only=True)
class Names:
    """A framework's names of weights, and what they are here.

    A rule is a regular expression of a whole name, and the name here with its groups in braces:
    {"(self|context)_([Wb])([qkvo])": "{0}/{1}/{2}"}. Attention's weights become
    "self_attention/kernel/q", "self_attention/bias/q" and so on, for `fused`.

    Attributes:
      layer: regular expression of a layer's weight: the side, the layer's number and the rest.
      in_layer: rules for the rest of a layer's names.
      elsewhere: rules for all other names.
      words: names of groups here, where they are different.
      other_parts: words in the names of weights that have no place here: {"lstm": "an RNN"}.
      first_layer: the number of the first layer.
    """

    layer: str
    in_layer: Mapping[str, str]
    elsewhere: Mapping[str, str]
    words: Mapping[str, str]
    other_parts: Mapping[str, str]
    first_layer: int = 0

    def renamed(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return arrays by their names here; UserError for weights that no Transformer has."""
        weights: dict[str, np.ndarray] = {}
        for name, value in arrays.items():
            own = self._renamed(name)
            if own is None:
                words = [text for word, text in self.other_parts.items() if word in name]
                what = words[0] if words else "another kind of layer"
                raise errors.UserError(
                    f"the model cannot be imported: {name:.80} belongs to {what}"
                )
            if own in weights:
                raise errors.UserError(f"the model cannot be imported: it has {own} twice")
            weights[own] = value
        return weights

    def _renamed(self, name: str) -> str | None:
        layer = re.fullmatch(self.layer, name)
        if layer and (rest := self._ruled(layer[3], self.in_layer)):
            return f"{layer[1]}_{int(layer[2]) - self.first_layer}/{rest}"
        return self._ruled(name, self.elsewhere)

    def _ruled(self, name: str, rules: Mapping[str, str]) -> str | None:
        for rule, own in rules.items():
            if match := re.fullmatch(rule, name):
                return own.format(*(self.words.get(word, word) for word in match.groups()))
        return None


class Numbering(NamedTuple):
    """A side's pieces by their ids here, and for each of these the framework's number."""

    pieces: list[str]
    places: list[int]


class Sides(NamedTuple):
    """The vocabularies of both sides, which may be the same."""

    source: Numbering
    target: Numbering

    @property
    def source_vocab_size(self) -> int:
        """The hparam: 0 where both sides have one vocabulary."""
        return 0 if self.source == self.target else len(self.source.pieces)


def refuse(settings: Mapping[str, Any], only: Mapping[str, tuple[Sequence[Any], str]]) -> None:
    """Raise UserError for a setting with another value than the allowed ones, and say what it
    means; one that is missing has the first of these."""
    for name, (allowed, meaning) in only.items():
        value = settings.get(name, allowed[0])
        if value not in allowed:
            raise errors.UserError(
                f"the model cannot be imported: it has {meaning} ({name}={value!r:.60})"
            )


def activation(name: Any) -> config.Activation:
    """Return what a framework calls so; UserError for others than are here."""
    if name == "relu":
        return "relu"
    if name in ("swish", "silu"):
        return "swish"
    raise errors.UserError(f"the model cannot be imported: its activation is {name!r:.60}")


def same_heads(settings: Mapping[str, Any], given: int | None = None) -> int:
    """Return the number of heads of both sides; `given` is for settings that do not tell."""
    told = [settings.get(f"{side}_attention_heads") for side in ("encoder", "decoder")]
    heads = given or told[0]
    if type(heads) is not int or heads < 1 or any(one not in (None, heads) for one in told):
        raise errors.UserError(
            "how many heads has the model? Its settings have encoder_attention_heads="
            f"{told[0]!r:.20} and decoder_attention_heads={told[1]!r:.20}, expected the same "
            "number; give --num_heads only where these are None"
        )
    return heads


def sides(pieces: Sequence[Sequence[str]], *, pad: str | None, eos: str, unk: str) -> Sides:
    """Return the numbering of each side's pieces, given by the framework's numbers: of the source
    and of the target, or of both at once."""
    numberings = []
    for side in pieces:
        places = order(side, pad=pad, eos=eos, unk=unk)
        named = [_PAD if place == NO_ROW else side[place] for place in places]
        numberings.append(Numbering(named, places))
    return Sides(numberings[0], numberings[-1])


def floats(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return values as float32; UserError where one is of another kind."""
    for name, value in values.items():
        if value.dtype.kind != "f" and value.dtype.name != "bfloat16":
            raise errors.UserError(
                f"the model cannot be imported: {name} holds no floats but {value.dtype}: give it "
                "as it was before it was quantized"
            )
    return {name: np.asarray(value).astype(np.float32) for name, value in values.items()}


def assumed(missing: str) -> str:
    """Return the remark that nothing tells what weights do not, because of what is missing."""
    return (
        f"{missing}: activation, positions and all else that weights do not tell are taken to be "
        "the framework's defaults (ReLU, sinusoids)"
    )


def hparams(
    weights: Mapping[str, np.ndarray],
    *,
    num_heads: int,
    parts: Mapping[str, Any],
    told: Mapping[str, Any],
    **others: Any,
) -> config.HParams:
    """Return the hparams of converted weights.

    Args:
      weights: by their names here.
      num_heads: of every attention.
      parts: fields of config.ImportedModel that the weights do not tell.
      told: fields of HParams that the framework's settings tell; not a number where they do not.
      others: fields of HParams that the weights do not tell.

    Raises UserError where a matrix is missing, where the heads do not divide the others, and where
    weights contradict the settings.
    """

    def shape(name: str) -> tuple[int, int]:
        if name not in weights or weights[name].ndim != 2:
            raise errors.UserError(f"the model cannot be imported: it lacks the matrix {name}")
        return weights[name].shape

    keys = shape("decoder_0/cross_attention/q")[1]
    values = shape("decoder_0/cross_attention/output")[0]
    if keys % num_heads or values % num_heads or not keys or not values:
        raise errors.UserError(
            f"{num_heads} heads do not divide queries of {keys} and values of {values}: give the "
            "model's --num_heads"
        )
    sizes: dict[str, Any] = dict(
        d_model=shape("embedding/matrix")[1],
        d_ff=shape("encoder_0/feed_forward/kernel_1")[1],
        num_heads=num_heads,
        d_k=keys // num_heads,
        d_v=values // num_heads,
        num_encoder_layers=imported.num_layers(weights, "encoder"),
        num_decoder_layers=imported.num_layers(weights, "decoder"),
        position_encoding="sinusoid_t2t",
        embeddings="separate" if "softmax/matrix" in weights else "shared",
        vocab_multiple=1,
        imported=config.ImportedModel(
            attention_bias="decoder_0/cross_attention/q_bias" in weights,
            logits_bias=LOGITS_BIAS in weights,
            source_vector="source/vector" in weights,
            start_vector="target/vector" in weights,
            **parts,
        ),
    )
    for name, value in told.items():
        if isinstance(value, int) and value != sizes[name]:
            what = f"--{name}" if name == "num_heads" else f"its weights have {name}"
            raise errors.UserError(
                f"the model cannot be imported: {what}={sizes[name]}, its settings say {value}"
            )
    return config.HParams(**{**sizes, **others})


def completed(
    weights: Mapping[str, np.ndarray], sides: Sides, *, start: str | None = None
) -> dict[str, np.ndarray]:
    """Return all weights of the model: attention's joined, rows of vocabularies by the ids here.

    `start` is the target's piece whose embedding is the decoder's first input.
    """
    matrices = {name: value for name, value in weights.items() if name in EMBEDDINGS}
    if "embedding/matrix" not in matrices:
        raise errors.UserError("the model cannot be imported: it lacks the embedding of the target")
    rest = {name: value for name, value in weights.items() if name not in EMBEDDINGS}
    complete = fused(rest) | embeddings(matrices, sides)
    if LOGITS_BIAS in complete:
        bias, places = complete[LOGITS_BIAS].reshape(-1), sides.target.places
        if bias.size != sum(place != NO_ROW for place in places):
            raise errors.UserError(
                f"the model cannot be imported: its softmax has {bias.size} biases, expected one "
                "for each entry of the target's vocabulary"
            )
        complete[LOGITS_BIAS] = reordered(bias, places)
    if start is not None:
        row = complete["embedding/matrix"][sides.target.pieces.index(start)]
        complete["target/vector"] = (row * np.float32(row.size) ** 0.5).astype(np.float32)
    return complete


def fused(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Join attention's kernels, and bring its biases to those of queries and outputs.

    "encoder_0/self_attention/kernel/q" and ".../bias/q" and so on become ".../qkv", ".../output",
    ".../q_bias", ".../output_bias". A bias of keys leaves a softmax as it is and is left out;
    attention's weights add up to 1, so a bias of values is one of outputs: b_o + b_v W_o.
    """
    joined = {name: value for name, value in weights.items() if not _PART.search(name)}
    parts = sorted(weights.keys() - joined.keys())
    has_bias = any("/bias/" in name for name in parts)
    for layer in dict.fromkeys(_PART.sub("", name) for name in parts):
        try:
            q, k, v, o = (weights[f"{layer}/kernel/{kind}"] for kind in "qkvo")
            is_cross = layer.endswith("cross_attention")
            groups = {"q": [q], "kv": [k, v]} if is_cross else {"qkv": [q, k, v]}
            for name, kernels in groups.items():
                joined[f"{layer}/{name}"] = np.concatenate(kernels, axis=1)
            joined[f"{layer}/output"] = o
            if has_bias:
                bq, bv, bo = (weights[f"{layer}/bias/{kind}"] for kind in "qvo")
                joined[f"{layer}/q_bias"] = bq
                joined[f"{layer}/output_bias"] = bo + bv @ o
        except (KeyError, ValueError) as error:
            raise errors.UserError(
                f"the model cannot be imported: weights of {layer} are missing or do not fit "
                f"together: {error}"
            ) from error
    return joined


def order(pieces: Sequence[str], *, pad: str | None, eos: str, unk: str) -> list[int]:
    """Return for each id here the number there: PAD, EOS, UNK, then all others.

    >>> order(["<s>", "<pad>", "</s>", "<unk>", "a"], pad="<pad>", eos="</s>", unk="<unk>")
    [1, 2, 3, 0, 4]
    """
    places = {piece: place for place, piece in enumerate(pieces)}
    first = [NO_ROW if pad is None else places[pad], places[eos], places[unk]]
    return [*first, *(place for place in range(len(pieces)) if place not in first)]


def embeddings(matrices: Mapping[str, np.ndarray], sides: Sides) -> dict[str, np.ndarray]:
    """Return one matrix where all three are the same, else three, with rows by the ids here.

    Args:
      matrices: "embedding/matrix", of targets; those of EMBEDDINGS that are others.
      sides: the vocabularies.

    Raises UserError where a matrix does not have the rows of its vocabulary.
    """
    own = matrices["embedding/matrix"]
    every = {name: matrices.get(name, own) for name in EMBEDDINGS}
    places = dict.fromkeys(EMBEDDINGS, sides.target.places)
    places["source_embedding/matrix"] = sides.source.places
    for name, value in every.items():
        count = sum(place != NO_ROW for place in places[name])
        if value.ndim != 2 or len(value) != count:
            side = "source" if name == "source_embedding/matrix" else "target"
            raise errors.UserError(
                f"the vocabulary has {count} entries and the embedding of the {side} "
                f"{len(value)} rows: give what the model was trained with as --vocab; where each "
                "side has its own, the source's first"
            )
    if all(np.array_equal(value, own) for value in every.values()):
        if sides.source_vocab_size:
            raise errors.UserError(
                "the model has one embedding for both sides, but the two vocabularies differ: give "
                "the one that it was trained with as --vocab"
            )
        every = {"embedding/matrix": own}
    return {name: reordered(value, places[name]) for name, value in every.items()}


def reordered(values: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """Return the rows at places, zeros at NO_ROW."""
    zeros = np.zeros_like(values[:1])
    return np.concatenate([values, zeros])[list(places)]
