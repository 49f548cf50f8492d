"""OPUS-MT's models as Hugging Face has them: transformers' class MarianMTModel.

A folder, or a name on the hub, with config.json, generation_config.json, source.spm, target.spm,
vocab.json (and target_vocab.json where each side has a vocabulary of its own) and the weights as
model.safetensors, tf_model.h5 or pytorch_model.bin. The weights are Marian's under names like
fairseq's. Its positions are the paper's sinusoids, all sines before all cosines; Marian's own, and
so --from=marian, have wavelengths that differ a little.
"""

import json
import os
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import h5py
import ml_dtypes
import numpy as np

from t2t_lite import config, errors
from t2t_lite.imports import (
    conversion,
    fairseq,
    hub,
    imported,
    piece_files,
    torch_checkpoint,
)
from t2t_lite.model import imported as positions
from t2t_lite.text import marian_yaml, piece_vocabulary

_FILES = ("config.json", "source.spm", "target.spm", "vocab.json")
_OPTIONAL = ("generation_config.json", "tokenizer_config.json", "target_vocab.json", "source.bpe")
_PAD, _EOS, _UNK = "<pad>", marian_yaml.EOS, marian_yaml.UNK
# Settings with the only values that are supported, and what any other value would mean.
_ONLY = {
    "model_type": (("marian",), "another kind of model"),
    "normalize_before": ((False,), "another order of norms and residuals"),
    "normalize_embedding": ((False,), "a norm of the embeddings"),
    "add_final_layer_norm": ((False,), "a norm after each stack"),
    "static_position_embeddings": ((True,), "learned positions"),
    "extra_pos_embeddings": ((0,), "positions that begin later"),
    "num_beam_groups": ((None, 1), "a search by groups of beams"),
    "do_sample": ((None, False), "outputs drawn at random"),
    "repetition_penalty": ((None, 1.0), "a penalty of repetitions"),
    "encoder_no_repeat_ngram_size": ((None, 0), "a rule against repetitions"),
    "forced_bos_token_id": ((None,), "a first token that is forced"),
    "suppress_tokens": ((None, []), "tokens that are forbidden"),
    "begin_suppress_tokens": ((None, []), "tokens that are forbidden"),
}
_EARLY_STOPPING = {True: "true", False: "heuristic", None: "heuristic", "never": "false"}
_TRAINING = {
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "relu_dropout": "activation_dropout",
}


def read(model: str | os.PathLike[str], *, problem: str | None = None) -> imported.Imported:
    """Read a model.

    Args:
      model: a folder, or a name on Hugging Face's hub: "Helsinki-NLP/opus-mt-en-de".
      problem: what it has learnt.

    Raises UserError for what is missing, damaged, or no Transformer of the kinds that are here.
    """
    folder, revision = pathlib.Path(model), None
    if not folder.exists():
        folder, revision = hub.folder(str(model), [*_FILES, *_OPTIONAL], list(_READERS))
    settings = _json(folder / "config.json")
    if (folder / "generation_config.json").is_file():
        settings |= _json(folder / "generation_config.json")
    conversion.refuse(settings, _ONLY)
    pieces, spm = _vocabulary(folder, settings)
    sides = conversion.sides(pieces, pad=_PAD, eos=_EOS, unk=_UNK)
    arrays = conversion.floats(_arrays(folder))
    places = _positions(arrays)
    return imported.Imported(
        hparams=_to_hparams(weights := convert(arrays, sides, settings), settings, sides, places),
        weights=weights,
        vocabulary_name="vocab.json.pieces",
        vocabulary=piece_vocabulary.joined(
            piece_vocabulary.side(sides.source.pieces, model=spm[0]),
            piece_vocabulary.side(sides.target.pieces, model=spm[1]),
        ),
        vocab_size=len(sides.target.pieces),
        problem=problem or "parallel_text",
        hparams_set="opus_mt",
        step=0,
        revision=revision,
    )


def convert(
    arrays: Mapping[str, np.ndarray], sides: conversion.Sides, settings: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Map {MarianMTModel's name: array} to {name in `Transformer.named_variables`: array}.

    Raises UserError for an unknown name, and where the sizes of the vocabularies are not those of
    `sides`.
    """
    arrays = {name.removeprefix("model."): value for name, value in arrays.items()}
    shared, softmax = arrays.pop("shared.weight", None), arrays.pop("lm_head.weight", None)
    bias = arrays.pop("final_logits_bias", None)
    embedded = {side: arrays.pop(f"{side}.embed_tokens.weight", None) for side in _SIDES}
    target, source = _first(embedded["decoder"], softmax), embedded["encoder"]
    if settings.get("share_encoder_decoder_embeddings", True):
        # What is one matrix in the model may stand under any of its names.
        target = _first(embedded["decoder"], shared, softmax, source)
        source = _first(source, shared, target)
    if target is None or source is None:
        raise errors.UserError("the model cannot be imported: it lacks the embeddings")
    scale = 1.0 if settings.get("scale_embedding") else target.shape[-1] ** -0.5
    renamed = fairseq.NAMES.renamed(arrays)
    weights = {name: value.T if "/kernel" in name else value for name, value in renamed.items()}
    weights |= {
        "embedding/matrix": target * np.float32(scale),
        "source_embedding/matrix": source * np.float32(scale),
        "softmax/matrix": target if softmax is None else softmax,
        conversion.LOGITS_BIAS: np.zeros(len(target), np.float32) if bias is None else bias,
    }
    start = sides.target.places.index(settings["decoder_start_token_id"])
    # The embedding of <pad>, with which decoding begins, is zero unless the model was fine-tuned.
    has_vector = target[sides.target.places[start]].any()
    weights = conversion.completed(
        weights, sides, start=sides.target.pieces[start] if has_vector else None
    )
    if settings.get("renormalize_logits"):  # else <pad> takes part in the softmax
        weights[conversion.LOGITS_BIAS][0] = conversion.NEVER
    return weights


_SIDES = ("encoder", "decoder")


def _first(*arrays: np.ndarray | None) -> np.ndarray | None:
    return next((array for array in arrays if array is not None), None)


def _to_hparams(
    weights: Mapping[str, np.ndarray],
    settings: Mapping[str, Any],
    sides: conversion.Sides,
    places: config.PositionEncoding,
) -> config.HParams:
    if settings.get("renormalize_logits") and settings.get("min_length"):
        raise errors.UserError(
            "the model cannot be imported: it has min_length together with renormalize_logits"
        )
    options = {
        "length_penalty": "power",
        "strict_ends": "true",
        "early_stop": _EARLY_STOPPING.get(settings.get("early_stopping"), "heuristic"),
        "min_length": settings.get("min_length") or 0,
        "no_repeat_ngram": settings.get("no_repeat_ngram_size") or 0,
    }
    try:
        return conversion.hparams(
            weights,
            num_heads=conversion.same_heads(settings),
            parts=dict(
                source_vocab_size=sides.source_vocab_size,
                activation=conversion.activation(settings.get("activation_function")),
                norm_epsilon=1e-5,
                decoding=",".join(f"{name}={value}" for name, value in options.items() if value),
            ),
            told={
                "d_model": settings.get("d_model"),
                "d_ff": settings.get("encoder_ffn_dim"),
                "num_encoder_layers": settings.get("encoder_layers"),
                "num_decoder_layers": settings.get("decoder_layers"),
            },
            position_encoding=places,
            beam_size=settings.get("num_beams") or 1,
            alpha=_number(settings, "length_penalty", 1.0),
            extra_length=settings.get("max_length") or 20,
            **{
                ours: settings[theirs]
                for ours, theirs in _TRAINING.items()
                if imported.is_allowed(ours, settings.get(theirs))
            },
        )
    except TypeError as error:
        raise errors.UserError(f"config.json or generation_config.json: {error}") from error


def _number(settings: Mapping[str, Any], name: str, default: float) -> float:
    value = settings.get(name)
    return default if value is None else float(value)


def _positions(arrays: dict[str, np.ndarray]) -> config.PositionEncoding:
    """Take the tables of positions out of the weights; return what they are, or what the class
    computes where they are not stored."""
    kinds: dict[config.PositionEncoding, type[positions.SinusoidHalves]] = {
        "sinusoid_halves": positions.SinusoidHalves,
        "sinusoid_t2t": positions.T2TSinusoids,
    }
    names = [name for name in arrays if name.endswith("embed_positions.weight")]
    tables = [arrays.pop(name) for name in names]
    for name, kind in kinds.items():
        expected = [np.asarray(kind(table.shape[1])(np.arange(len(table)))) for table in tables]
        if all(np.allclose(*pair, atol=2e-3) for pair in zip(tables, expected)):
            return name
    raise errors.UserError("the model cannot be imported: it has learned positions")


def _vocabulary(
    folder: pathlib.Path, settings: Mapping[str, Any]
) -> tuple[list[list[str]], list[bytes]]:
    """Return the pieces of both sides at once or of each, by number, and SentencePiece's models."""
    if not (folder / "source.spm").is_file() and (folder / "source.bpe").is_file():
        raise errors.UserError(
            f"the model cannot be imported: its texts are cut by BPE ({folder / 'source.bpe'}), "
            "not by SentencePiece"
        )
    spm = [piece_files.sentencepiece_model(folder / f"{side}.spm") for side in ("source", "target")]
    shared = settings.get("share_encoder_decoder_embeddings", True)
    names = ["vocab.json"] if shared else ["vocab.json", "target_vocab.json"]
    pieces = []
    for path in (folder / name for name in names):
        ids = _json(path)
        numbers = {"pad_token_id": _PAD, "eos_token_id": _EOS}
        wrong = [name for name, piece in numbers.items() if ids.get(piece) != settings.get(name)]
        if _UNK not in ids or sorted(ids.values()) != list(range(len(ids))) or wrong:
            raise errors.UserError(
                f"{path} is not the model's vocabulary: expected pieces numbered 0, 1, 2, ... with "
                f"{_UNK}, and with {_PAD} and {_EOS} at config.json's pad_token_id and eos_token_id"
            )
        pieces.append(sorted(ids, key=ids.__getitem__))
    forbidden = [[settings["pad_token_id"]], [pieces[-1].index(_UNK)]]
    others = [word for word in settings.get("bad_words_ids") or [] if word not in forbidden]
    start = settings.get("decoder_start_token_id")
    if others or not (type(start) is int and 0 <= start < len(pieces[-1])):
        setting = f"bad_words_ids={others}" if others else f"decoder_start_token_id={start!r}"
        raise errors.UserError(f"the model cannot be imported: it has {setting:.80}")
    return pieces, spm


def _json(path: pathlib.Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise errors.UserError(
            f"there is no file {path}{errors.missing_folder(path)}: a model of Hugging Face's form "
            f"has {', '.join(_FILES)} and weights"
        ) from error
    except (ValueError, RecursionError) as error:
        raise errors.UserError(f"{path} is damaged: {error}") from error
    if not isinstance(content, dict):
        raise errors.UserError(f"{path} is damaged: expected an object")
    return content


def _arrays(folder: pathlib.Path) -> dict[str, np.ndarray]:
    """Return the weights by their names in PyTorch's model, of the first file that there is."""
    for name, reader in _READERS.items():
        path = folder / name
        if path.is_file():
            try:
                return reader(path)
            except errors.UserError:
                raise
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                reason = str(error).partition("\n")[0]
                raise errors.UserError(f"cannot read the weights {path}: {reason:.200}") from error
    raise errors.UserError(f"{folder} has no weights: expected one of {', '.join(_READERS)}")


def _safetensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Read a file of safetensors: its header's size in 8 bytes, the header as JSON, the values."""
    data = memoryview(path.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(bytes(data[8:start]))
    header.pop("__metadata__", None)
    types = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": ml_dtypes.bfloat16}
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        values = np.frombuffer(data[start + first : start + last], types[entry["dtype"]])
        arrays[name] = values.reshape(entry["shape"])
    return arrays


def _h5(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Read what TFMarianMTModel.save_pretrained wrote: kernels are [in, out]."""
    kinds = {"kernel": "weight", "gamma": "weight", "beta": "bias", "embeddings": "weight"}
    arrays: dict[str, np.ndarray] = {}

    def add(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            value, name = np.asarray(node), name.partition(":")[0]
            parent, _, kind = name.rpartition("/")
            of_stack = re.search(r"\b(encoder|decoder)/.*", parent)
            if of_stack:
                name = f"{of_stack[0].replace('/', '.')}.{kinds.get(kind, kind)}"
            else:
                name = "shared.weight" if "shared" in parent else kind
            arrays[name] = value.T if kind == "kernel" else value

    with h5py.File(path) as file:
        file.visititems(add)
    return arrays


def _bin(path: pathlib.Path) -> dict[str, np.ndarray]:
    return torch_checkpoint.tensors(
        path,
        otherwise="or save it in an environment with transformers as safetensors: "
        "MarianMTModel.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)",
    )


_READERS: dict[str, Callable[[pathlib.Path], dict[str, np.ndarray]]] = {
    "model.safetensors": _safetensors,
    "tf_model.h5": _h5,
    "pytorch_model.bin": _bin,
}
