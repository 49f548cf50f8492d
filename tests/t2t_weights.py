"""Weights under tensor2tensor's variable names, turned into ours.

tensor2tensor keeps q, k and v apart and cuts its embedding into shards; the values are the same.
"""

import re
from collections.abc import Mapping

import numpy as np

_ATTENTION = {"self_attention": "self_attention", "encdec_attention": "cross_attention"}
_FEED_FORWARD = {
    "conv1/kernel": "kernel_1",
    "conv1/bias": "bias_1",
    "conv2/kernel": "kernel_2",
    "conv2/bias": "bias_2",
}
_LAYER = re.compile(r"body/(encoder|decoder)/layer_(\d+)/(\w+)/(.+)$")
_FINAL_NORM = re.compile(r"body/(encoder|decoder)/layer_\w+/layer_norm/layer_norm_(scale|bias)$")
_NORM = re.compile(r"layer_\w+/layer_norm/layer_norm_(scale|bias)$")
_SHARD = re.compile(r"symbol_modality_\w+/shared/weights_(\d+)$")


def convert(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Map {tensor2tensor name: array} to {name in `Transformer.named_variables`: array}.

    Works for values, gradients and optimizer moments alike. Raises ValueError for a name that is
    no part of the Transformer with one shared embedding.
    """
    found: dict[str, np.ndarray] = {}
    shards: dict[int, np.ndarray] = {}
    for name, value in weights.items():
        if shard := _SHARD.search(name):
            shards[int(shard[1])] = value
        elif norm := _FINAL_NORM.search(name):
            found[f"{norm[1]}_norm/{norm[2]}"] = value
        elif layer := _LAYER.search(name):
            found[_layer_name(layer[3], layer[4], prefix=f"{layer[1]}_{layer[2]}")] = value
        else:
            raise ValueError(f"no counterpart of tensor2tensor's variable {name}")
    # Shards are the embedding's rows in numeric order: weights_2 comes before weights_10.
    found["embedding/matrix"] = np.concatenate([shards[i] for i in sorted(shards)])
    return _fuse(found)


def _layer_name(part: str, rest: str, *, prefix: str) -> str:
    if norm := _NORM.match(rest):
        owner = "feed_forward" if part == "ffn" else _ATTENTION[part]
        return f"{prefix}/{owner}_norm/{norm[1]}"
    if part == "ffn":
        return f"{prefix}/feed_forward/{_FEED_FORWARD[rest]}"
    kernel = rest.removeprefix("multihead_attention/").removesuffix("/kernel")
    return f"{prefix}/{_ATTENTION[part]}/{'output' if kernel == 'output_transform' else kernel}"


def _fuse(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Join self-attention's q, k, v into "qkv", and cross-attention's k, v into "kv"."""
    fused = {}
    for name, value in found.items():
        layer, _, kernel = name.rpartition("/")
        if kernel == "q" and layer.endswith("self_attention"):
            parts = [found[f"{layer}/{part}"] for part in "qkv"]
            fused[f"{layer}/qkv"] = np.concatenate(parts, axis=1)
        elif kernel == "k" and layer.endswith("cross_attention"):
            fused[f"{layer}/kv"] = np.concatenate([value, found[f"{layer}/v"]], axis=1)
        elif kernel not in ("k", "v", "q") or (kernel == "q" and layer.endswith("cross_attention")):
            fused[name] = value
    return fused
