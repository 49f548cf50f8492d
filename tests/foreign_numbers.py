"""Transformers of OpenNMT-tf, fairseq and Marian in NumPy, from the definitions of their layers.

Files of the first two have random weights in the layout that each framework writes.
Batches of one sentence and no padding; ids are the framework's own. Weights are
{"encoder.0.self": {"q": (matrix [in, out], bias), ...}, "encoder.0.self_norm": (scale, bias), ...}.
"""

import argparse
import collections
import dataclasses
import pathlib
import pickle
import unittest.mock
from typing import Any

import golden_numbers
import numpy as np

from t2t_lite.imports import fairseq, imported, torch_checkpoint

HEADS, WIDTH, HIDDEN, LAYERS = 2, 8, 12, 2
_PARTS = {"encoder": ("self",), "decoder": ("self", "cross")}


@dataclasses.dataclass(frozen=True)
class Model:
    """A model with random weights, and what its framework does differently from others."""

    weights: dict[str, Any]
    pre_norm: bool
    swish: bool
    epsilon: float
    first_position: int
    start: int  # the decoder's first input

    def logits(self, source: list[int], target: list[int]) -> np.ndarray:
        """Return the logits [T, V] of target ids given source ids as the encoder gets them."""
        w = self.weights
        x = self._embedded(w["source"], source)
        for n in range(LAYERS):
            name = f"encoder.{n}"
            x = self._residual(x, f"{name}.self", lambda y, p=name: self._attend(y, y, f"{p}.self"))
            x = self._residual(x, f"{name}.ffn", lambda y, p=name: self._feed_forward(y, p))
        memory = self._norm(x, "encoder") if self.pre_norm else x
        x = self._embedded(w["target"], [self.start, *target[:-1]])
        causal = np.triu(np.full([len(target)] * 2, -1e9), 1)
        for n in range(LAYERS):
            name = f"decoder.{n}"
            x = self._residual(
                x, f"{name}.self", lambda y, p=name: self._attend(y, y, f"{p}.self", causal)
            )
            x = self._residual(
                x, f"{name}.cross", lambda y, p=name: self._attend(y, memory, f"{p}.cross")
            )
            x = self._residual(x, f"{name}.ffn", lambda y, p=name: self._feed_forward(y, p))
        x = self._norm(x, "decoder") if self.pre_norm else x
        return x @ w["softmax"].T + w.get("softmax_bias", 0)

    def _embedded(self, matrix: np.ndarray, ids: list[int]) -> np.ndarray:
        half = WIDTH // 2
        rates = np.exp(-np.arange(half) * np.log(10_000) / (half - 1))
        angles = (np.arange(len(ids)) + self.first_position)[:, None] * rates
        return matrix[ids] * np.sqrt(WIDTH) + np.concatenate([np.sin(angles), np.cos(angles)], 1)

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        scale, bias = self.weights[f"{name}_norm"]
        u = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + self.epsilon)
        return u * scale + bias

    def _residual(self, x: np.ndarray, name: str, sublayer) -> np.ndarray:
        if self.pre_norm:
            return x + sublayer(self._norm(x, name))
        return self._norm(x + sublayer(x), name)

    def _attend(self, x: np.ndarray, memory: np.ndarray, name: str, mask: Any = 0) -> np.ndarray:
        (q, bq), (k, bk), (v, bv), (o, bo) = (self.weights[name][kind] for kind in "qkvo")
        queries, keys, values = x @ q + bq, memory @ k + bk, memory @ v + bv
        size, heads = WIDTH // HEADS, []
        for h in range(HEADS):
            own = slice(h * size, (h + 1) * size)
            scores = queries[:, own] @ keys[:, own].T / np.sqrt(size) + mask
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(weights / weights.sum(-1, keepdims=True) @ values[:, own])
        return np.concatenate(heads, 1) @ o + bo

    def _feed_forward(self, x: np.ndarray, name: str) -> np.ndarray:
        (w1, b1), (w2, b2) = (self.weights[f"{name}.ffn"][kind] for kind in "12")
        hidden = x @ w1 + b1
        hidden = hidden / (1 + np.exp(-hidden)) if self.swish else np.maximum(hidden, 0)
        return hidden @ w2 + b2


def random_weights(
    num_ids: int,
    target_ids: int | None = None,
    *,
    pre_norm: bool,
    shared: bool,
    softmax_bias: bool,
) -> dict[str, Any]:
    """Return weights, drawn; `shared` are all three embeddings."""
    target_ids = target_ids or num_ids
    rng = np.random.default_rng(5)

    def array(*shape: int, mean: float = 0) -> np.ndarray:
        return rng.normal(mean, 0.4, shape).astype(np.float32)

    w: dict[str, Any] = {"source": array(num_ids, WIDTH)}
    for name in ("target", "softmax"):
        w[name] = w["source"] if shared else array(target_ids, WIDTH)
    if softmax_bias:
        w["softmax_bias"] = array(target_ids)
    for side, parts in _PARTS.items():
        norms = [side] if pre_norm else []
        for n in range(LAYERS):
            for part in parts:
                name = f"{side}.{n}.{part}"
                w[name] = {kind: (array(WIDTH, WIDTH), array(WIDTH)) for kind in "qkvo"}
                norms.append(name)
            name = f"{side}.{n}.ffn"
            w[name] = {
                "1": (array(WIDTH, HIDDEN), array(HIDDEN)),
                "2": (array(HIDDEN, WIDTH), array(WIDTH)),
            }
            norms.append(name)
        w |= {f"{name}_norm": (array(WIDTH, mean=1), array(WIDTH)) for name in norms}
    return w


# OpenNMT-tf

_DESCRIPTION = """
import opennmt

model = lambda: opennmt.models.Transformer(num_layers=2, num_heads={heads}{more})
"""


def write_opennmt_tf(
    folder: pathlib.Path,
    pieces: list[str],
    *,
    pre_norm: bool = True,
    swish: bool = False,
    shared: bool = True,
    softmax_bias: bool = True,
    description: str = "",
    target_pieces: list[str] | None = None,
    **others: np.ndarray,
) -> Model:
    """Write ckpt-7, model_description.py and vocab.txt with `pieces`; return the model.

    Where targets have others, these are in target_vocab.txt. `others` are further arrays of the
    checkpoint, by their names below model/ with "." for "/".
    """
    special = ["<blank>", "<s>", "</s>"]
    vocabularies = {"vocab.txt": [*special, *pieces]}
    if target_pieces:
        vocabularies["target_vocab.txt"] = [*special, *target_pieces]
    weights = random_weights(
        *(len(vocabulary) + 1 for vocabulary in vocabularies.values()),
        pre_norm=pre_norm,
        shared=shared,
        softmax_bias=softmax_bias,
    )
    arrays = {"examples_inputter/features_inputter/embedding": weights["source"]}
    if not shared:
        arrays["examples_inputter/labels_inputter/embedding"] = weights["target"]
        arrays["decoder/output_layer/kernel"] = weights["softmax"].T
    if softmax_bias:
        arrays["decoder/output_layer/bias"] = weights["softmax_bias"]
    place = "input" if pre_norm else "output"
    names = {"self": "self_attention", "cross": "attention/0", "ffn": "ffn"}
    linears = {"q": "linear_queries", "k": "linear_keys", "v": "linear_values"}
    linears |= {"o": "linear_output", "1": "inner", "2": "outer"}
    for name, value in weights.items():
        side, *rest = name.removesuffix("_norm").split(".")
        owner = f"{side}/layers/{rest[0]}/{names[rest[1]]}" if rest else side
        if name.endswith("_norm"):
            norm = f"{owner}/{place}_layer_norm" if rest else f"{side}/layer_norm"
            arrays |= {f"{norm}/gamma": value[0], f"{norm}/beta": value[1]}
        elif rest:
            for kind, (kernel, bias) in value.items():
                linear = f"{owner}/layer/{linears[kind]}"
                arrays |= {f"{linear}/kernel": kernel, f"{linear}/bias": bias}
    arrays |= {name.replace(".", "/"): value for name, value in others.items()}
    end = "/.ATTRIBUTES/VARIABLE_VALUE"
    tensors = {f"model/{name}{end}": value for name, value in arrays.items()}
    slot = f"model/decoder/layer_norm/gamma/.OPTIMIZER_SLOT/optimizer/m{end}"
    tensors |= {f"optimizer/iter{end}": np.int64(7), slot: np.ones([WIDTH], np.float32)}
    golden_numbers.write_tensors(folder / "ckpt-7", tensors)
    more = ", ffn_activation=tf.nn.swish" if swish else ""
    (folder / "model_description.py").write_text(
        description or _DESCRIPTION.format(heads=HEADS, more=more)
    )
    for name, vocabulary in vocabularies.items():
        (folder / name).write_text("".join(f"{piece}\n" for piece in vocabulary))
    return Model(weights, pre_norm, swish, epsilon=1e-3, first_position=1, start=1)


# fairseq

ARGUMENTS = {
    "arch": "transformer",
    "task": "translation",
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "activation_fn": "relu",
    "dropout": 0.3,
    "activation_dropout": 0.0,
    "adam_betas": "(0.9, 0.98)",
    "lr_scheduler": "inverse_sqrt",
    "lr": [0.0005],
    "warmup_updates": 4000,
    "max_tokens": 3584,
    "update_freq": [2],
}


def write_fairseq(
    folder: pathlib.Path,
    pieces: list[str],
    *,
    pre_norm: bool = False,
    swish: bool = False,
    shared: bool = True,
    older: bool = False,
    target_pieces: list[str] | None = None,
    others: dict[str, Any] | None = None,
    **arguments: Any,
) -> Model:
    """Write model.pt (see `load_fairseq`) and dict.txt with `pieces`; return the model.

    Args:
      older: as of 2018: all arguments in one Namespace, other names of norms, queries, keys and
        values as one.
      target_pieces: where targets have others: then the files are dict.en.txt and dict.de.txt.
      others: further arrays of the checkpoint.
      arguments: in place of ARGUMENTS.
    """
    dictionaries = {"dict.txt": pieces}
    if target_pieces:
        dictionaries = {"dict.en.txt": pieces, "dict.de.txt": target_pieces}
        arguments |= {"source_lang": "en", "target_lang": "de"}
    weights = random_weights(
        *(len(side) + 4 for side in dictionaries.values()),
        pre_norm=pre_norm,
        shared=shared,
        softmax_bias=False,
    )
    arrays: dict[str, Any] = {
        "encoder.version": np.ones([1], np.float32),
        "encoder.embed_tokens.weight": weights["source"],
        "decoder.embed_tokens.weight": weights["target"],
    }
    if not older:
        arrays["decoder.output_projection.weight"] = weights["softmax"]
    elif not shared:
        arrays["decoder.embed_out"] = weights["softmax"]
    for name, value in weights.items():
        side, *rest = name.removesuffix("_norm").split(".")
        if name.endswith("_norm"):
            norm = _fairseq_norm(side, rest, older=older)
            arrays |= {f"{norm}.weight": value[0], f"{norm}.bias": value[1]}
        elif rest and rest[1] == "ffn":
            for kind, (kernel, bias) in value.items():
                linear = f"{side}.layers.{rest[0]}.fc{kind}"
                arrays |= {f"{linear}.weight": kernel.T, f"{linear}.bias": bias}
        elif rest:
            part = {"self": "self_attn", "cross": "encoder_attn"}[rest[1]]
            owner = f"{side}.layers.{rest[0]}.{part}"
            out = {"out": value["o"]}
            if older:
                kernels, biases = zip(*(value[kind] for kind in "qkv"))
                arrays[f"{owner}.in_proj_weight"] = np.concatenate([k.T for k in kernels])
                arrays[f"{owner}.in_proj_bias"] = np.concatenate(biases)
            else:
                out |= {kind: value[kind] for kind in "qkv"}
            for kind, (kernel, bias) in out.items():
                linear = f"{owner}.{kind}_proj"
                arrays |= {f"{linear}.weight": kernel.T, f"{linear}.bias": bias}
    told = {**ARGUMENTS, "activation_fn": "swish" if swish else "relu", **arguments}
    for side in ("encoder", "decoder"):
        told[f"{side}_normalize_before"] = pre_norm
    content = {
        "args": argparse.Namespace(**told) if older else None,
        "cfg": None if older else _groups(told),
        "model": collections.OrderedDict({**arrays, **(others or {})}),
        "optimizer_history": [{"num_updates": 7}],
        "last_optimizer_state": {"state": {0: {"step": 7}}},
    }
    (folder / "model.pt").write_bytes(pickle.dumps(content))
    for name, side in dictionaries.items():
        (folder / name).write_text("".join(f"{piece} 5\n" for piece in side))
    return Model(weights, pre_norm, swish, epsilon=1e-5, first_position=2, start=2)


def _groups(told: dict[str, Any]) -> dict[str, Any]:
    """Return arguments as they have been kept since 2021: the model's as a Namespace."""
    group = {"_name": "inverse_sqrt", "warmup_updates": told.pop("warmup_updates")}
    told.pop("lr_scheduler")
    return {
        "model": argparse.Namespace(**{n: v for n, v in told.items() if n != "max_tokens"}),
        "dataset": {"max_tokens": told["max_tokens"]},
        "lr_scheduler": group,
        "task": {"_name": told["task"]},
    }


def _fairseq_norm(side: str, rest: list[str], *, older: bool) -> str:
    if not rest:
        return f"{side}.layer_norm"
    order = (*_PARTS[side], "ffn")
    names = {"self": "self_attn_layer_norm", "cross": "encoder_attn_layer_norm"}
    names["ffn"] = "final_layer_norm"
    own = f"layer_norms.{order.index(rest[1])}" if older else names[rest[1]]
    return f"{side}.layers.{rest[0]}.{own}"


# What PyTorch reads of a checkpoint, without PyTorch


def load_fairseq(path: pathlib.Path) -> dict[str, Any]:
    """Return what `torch_checkpoint.load` does of the file that torch.save would have made."""
    return pickle.loads(path.read_bytes())


def read_fairseq(folder: pathlib.Path, **flags: Any) -> imported.Imported:
    """Return what fairseq.read makes of `write_fairseq`'s files."""
    with unittest.mock.patch.object(torch_checkpoint, "load", load_fairseq):
        return fairseq.read(folder, **flags)


class Call:
    """Pickled as a call of a function."""

    def __init__(self, *call: Any):
        self._call = call

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call[0], self._call[1:]
