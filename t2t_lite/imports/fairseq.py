"""Transformers of fairseq: checkpoint_best.pt with its dict.txt.

Settings stand in the checkpoint: as an argparse.Namespace (`args`), or by groups (`cfg`).
Ids are moved: fairseq has <s>, <pad>, </s>, <unk> at 0 to 3.
Its decoder begins with </s>, whose embedding becomes a vector of its own here; its positions begin
at 2, after the number of <pad>.
"""

import argparse
import math
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from t2t_lite import config, errors
from t2t_lite.imports import conversion, imported, piece_files, torch_checkpoint

_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
NAMES = conversion.Names(
    layer=r"(encoder|decoder)\.layers\.(\d{1,4})\.(.+)",
    in_layer={
        r"(self_attn|encoder_attn|final)_layer_norm\.weight": "{0}_norm/scale",
        r"(self_attn|encoder_attn|final)_layer_norm\.bias": "{0}_norm/bias",
        r"fc([12])\.(weight|bias)": "feed_forward/{1}_{0}",
        r"(self_attn|encoder_attn)\.(q|k|v|out)_proj\.(weight|bias)": "{0}/{2}/{1}",
    },
    elsewhere={
        r"encoder\.embed_tokens\.weight": "source_embedding/matrix",
        r"decoder\.embed_tokens\.weight": "embedding/matrix",
        r"decoder\.(?:output_projection\.weight|embed_out)": "softmax/matrix",
        r"(encoder|decoder)\.layer_norm\.weight": "{0}_norm/scale",
        r"(encoder|decoder)\.layer_norm\.bias": "{0}_norm/bias",
    },
    words={
        "self_attn": "self_attention",
        "encoder_attn": "cross_attention",
        "final": "feed_forward",
        "weight": "kernel",
        "out": "o",
    },
    other_parts={
        "embed_positions": "learned positions",
        "lstm": "an RNN",
        "conv": "a convolution",
        "adaptive": "an adaptive softmax",
        "layernorm_embedding": "a norm of the embeddings",
        "quant": "a quantized model",
    },
)
# Norms' names before 2018's end, by their numbers.
_OLDER_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}
# Buffers, which the model computes.
_COMPUTED = re.compile(
    r"^(encoder|decoder)\.(version|embed_positions\.(_float_tensor|weights)|_future_mask)$"
)
# Settings of which a Transformer here has only these values: what others mean is named.
_ONLY = {
    "task": (("translation",), "another task"),
    "no_scale_embedding": ((False,), "embeddings of another scale"),
    "no_token_positional_embeddings": ((False,), "no positions"),
    "encoder_learned_pos": ((False,), "learned positions"),
    "decoder_learned_pos": ((False,), "learned positions"),
    "adaptive_softmax_cutoff": ((None,), "an adaptive softmax"),
    "adaptive_input": ((False,), "adaptive embeddings"),
    "layernorm_embedding": ((False,), "a norm of the embeddings"),
    "no_cross_attention": ((False,), "no attention over the source"),
    "cross_self_attention": ((False,), "attention over source and targets at once"),
    "no_decoder_final_norm": ((False,), "no final norm"),
    "tie_adaptive_weights": ((False,), "an adaptive softmax"),
    "char_embedder_highway_layers": ((None, 0), "embeddings of characters"),
}


def read(
    model: str | os.PathLike[str],
    *,
    vocab: str | None = None,
    problem: str | None = None,
    num_heads: int | None = None,
    vocabulary_threshold: int | None = None,
) -> imported.Imported:
    """Read a model.

    Args:
      model: the .pt, or a folder with checkpoint_best.pt, or else checkpoint_last.pt.
      vocab: dict.txt and what cuts texts, "dict.de.txt,codes" or "dict.txt,spm.model", or two of
        each, the source's first; default: those beside the model or in the training's data.
      problem: what it has learnt.
      num_heads: where the checkpoint's settings do not tell.
      vocabulary_threshold: subword-nmt's.

    Raises UserError for what is missing, damaged, or no Transformer of the kinds that are here.
    """
    path = _model_path(pathlib.Path(model))
    content = torch_checkpoint.load(path)
    settings = _settings(content)
    conversion.refuse(settings, _ONLY)
    folders = [path.parent]
    if isinstance(settings.get("data"), str):
        folders.append(pathlib.Path(settings["data"].partition(":")[0]))
    languages = [settings.get(f"{side}_lang") for side in ("source", "target")]
    names = [f"dict.{language}.txt" for language in languages if isinstance(language, str)]
    files = piece_files.find(vocab, folders, dictionaries="dict*.txt", names=names)
    pieces = piece_files.pieces(files.dictionaries, _dictionary)
    sides = conversion.sides(pieces, pad="<pad>", eos="</s>", unk="<unk>")
    weights = convert(conversion.floats(_present_names(content["model"])), sides)
    return imported.Imported(
        hparams=_to_hparams(weights, settings, sides, num_heads),
        weights=weights,
        vocabulary_name=files.name,
        vocabulary=files.joined(
            sides.source.pieces, sides.target.pieces, threshold=vocabulary_threshold
        ),
        vocab_size=len(sides.target.pieces),
        problem=problem or "parallel_text",
        hparams_set=str(settings.get("arch") or "fairseq"),
        step=_step(content),
        remarks=[
            *([] if settings else [conversion.assumed("the checkpoint has no settings")]),
            *files.remarks,
        ],
    )


def convert(arrays: Mapping[str, np.ndarray], sides: conversion.Sides) -> dict[str, np.ndarray]:
    """Map {fairseq's name since 2019: array} to {name in `Transformer.named_variables`: array}.

    Raises UserError for a name that is not part of a Transformer, and for other vocabularies than
    `sides`.
    """
    renamed = NAMES.renamed(arrays)
    weights = {name: value.T if "/kernel" in name else value for name, value in renamed.items()}
    return conversion.completed(weights, sides, start="</s>")


def _present_names(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays under the names that fairseq gives them since 2019, without buffers."""
    renamed: dict[str, np.ndarray] = {}
    for name, value in arrays.items():
        joined = re.fullmatch(r"(.+)\.in_proj_(weight|bias)", name)
        norm = re.fullmatch(r"((encoder|decoder)\.layers\.\d+)\.layer_norms\.(\d)\.(\w+)", name)
        if joined and len(value) % 3 == 0:  # queries, keys and values, one under the other
            for kind, part in zip("qkv", np.split(value, 3)):
                renamed[f"{joined[1]}.{kind}_proj.{joined[2]}"] = part
        elif norm and int(norm[3]) < len(_OLDER_NORMS[norm[2]]):
            renamed[f"{norm[1]}.{_OLDER_NORMS[norm[2]][int(norm[3])]}.{norm[4]}"] = value
        elif not _COMPUTED.match(name):
            renamed[name] = value
    return renamed


def _to_hparams(
    weights: Mapping[str, np.ndarray],
    settings: Mapping[str, Any],
    sides: conversion.Sides,
    num_heads: int | None,
) -> config.HParams:
    return conversion.hparams(
        weights,
        num_heads=conversion.same_heads(settings, num_heads),
        parts=dict(
            source_vocab_size=sides.source_vocab_size,
            activation=conversion.activation(settings.get("activation_fn", "relu")),
            first_position=2,
            norm_epsilon=1e-5,
        ),
        told={
            "d_model": settings.get("encoder_embed_dim"),
            "d_ff": settings.get("encoder_ffn_embed_dim"),
            "num_encoder_layers": settings.get("encoder_layers"),
            "num_decoder_layers": settings.get("decoder_layers"),
        },
        pre_norm=_is_pre_norm(weights, settings),
        **_training(settings, weights["embedding/matrix"].shape[1]),
    )


def _is_pre_norm(weights: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> bool:
    has_norm = {f"{side}_norm/scale" in weights for side in ("encoder", "decoder")}
    told = {
        settings.get(f"{side}_normalize_before", min(has_norm)) for side in ("encoder", "decoder")
    }
    if len(has_norm) > 1 or told != has_norm:
        raise errors.UserError(
            "the model cannot be imported: norms come before sub-layers on one side, or without a "
            "final norm"
        )
    return has_norm.pop()


def _training(settings: Mapping[str, Any], d_model: int) -> dict[str, Any]:
    """Return what there is here too of how it was trained, as far as it is told."""
    same = {
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "relu_dropout": "activation_dropout",
        "label_smoothing": "label_smoothing",
        "adam_epsilon": "adam_eps",
        "warmup_steps": "warmup_updates",
        "batch_tokens": "max_tokens",
    }
    found = {ours: settings[theirs] for ours, theirs in same.items() if theirs in settings}
    betas = re.findall(r"[\d.]+", str(settings.get("adam_betas", "")))
    if len(betas) == 2:
        found |= {"adam_beta1": float(betas[0]), "adam_beta2": float(betas[1])}
    rate, warmup = _number(settings.get("lr")), _number(settings.get("warmup_updates"))
    if settings.get("lr_scheduler") == "inverse_sqrt" and rate and warmup:
        # The rate at its peak is scale (d_model warmup)^-0.5.
        found["learning_rate_scale"] = rate * (d_model * warmup) ** 0.5
    tokens, frequency = _number(settings.get("max_tokens")), _number(settings.get("update_freq"))
    if tokens and frequency:
        found["batch_tokens"] = int(tokens * frequency)
    return {name: value for name, value in found.items() if imported.is_allowed(name, value)}


def _number(value: Any) -> float:
    """Return a positive number, the first one of a list; 0 where it is none."""
    value = value[0] if isinstance(value, list) and value else value
    is_number = isinstance(value, int | float) and math.isfinite(value) and value > 0
    return value if is_number else 0


def _model_path(path: pathlib.Path) -> pathlib.Path:
    if not path.is_dir():
        return path
    for name in ("checkpoint_best.pt", "checkpoint_last.pt"):
        if (path / name).is_file():
            return path / name
    found = sorted(path.glob("*.pt"))
    if len(found) != 1:
        raise errors.UserError(f"{path} holds {len(found)} models *.pt: give one as --model")
    return found[0]


def _settings(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings by name, whatever their group."""
    groups = _mapping(content.get("cfg"))
    settings: dict[str, Any] = {}
    for name in ("optimization", "dataset", "optimizer", "lr_scheduler", "criterion", "task"):
        group = _mapping(groups.get(name))
        settings |= group
        if isinstance(group.get("_name"), str):
            settings[name] = group["_name"]
    model = dict(_mapping(groups.get("model")))
    for side in ("encoder", "decoder"):
        nested = _mapping(model.pop(side, None))
        model |= {f"{side}_{name}": value for name, value in nested.items()}
    settings |= {**model, **_mapping(content.get("args"))}
    if "_name" in model:
        settings.setdefault("arch", model["_name"])
    return settings


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return settings by name, of a dict or of an argparse.Namespace."""
    value = vars(value) if isinstance(value, argparse.Namespace) else value
    return value if isinstance(value, dict) else {}


def _step(content: Mapping[str, Any]) -> int:
    history = content.get("optimizer_history")
    last = history[-1] if isinstance(history, list) and history else {}
    step = last.get("num_updates") if isinstance(last, dict) else None
    return step if type(step) is int and 0 <= step < 10**12 else 0


def _dictionary(path: pathlib.Path, lines: Sequence[str]) -> list[str]:
    """Return the pieces by fairseq's numbers: dict.txt holds "piece count" a line."""
    pieces: dict[str, None] = dict.fromkeys(_SPECIAL)
    for line in lines:
        piece, _, rest = line.rstrip().rpartition(" ")
        if rest == "#fairseq:overwrite":
            piece, _, rest = piece.rpartition(" ")
        elif piece in pieces:
            raise errors.UserError(f"{path} has {piece!r:.40} twice")
        if not rest.isdecimal() or not piece:
            raise errors.UserError(f"{path}: a line is no 'piece count': {line!r:.60}")
        pieces.setdefault(piece)
    return list(pieces)
