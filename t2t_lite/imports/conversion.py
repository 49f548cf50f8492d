"""What models of several frameworks need before their weights are this package's."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from t2t_lite import errors

# Where a row of zeros comes.
NO_ROW = -1
_PART = re.compile(r"/[Wb]/[qkvo]$")


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


def no_part(name: str, kinds: Mapping[str, str]) -> errors.UserError:
    """Return the refusal of a weight; `kinds` says what a word in its name belongs to."""
    what = next((text for word, text in kinds.items() if word in name), "another kind of layer")
    return errors.UserError(f"the model cannot be imported: {name:.80} belongs to {what}")


def reordered(values: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """Return the rows at places, zeros at NO_ROW."""
    zeros = np.zeros_like(values[:1])
    return np.concatenate([values, zeros])[list(places)]
