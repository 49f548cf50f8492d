"""Transformers of tensor2tensor 1.x: a TensorFlow 1 checkpoint, its hparams.json or flags.txt.

What tensor2tensor keeps apart is joined: queries, keys and values, and the shards of its embedding.
The values are the same. Sizes are those of the weights; only the number of heads must be told.
"""

import json
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_lite import errors
from t2t_lite.imports import conversion, imported, tensorflow_checkpoint
from t2t_lite.run import checkpoint
from t2t_lite.text import any_vocabulary, t2t_vocabulary

_TARGET_SPACE = "target_space_embedding/kernel"
_NORM = r"layer_\w+/layer_norm/layer_norm_(scale|bias)"
_NAMES = conversion.Names(
    layer=r"(?:.*/)?(encoder|decoder)/layer_(\d+)/(.+)",
    in_layer={
        f"(self_attention|encdec_attention|ffn)/{_NORM}": "{0}_norm/{1}",
        r"(ffn)/(?:conv_hidden_relu/)?conv([12])(?:_single)?/(kernel|bias)": "{0}/{2}_{1}",
        "(self_attention|encdec_attention)/(?:multihead_attention/)?"
        "(q|k|v|output_transform)/kernel": "{0}/kernel/{1}",
    },
    elsewhere={
        f"(?:.*/)?(encoder|decoder)/{_NORM}": "{0}_norm/{1}",
        f"(?:.*/)?{_TARGET_SPACE}": "source/vector",
    },
    words={"encdec_attention": "cross_attention", "ffn": "feed_forward", "output_transform": "o"},
    other_parts={"relative": "relative positions", "moe": "mixture of experts", "lstm": "an RNN"},
)
_SHARD = re.compile(r"symbol_modality_\w+/(shared|input_emb|target_emb|softmax)/weights_(\d+)$")
_MATRICES = {
    "shared": "embedding/matrix",
    "input_emb": "source_embedding/matrix",
    "target_emb": "embedding/matrix",
    "softmax": "softmax/matrix",
}

# Not the model's: optimizers, counters, means of losses.
_TRAINING = re.compile(
    r"^(training|OptimizeLoss|losses_avg|train_stats|global_step|beta\d_power)(/|$)|"
    r"^(problem_\d+_steps|learning_rate|loss_scale|good_steps)$|"
    r"/(Adam|Adam_1|Momentum|ExponentialMovingAverage|\w*_slot_\w+|Adafactor\w*)$"
)

# Hyperparameters of which a Transformer here has only these values: what others mean is named.
_ONLY = {
    "self_attention_type": (("dot_product",), "attention of another kind"),
    "ffn_layer": (("dense_relu_dense", "conv_hidden_relu"), "feed-forward of another kind"),
    "pos": (("timing",), "positions of another kind"),
    "norm_type": (("layer",), "normalisation of another kind"),
    "multiply_embedding_mode": (("sqrt_depth",), "embeddings of another scale"),
    "layer_preprocess_sequence": (("n", "none", ""), "another order of norms and residuals"),
    "layer_postprocess_sequence": (("da", "dan"), "another order of norms and residuals"),
    "prepend_mode": (("none",), "inputs in front of targets"),
    "norm_epsilon": ((1e-6,), "another epsilon of the norms"),
    "proximity_bias": ((False, 0), "a bias to near positions"),
    "unidirectional_encoder": ((False, 0), "an encoder that sees one side"),
    "causal_decoder_self_attention": ((True, 1), "a decoder that sees what comes"),
    "attention_variables_3d": ((False, 0), "attention weights of three dimensions"),
    "hard_attention_k": ((0,), "hard attention"),
    "num_area_layers": ((0,), "area attention"),
}

# Heads of its hyperparameter sets, where there is no hparams.json.
_HEADS = {
    "transformer_h1": 1,
    "transformer_test": 2,
    "transformer_(tiny|small|h4)": 4,
    "transformer_base(|_v1|_v2|_v3|_single_gpu)": 8,
    "transformer_(l2|l4|l8|l10|ff1024|ff4096|k128|k256|dr0|dr2|ls0|ls2|hs256|hs1024)": 8,
    "transformer_(parsing_base|tpu|big_enfr_tpu)": 8,
    "transformer_big(|_single_gpu|_dr1|_dr2|_enfr|_tpu)": 16,
    "transformer_(h16|parsing_big)": 16,
    "transformer_h32": 32,
}


def read(
    model: str | os.PathLike[str],
    *,
    vocab: str | os.PathLike[str] | None = None,
    problem: str | None = None,
    num_heads: int | None = None,
    target_space: int | None = None,
) -> imported.Imported:
    """Read a model.

    Args:
      model: a checkpoint's prefix (".../model.ckpt-250000"), or a folder, whose newest is taken.
      vocab: its vocabulary; default: the only vocab.* beside the checkpoint, else in its data_dir.
      problem: what it has learnt; default: that of its flags.
      num_heads: where neither hparams.json nor a known hparams_set tells.
      target_space: the number of its target space; default: the one that was trained, or 0.

    Raises UserError for what is missing, damaged, or no Transformer of the kinds that are here.
    """
    prefix = tensorflow_checkpoint.prefix(pathlib.Path(model))
    flags = _flags(prefix.parent)
    values = {**_overrides(flags.get("hparams", "")), **_hparams(prefix.parent)}
    kind = flags.get("model", "transformer")
    if kind != "transformer":
        raise errors.UserError(f"a model {kind} cannot be imported, only a transformer")
    conversion.refuse(values, _ONLY)
    tensors = checkpoint.tensors(str(prefix), _is_wanted)
    own = {name: value for name, value in tensors.items() if not _TRAINING.search(name)}
    weights = convert(conversion.floats(own), target_space=_target_space(tensors, target_space))
    path = _vocabulary_path(vocab, prefix.parent, flags)
    vocabulary = any_vocabulary.load(path)
    kinds = t2t_vocabulary.SubwordVocabulary, t2t_vocabulary.TokenVocabulary
    if not isinstance(vocabulary, kinds):
        raise errors.UserError(f"{path} is not tensor2tensor's vocabulary")
    rows = _one_vocabulary(weights)
    if rows < vocabulary.size:
        raise errors.UserError(
            f"{path} has {vocabulary.size} entries, more than the embedding of {prefix} has rows, "
            f"{rows}: give the vocabulary that it was trained with as --vocab"
        )
    hparams_set = flags.get("hparams_set", "transformer")
    heads = num_heads or values.get("num_heads") or _heads_of_set(hparams_set)
    if not isinstance(heads, int) or heads < 1:
        raise errors.UserError(
            f"how many heads has {prefix}? It has no hparams.json with num_heads beside it: copy "
            "that file there, or give --num_heads"
        )
    layers = values.get("num_hidden_layers")
    is_known = "num_hidden_layers" in values or _heads_of_set(hparams_set)
    return imported.Imported(
        hparams=conversion.hparams(
            weights,
            num_heads=heads,
            parts={},
            told={
                "num_heads": values.get("num_heads"),
                "d_model": values.get("hidden_size"),
                "d_ff": values.get("filter_size"),
                "num_encoder_layers": values.get("num_encoder_layers") or layers,
                "num_decoder_layers": values.get("num_decoder_layers") or layers,
            },
            pre_norm=_is_pre_norm(weights, values),
            vocab_multiple=1 if rows == vocabulary.size else rows,
            extra_length=100,
            **_training(values),
        ),
        weights=weights,
        vocabulary_name=path.name,
        vocabulary=vocabulary.model_bytes,
        vocab_size=vocabulary.size,
        problem=problem or flags.get("problem") or flags.get("problems") or "parallel_text",
        hparams_set=hparams_set,
        step=_step(prefix, tensors),
        remarks=[]
        if is_known
        else [conversion.assumed("no hparams.json is beside the checkpoint")],
    )


def convert(tensors: Mapping[str, np.ndarray], *, target_space: int = 0) -> dict[str, np.ndarray]:
    """Map {tensor2tensor's name: array} to {name in `Transformer.named_variables`: array}.

    Works for values, gradients and moments alike. Raises UserError for a name that is not part of a
    Transformer.
    """
    shards: dict[str, dict[int, np.ndarray]] = {}
    others: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        shard = _SHARD.search(name)
        if not shard:
            others[name] = _matrix(value)
            continue
        same = shards.setdefault(_MATRICES[shard[1]], {})
        if int(shard[2]) in same:
            raise errors.UserError(
                "a model with a vocabulary for each side cannot be imported: it has several "
                f"matrices {shard[1]}"
            )
        same[int(shard[2])] = value
    weights = conversion.fused(_NAMES.renamed(others))
    if "source/vector" in weights:
        matrix = weights["source/vector"]
        if not (matrix.ndim == 2 and 0 <= target_space < len(matrix)):
            raise errors.UserError(
                f"--target_space={target_space} is none of {_TARGET_SPACE} with the shape "
                f"{matrix.shape}"
            )
        weights["source/vector"] = matrix[target_space]
    for name, parts in shards.items():
        try:  # shards are rows in numeric order: weights_2 comes before weights_10
            weights[name] = np.concatenate([parts[i] for i in sorted(parts)])
        except ValueError as error:
            raise errors.UserError(f"the parts of {name} do not fit together: {error}") from error
    if "softmax/matrix" in weights and "source_embedding/matrix" not in weights:
        # One matrix for both sides (shared_embedding), another for the softmax.
        weights["source_embedding/matrix"] = weights.get("embedding/matrix", np.zeros([0, 0]))
    return weights


def _matrix(value: np.ndarray) -> np.ndarray:
    """Return a kernel [1, ..., I, O] of a convolution of width one as the matrix that it is."""
    leading = value.shape[:-2]
    return value.reshape(value.shape[-2:]) if leading and set(leading) == {1} else value


def _one_vocabulary(weights: Mapping[str, np.ndarray]) -> int:
    """Return the rows of the embeddings; UserError where there are none, or several numbers."""
    rows = {name: weights[name].shape[0] for name in set(_MATRICES.values()) & weights.keys()}
    if not rows:
        raise errors.UserError("the model cannot be imported: it has no embedding of symbols")
    if len(set(rows.values())) > 1:
        raise errors.UserError(
            "a model with a vocabulary for each side cannot be imported: its matrices have "
            f"{', '.join(map(str, sorted(rows.values())))} rows"
        )
    return next(iter(rows.values()))


def _step(prefix: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> int:
    step = tensors.get("global_step")
    if step is not None and step.ndim == 0 and step.dtype.kind in "iu" and step >= 0:
        return int(step)
    return tensorflow_checkpoint.number(prefix)


def _is_wanted(name: str) -> bool:
    """Return whether a tensor is the model's, its step, or a moment of its target space."""
    moment = re.search(rf"{_TARGET_SPACE}/Adam(_1)?$", name)
    return not _TRAINING.search(name) or name == "global_step" or moment is not None


def _target_space(tensors: Mapping[str, np.ndarray], given: int | None) -> int:
    """Return the row of the target space: the only one that has ever had a gradient."""
    if given is not None:
        return given
    for name, moments in tensors.items():
        if re.search(rf"{_TARGET_SPACE}/Adam(_1)?$", name) and moments.ndim == 2:
            trained = np.flatnonzero(np.abs(moments).sum(axis=1))
            if len(trained) == 1:
                return int(trained[0])
    return 0


def _flags(folder: pathlib.Path) -> dict[str, str]:
    """Return the flags of the training, {} where they are not there."""
    flags = {}
    for name in ("flags.txt", "flags_t2t.txt"):
        if (folder / name).is_file():
            for line in (folder / name).read_text("utf-8", errors="replace").splitlines():
                key, _, value = line.removeprefix("--").partition("=")
                flags[key] = value
    return {key: value for key, value in flags.items() if value}


def _hparams(folder: pathlib.Path) -> dict[str, Any]:
    """Return the values of hparams.json, {} where it is not there."""
    path = folder / "hparams.json"
    if not path.is_file():
        return {}
    try:
        values = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise errors.UserError(f"{path} is damaged: {error}") from error
    if not isinstance(values, dict):
        raise errors.UserError(f"{path} is damaged: it holds no values by name")
    return values


def _overrides(flag: str) -> dict[str, Any]:
    """Return what the training's flag --hparams, name=value,..., changed of its set."""
    found: dict[str, Any] = {}
    for name, value in re.findall(r"(\w+)=([^,\[]+)", flag):
        try:
            found[name] = json.loads(value.lower())
        except ValueError:
            found[name] = value
    return found


def _heads_of_set(hparams_set: str) -> int | None:
    return next((heads for name, heads in _HEADS.items() if re.fullmatch(name, hparams_set)), None)


def _is_pre_norm(weights: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> bool:
    pre_norm = "decoder_norm/scale" in weights
    sequence = values.get("layer_preprocess_sequence")
    if sequence is not None and pre_norm != (sequence == "n"):
        raise errors.UserError(
            "the model cannot be imported: it has another order of norms and residuals "
            f"(layer_preprocess_sequence={sequence!r})"
        )
    return pre_norm


def _training(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what there is here too of how it was trained."""
    same = {
        "dropout": "layer_prepostprocess_dropout",
        "attention_dropout": "attention_dropout",
        "relu_dropout": "relu_dropout",
        "label_smoothing": "label_smoothing",
        "adam_beta1": "optimizer_adam_beta1",
        "adam_beta2": "optimizer_adam_beta2",
        "adam_epsilon": "optimizer_adam_epsilon",
        "warmup_steps": "learning_rate_warmup_steps",
        "batch_tokens": "batch_size",
        "max_length": "max_length",
    }
    found = {ours: values[theirs] for ours, theirs in same.items() if theirs in values}
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise errors.UserError(f"its settings: {same[name]} cannot be {value!r:.60}")
    # Its max_length of 0 is no limit.
    found = {name: value for name, value in found.items() if value or name != "max_length"}
    return {**found, **_learning_rate(values)}


def _learning_rate(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the factor of the paper's learning rate, where the schedule is the paper's."""
    schedule = str(values.get("learning_rate_schedule", "legacy"))
    if schedule == "legacy" and values.get("learning_rate_decay_scheme") == "noam":
        # Its formula is 5000 d_model^-0.5 ..., and it multiplies Adam's rates by 0.002.
        factor, name = 5000 * 0.002, "learning_rate"
    elif "rsqrt_decay" in schedule and "rsqrt_hidden_size" in schedule:
        factor, name = 1.0, "learning_rate_constant"
    else:
        return {}
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return {}
    return {"learning_rate_scale": factor * value}


def _vocabulary_path(
    given: str | os.PathLike[str] | None, folder: pathlib.Path, flags: Mapping[str, str]
) -> pathlib.Path:
    """Return the vocabulary's path, as given or as it is found."""
    if given is not None:
        return pathlib.Path(given)
    folders = [folder]
    if flags.get("data_dir"):
        folders.append(pathlib.Path(os.path.expanduser(flags["data_dir"])))
    # A copy beside the checkpoint comes before those of the data.
    found = next(filter(None, (sorted(place.glob("vocab.*")) for place in folders)), [])
    if len(found) != 1:
        raise errors.UserError(
            f"give the vocabulary as --vocab: it is the file vocab.* of the training's data_dir "
            f"{flags.get('data_dir', '')}; beside the checkpoint there are {len(found)}"
        )
    return found[0]
