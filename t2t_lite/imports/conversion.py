"""What models of several frameworks need before their weights are this package's."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from t2t_lite import config, errors
from t2t_lite.imports import imported

# Where a row of zeros comes.
NO_ROW = -1
_PART = re.compile(r"/[Wb]/[qkvo]$")
_PAD = "<pad>"  # of frameworks that have none


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


def sides(pieces: Sequence[Sequence[str]], *, pad: str | None, eos: str, unk: str) -> Sides:
    """Return the numbering of each side's pieces, given by the framework's numbers: of the source
    and of the target, or of both at once."""
    numberings = []
    for side in pieces:
        places = order(side, pad=pad, eos=eos, unk=unk)
        named = [_PAD if place == NO_ROW else side[place] for place in places]
        numberings.append(Numbering(named, places))
    return Sides(numberings[0], numberings[-1])


def hparams(
    weights: Mapping[str, np.ndarray],
    sides: Sides,
    *,
    num_heads: int,
    hidden: str,
    parts: Mapping[str, Any],
    **others: Any,
) -> config.HParams:
    """Return the hparams of converted weights.

    Args:
      weights: by their names here.
      sides: the vocabularies.
      num_heads: of every attention.
      hidden: the framework's name of the first layer's first feed-forward matrix.
      parts: fields of config.ImportedModel.
      others: fields of HParams that the weights' shapes do not tell.

    Raises UserError where the matrix is missing, and where the heads do not divide the width.
    """
    d_model = weights["embedding/matrix"].shape[1]
    if d_model % num_heads:
        raise errors.UserError(f"{num_heads} heads do not divide a width of {d_model}")
    kernel = weights.get("encoder_0/feed_forward/kernel_1")
    if kernel is None or kernel.ndim != 2:
        raise errors.UserError(f"the model cannot be imported: it lacks {hidden}")
    sizes: dict[str, Any] = dict(
        d_model=d_model,
        d_ff=kernel.shape[1],
        num_heads=num_heads,
        d_k=d_model // num_heads,
        d_v=d_model // num_heads,
        num_encoder_layers=imported.num_layers(weights, "encoder"),
        num_decoder_layers=imported.num_layers(weights, "decoder"),
        position_encoding="sinusoid_t2t",
        embeddings="separate" if "softmax/matrix" in weights else "shared",
        vocab_multiple=1,
        imported=config.ImportedModel(
            source_vocab_size=sides.source_vocab_size, attention_bias=True, **parts
        ),
    )
    return config.HParams(**{**sizes, **others})


def fused(found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Join attention's kernels, and bring its biases to those of queries and outputs.

    "encoder_0/self_attention/W/q" and ".../b/q" and so on become ".../qkv", ".../output",
    ".../q_bias", ".../output_bias". A bias of keys leaves a softmax as it is and is left out;
    attention's weights add up to 1, so that a bias of values is one of outputs: b_o + b_v W_o.
    """
    joined = {name: value for name, value in found.items() if not _PART.search(name)}
    for layer in sorted({name[:-4] for name in found if _PART.search(name)}):
        try:
            q, k, v, o = (found[f"{layer}/W/{kind}"] for kind in "qkvo")
            bq, bv, bo = (found[f"{layer}/b/{kind}"] for kind in "qvo")
            is_cross = layer.endswith("cross_attention")
            groups = {"q": [q], "kv": [k, v]} if is_cross else {"qkv": [q, k, v]}
            for name, kernels in groups.items():
                joined[f"{layer}/{name}"] = np.concatenate(kernels, axis=1)
            joined[f"{layer}/output"] = o
            joined[f"{layer}/q_bias"] = bq
            joined[f"{layer}/output_bias"] = bo + bv @ o
        except (KeyError, ValueError) as error:
            raise errors.UserError(
                f"the model cannot be imported: the weights of {layer} are not complete: {error}"
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
      matrices: "embedding", of targets; "source_embedding" and "softmax" where they are others.
      sides: the vocabularies.

    Raises UserError where a matrix has not the rows of its vocabulary.
    """
    own = matrices["embedding"]
    every = {"source_embedding": own, "softmax": own, **matrices}
    for name, value in every.items():
        places = sides.source.places if name == "source_embedding" else sides.target.places
        count = sum(place != NO_ROW for place in places)
        if value.ndim != 2 or len(value) != count:
            side = "source" if name == "source_embedding" else "target"
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
        every = {"embedding": own}
    return {
        f"{name}/matrix": reordered(
            value, sides.source.places if name == "source_embedding" else sides.target.places
        )
        for name, value in every.items()
    }


def logits_bias(values: np.ndarray, side: Numbering) -> np.ndarray:
    """Return the softmax's bias by the ids here."""
    flat = values.reshape(-1)
    if flat.size != sum(place != NO_ROW for place in side.places):
        raise errors.UserError(
            f"the model cannot be imported: its softmax has {flat.size} biases, expected one for "
            "each entry of the target's vocabulary"
        )
    return reordered(flat, side.places)


def no_part(name: str, kinds: Mapping[str, str]) -> errors.UserError:
    """Return the refusal of a weight; `kinds` says what a word in its name belongs to."""
    what = next((text for word, text in kinds.items() if word in name), "another kind of layer")
    return errors.UserError(f"the model cannot be imported: {name:.80} belongs to {what}")


def reordered(values: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """Return the rows at places, zeros at NO_ROW."""
    zeros = np.zeros_like(values[:1])
    return np.concatenate([values, zeros])[list(places)]
