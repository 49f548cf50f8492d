"""Transformers of OpenNMT-tf 2.x: an object checkpoint, with its vocabulary.

The model's Python file, which lies beside the checkpoints as model_description.py, tells the number
of heads; it is parsed, never executed. Ids are moved: OpenNMT-tf has <blank>, <s>, </s> at 0 to 2
and <unk> after all others. Its decoder begins with <s>, whose embedding becomes a vector of its own
here; its encoder sees no </s>; its positions begin at 1.
"""

import ast
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from t2t_lite import config, errors
from t2t_lite.imports import conversion, imported, piece_files, tensorflow_checkpoint
from t2t_lite.run import checkpoint

_BLANK, _START, _END, _UNK = "<blank>", "<s>", "</s>", "<unk>"
_VARIABLE = re.compile(r"^model/(.+)/\.ATTRIBUTES/VARIABLE_VALUE$")
_NAMES = conversion.Names(
    layer=r"(encoder|decoder)/layers/(\d{1,4})/(.+)",
    in_layer={
        "(self_attention|attention/0|ffn)/(?:in|out)put_layer_norm/(gamma|beta)": "{0}_norm/{1}",
        "(ffn)/layer/(inner|outer)/(kernel|bias)": "{0}/{2}_{1}",
        "(self_attention|attention/0)/layer/linear_(queries|keys|values|output)/(kernel|bias)": (
            "{0}/{2}/{1}"
        ),
    },
    elsewhere={
        "examples_inputter/features_inputter/embedding": "source_embedding/matrix",
        "examples_inputter/labels_inputter/embedding": "embedding/matrix",
        "decoder/output_layer/kernel": "softmax/matrix",
        "decoder/output_layer/bias": conversion.LOGITS_BIAS,
        "(encoder|decoder)/layer_norm/(gamma|beta)": "{0}_norm/{1}",
    },
    words={
        "attention/0": "cross_attention",
        "ffn": "feed_forward",
        "gamma": "scale",
        "beta": "bias",
        "inner": "1",
        "outer": "2",
        "queries": "q",
        "keys": "k",
        "values": "v",
        "output": "o",
    },
    other_parts={
        "relative_position": "relative positions",
        "position_embedding": "learned positions",
        "attention/1": "several sources",
        "lstm": "an RNN",
        "cell": "an RNN",
        "conv": "a convolution",
        "inputters": "several inputs",
    },
)

# What the catalog's models are built with, where it is not the class's default.
_BASE = {"num_layers": 6, "num_units": 512, "num_heads": 8, "ffn_inner_dim": 2048}
_BIG = {"num_layers": 6, "num_units": 1024, "num_heads": 16, "ffn_inner_dim": 4096}
_CATALOG: dict[str, dict[str, Any]] = {
    "Transformer": _BASE,
    "TransformerBase": _BASE,
    "TransformerBaseSharedEmbeddings": _BASE,
    "TransformerBig": _BIG,
    "TransformerBigSharedEmbeddings": _BIG,
    "ScalingNmtEnDe": {**_BIG, "dropout": 0.3, "ffn_dropout": 0},
    "ScalingNmtEnFr": {**_BIG, "dropout": 0.1, "ffn_dropout": 0},
    "TransformerTiny": {"num_layers": 2, "num_units": 64, "num_heads": 2, "ffn_inner_dim": 64},
}
# Its own defaults.
_DROPOUT = {"dropout": "dropout", "attention_dropout": "attention_dropout"}
_DROPOUT |= {"relu_dropout": "ffn_dropout"}


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
      model: a checkpoint's prefix (".../ckpt-50000"), or a folder, whose newest is taken.
      vocab: the vocabulary and what cuts texts, "vocab.txt,spm.model", or two of each, the source's
        first; default: those beside it.
      problem: what it has learnt.
      num_heads: where model_description.py does not tell.
      vocabulary_threshold: subword-nmt's.

    Raises UserError for what is missing, damaged, or no Transformer of the kinds that are here.
    """
    prefix = tensorflow_checkpoint.prefix(pathlib.Path(model))
    settings = _settings(prefix.parent)
    catalog = settings.get("catalog")
    if catalog is not None and catalog not in _CATALOG:
        raise errors.UserError(f"a model {catalog!s:.60} cannot be imported, only a Transformer")
    positions = str(settings.get("position_encoder_class", "SinusoidalPositionEncoder"))
    if positions.rpartition(".")[2] != "SinusoidalPositionEncoder":
        raise errors.UserError(f"the model cannot be imported: its positions are {positions!r:.60}")
    arrays = _arrays(prefix)
    files = piece_files.find(vocab, [prefix.parent], dictionaries="*vocab*.txt")
    pieces = piece_files.pieces(files.dictionaries, _dictionary)
    sides = conversion.sides(pieces, pad=_BLANK, eos=_END, unk=_UNK)
    weights = convert(arrays, sides)
    return imported.Imported(
        hparams=_to_hparams(weights, settings, sides, num_heads),
        weights=weights,
        vocabulary_name=files.name,
        vocabulary=files.joined(
            sides.source.pieces,
            sides.target.pieces,
            threshold=vocabulary_threshold,
            ascii_space=True,
        ),
        vocab_size=len(sides.target.pieces),
        problem=problem or "parallel_text",
        hparams_set=str(settings.get("catalog", "opennmt_tf")),
        step=tensorflow_checkpoint.number(prefix),
        remarks=[*_remarks(settings), *files.remarks],
    )


def convert(arrays: Mapping[str, np.ndarray], sides: conversion.Sides) -> dict[str, np.ndarray]:
    """Map {OpenNMT-tf's name: array} to {name in `Transformer.named_variables`: array}.

    Args:
      arrays: by their names without "model/" and "/.ATTRIBUTES/VARIABLE_VALUE".
      sides: the vocabularies.

    Raises UserError for a name that is not part of a Transformer, and for another vocabulary.
    """
    weights = _NAMES.renamed(arrays)
    for name in [name for name in weights if re.search(r"attention/kernel/[qkvo]$", name)]:
        # mha_bias=False
        bias = np.zeros(weights[name].shape[-1:], np.float32)
        weights.setdefault(name.replace("/kernel/", "/bias/"), bias)
    return conversion.completed({**weights, **_matrices(weights)}, sides, start=_START)


def _matrices(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return all three matrices; what is one in the model stands once in its checkpoint."""
    given = [
        weights[name] for name in ("embedding/matrix", "source_embedding/matrix") if name in weights
    ]
    if not given or any(matrix.ndim != 2 for matrix in given):
        raise errors.UserError("the model cannot be imported: it has no embedding of words")
    target, source = given[0], given[-1]
    softmax = weights.get("softmax/matrix", target.T)
    if softmax.shape == target.shape[::-1]:
        softmax = softmax.T
    return {
        "embedding/matrix": target,
        "source_embedding/matrix": source,
        "softmax/matrix": softmax,
    }


def _arrays(prefix: pathlib.Path) -> dict[str, np.ndarray]:
    """Return the model's arrays under their short names, as float32."""

    def is_wanted(name: str) -> bool:
        return bool(_VARIABLE.match(name)) and ".OPTIMIZER_SLOT" not in name

    tensors = checkpoint.tensors(str(prefix), is_wanted)
    if not tensors:
        raise errors.UserError(f"{prefix} is not a checkpoint of OpenNMT-tf 2: it has no model/...")
    return conversion.floats({_VARIABLE.sub(r"\1", n): v for n, v in tensors.items()})


def _settings(folder: pathlib.Path) -> dict[str, Any]:
    """Return what model_description.py says: arguments by name as constants or as their text, and
    "catalog", the name of a model of the catalog."""
    path = folder / "model_description.py"
    if not path.is_file():
        return {}
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise errors.UserError(f"{path} is damaged: {error}") from error
    found: dict[str, Any] = {}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        function = ast.unparse(call.func).rpartition(".")[2]
        names = [a.value for a in call.args if isinstance(a, ast.Constant)]
        if function == "get_model_from_catalog" and names:
            found["catalog"] = names[0]
        elif function in _CATALOG and not call.keywords and not call.args:
            found["catalog"] = function
        side = function[-7:].lower()  # "Encoder", "Decoder"
        for keyword in call.keywords:
            if keyword.arg:
                of_side = keyword.arg == "num_layers" and side in ("encoder", "decoder")
                name = f"num_{side}_layers" if of_side else keyword.arg
                try:
                    found[name] = ast.literal_eval(keyword.value)
                except (ValueError, TypeError):
                    found[name] = ast.unparse(keyword.value)
    return {**_CATALOG.get(str(found.get("catalog")), {}), **found}


def _remarks(settings: Mapping[str, Any]) -> list[str]:
    if "num_heads" in settings:
        return []
    return [
        conversion.assumed("no model_description.py beside the checkpoint has the model's settings")
    ]


def _to_hparams(
    weights: Mapping[str, np.ndarray],
    settings: Mapping[str, Any],
    sides: conversion.Sides,
    num_heads: int | None,
) -> config.HParams:
    heads = num_heads or settings.get("num_heads")
    if type(heads) is not int or heads < 1:
        raise errors.UserError(
            "how many heads has the model? It has no model_description.py with num_heads beside "
            "it: copy that file there, or give --num_heads"
        )
    layers = settings.get("num_layers")
    layers = layers if isinstance(layers, tuple | list) and layers else [layers]
    dropout = {ours: settings.get(theirs, 0.1) for ours, theirs in _DROPOUT.items()}
    activation = str(settings.get("ffn_activation", "relu")).rpartition(".")[2]
    return conversion.hparams(
        weights,
        num_heads=heads,
        parts=dict(
            source_vocab_size=sides.source_vocab_size,
            activation=conversion.activation(activation),
            first_position=1,
            source_eos=False,
            norm_epsilon=1e-3,
        ),
        told={
            "num_heads": settings.get("num_heads"),
            "d_model": settings.get("num_units"),
            "d_ff": settings.get("ffn_inner_dim"),
            "num_encoder_layers": settings.get("num_encoder_layers", layers[0]),
            "num_decoder_layers": settings.get("num_decoder_layers", layers[-1]),
        },
        pre_norm="encoder_norm/scale" in weights,
        **{name: value for name, value in dropout.items() if imported.is_allowed(name, value)},
    )


def _dictionary(path: pathlib.Path, lines: Sequence[str]) -> list[str]:
    """Return the pieces by OpenNMT-tf's numbers: a piece a line, and <unk> after them."""
    pieces = list(dict.fromkeys(line.rstrip("\r") for line in lines))
    if not {_BLANK, _START, _END} <= set(pieces):
        raise errors.UserError(
            f"{path} is not a vocabulary of OpenNMT-tf: it lacks {_BLANK}, {_START} or {_END}; "
            "give the one that onmt-build-vocab wrote, not SentencePiece's own"
        )
    return [*pieces, _UNK]
