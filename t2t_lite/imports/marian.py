"""Transformers of Marian, OPUS-MT's among them: model.npz with its vocabulary.

Its settings stand in the .npz itself, as special:model.yml. Ids are moved: Marian has no PAD, and
</s> and <unk> at 0 and 1.
"""

import json
import os
import pathlib
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_lite import config, errors
from t2t_lite.imports import conversion, imported, piece_files
from t2t_lite.text import marian_yaml, piece_vocabulary, sentencepiece_vocabulary

_SETTINGS = "special:model.yml"
_NAMES = conversion.Names(
    layer=r"(encoder|decoder)_l(\d{1,4})_(.+)",
    first_layer=1,
    in_layer={
        r"(self|context|ffn)_(?:Wo|ffn)_ln_(scale|bias)(?:_pre)?": "{0}_norm/{1}",
        r"(ffn)_([Wb])([12])": "{0}/{1}_{2}",
        r"(self|context)_([Wb])([qkvo])": "{0}/{1}/{2}",
    },
    elsewhere={
        "(?:decoder_)?Wemb": "embedding/matrix",
        "encoder_Wemb": "source_embedding/matrix",
        "decoder_ff_logit_out_Wt": "softmax/matrix",
        "decoder_ff_logit_out_b": conversion.LOGITS_BIAS,
        "(encoder|decoder)_top_ln_(scale|bias)": "{0}_norm/{1}",
    },
    words={
        "self": "self_attention",
        "context": "cross_attention",
        "ffn": "feed_forward",
        "W": "kernel",
        "b": "bias",
    },
    other_parts={
        "gru": "an RNN",
        "cell": "an RNN",
        "Wpos": "learned positions",
        "factor": "factors",
    },
)
_EARLY_SOFTMAX = "decoder_ff_logit_out_W"  # of early versions, [D, V]

# Settings of which a Transformer here has only these values.
_ONLY = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-train-position-embeddings": ("false",),
    "transformer-no-projection": ("false",),
    "transformer-flat-query-key-value": ("false",),
    "transformer-rnn-projection": ("false",),
    "transformer-ffn-depth": ("2",),
    "transformer-postprocess-emb": ("", "d"),
    "lemma-dim-emb": ("0",),
    "lemma-dependency": ("",),
    "factors-combine": ("sum",),
    "ulr": ("false",),
    "input-types": ("",),
    "no-scale-embeddings": ("false",),
    "right-left": ("false",),
}
_SIZES = {
    "d_model": "dim-emb",
    "d_ff": "transformer-dim-ffn",
    "num_encoder_layers": "enc-depth",
    "num_decoder_layers": "dec-depth",
}
# Of decoder.yml: what carries over, and values of others that change no output here.
_SEARCH = {"beam-size": ("beam_size", r"[1-9]\d{0,2}"), "normalize": ("alpha", r"\d(\.\d+)?")}
_NO_EFFECT = {"word-penalty": "0", "allow-unk": "false", "n-best": "false"}
_YAML = (".yml", ".yaml")
_OTHER_YML = re.compile(r"(decoder|progress|\.npz)\.yml$")  # settings, which are not vocabularies
_DAMAGE = (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, NotImplementedError)


def read(
    model: str | os.PathLike[str],
    *,
    vocab: str | None = None,
    problem: str | None = None,
) -> imported.Imported:
    """Read a model.

    Args:
      model: the .npz, or a folder with one.
      vocab: source.spm,target.spm,vocab.yml, or one .spm of both sides, or without .yml one for
        each, or with two .yml (or .vocab, of a piece a line); the source's first; default: those
        beside it.
      problem: what it has learnt.

    Raises UserError for what is missing, damaged, or no Transformer of the kinds that are here.
    """
    path = _model_path(pathlib.Path(model))
    arrays = _arrays(path)
    settings = _settings(arrays.pop(_SETTINGS, None), path)
    for setting, allowed in _ONLY.items():
        value = settings.get(setting, allowed[0])
        if value not in allowed:
            raise errors.UserError(f"the model cannot be imported: it has {setting}: {value!s:.60}")
    name, pieces, spm = _vocabulary(vocab, path.parent)
    sides = conversion.sides(pieces, pad=None, eos=marian_yaml.EOS, unk=marian_yaml.UNK)
    weights = convert(conversion.floats(arrays), sides)
    search, remarks = _search(path)
    return imported.Imported(
        hparams=_to_hparams(weights, settings, sides, search),
        weights=weights,
        vocabulary_name=f"{name}.marian",
        vocabulary=piece_vocabulary.joined(
            piece_vocabulary.side(sides.source.pieces, model=spm[0]),
            piece_vocabulary.side(sides.target.pieces, model=spm[-1]),
        ),
        vocab_size=len(sides.target.pieces),
        problem=problem or "parallel_text",
        hparams_set="marian",
        step=0,
        remarks=remarks,
    )


def convert(arrays: Mapping[str, np.ndarray], sides: conversion.Sides) -> dict[str, np.ndarray]:
    """Map {Marian's name: array} to {name in `Transformer.named_variables`: array}.

    Raises UserError for a name that is not part of a Transformer, and for other vocabularies than
    `sides`.
    """
    flat = {name: v.reshape(-1) if v.shape[:1] == (1,) else v for name, v in arrays.items()}
    if _EARLY_SOFTMAX in flat:
        flat[f"{_EARLY_SOFTMAX}t"] = flat.pop(_EARLY_SOFTMAX).T
    weights = _NAMES.renamed(flat)
    no_bias = np.zeros(len(sides.target.places) - 1, np.float32)
    weights.setdefault(conversion.LOGITS_BIAS, no_bias)
    weights = conversion.completed(weights, sides)
    weights[conversion.LOGITS_BIAS][0] = conversion.NEVER
    return weights


def _to_hparams(
    weights: Mapping[str, np.ndarray],
    settings: Mapping[str, str],
    sides: conversion.Sides,
    search: Mapping[str, Any],
) -> config.HParams:
    def number(name: str) -> int:
        text = settings.get(name, "")
        if not re.fullmatch(r"[1-9]\d{0,5}", text):
            raise errors.UserError(f"{_SETTINGS}: {name} is not a number: {text!r:.60}")
        return int(text)

    activation = conversion.activation(settings.get("transformer-ffn-activation", "swish"))
    return conversion.hparams(
        weights,
        num_heads=number("transformer-heads"),
        parts=dict(
            source_vocab_size=sides.source_vocab_size,
            activation=activation,
            decoding="length_penalty=power,strict_ends=true" if search else "",
        ),
        told={ours: number(theirs) for ours, theirs in _SIZES.items() if theirs in settings},
        pre_norm=_is_pre_norm(settings),
        **search,
    )


def _is_pre_norm(settings: Mapping[str, str]) -> bool:
    """Return whether norms come before sub-layers; UserError for orders that are not here."""
    names = ("preprocess", "postprocess", "postprocess-top")
    before, after, top = (settings.get(f"transformer-{name}", "") for name in names)
    orders = {("", "an", ""): False, ("n", "a", "n"): True}
    order = (before.replace("d", ""), after.replace("d", ""), top.replace("d", ""))
    if order not in orders:
        raise errors.UserError(
            "the model cannot be imported: it has another order of norms and residuals "
            f"(preprocess {before!r}, postprocess {after!r}, postprocess-top {top!r})"
        )
    return orders[order]


def _model_path(path: pathlib.Path) -> pathlib.Path:
    if not path.is_dir():
        return path
    if (path / "config.json").is_file():
        raise errors.UserError(f"{path} has Hugging Face's form: give --from=opus_mt")
    found = sorted(path.glob("*.npz")) or sorted(path.glob("*.bin"))
    found = [p for p in found if not p.name.endswith((".optimizer.npz", ".orig.npz"))] or found
    if len(found) != 1:
        raise errors.UserError(f"{path} holds {len(found)} models *.npz: give one as --model")
    return found[0]


def _arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Return the arrays of a .npz, its settings among them."""
    if path.suffix == ".bin":
        raise errors.UserError(
            f"{path} is in the form that marian-conv writes for Marian: give the .npz that it "
            "was made of"
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise errors.UserError(f"there is no model {path}{errors.missing_folder(path)}") from error
    except (*_DAMAGE, AttributeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise errors.UserError(f"cannot read the model {path}: {reason}") from error


def _settings(content: np.ndarray | None, path: pathlib.Path) -> dict[str, str]:
    """Return the settings that are plain values, as texts; lists are left out."""
    if content is None:
        raise errors.UserError(f"{path} is not a Marian model: it lacks {_SETTINGS}")
    return _plain(content.tobytes().rstrip(b"\0").decode("utf-8", "replace"))


def _search(model: pathlib.Path) -> tuple[dict[str, Any], list[str]]:
    """Return the hparams that the decoder.yml beside a model sets, and remarks on the rest."""
    search: dict[str, Any] = {}
    remarks = []
    paths = [model.with_name(f"{model.name}.decoder.yml"), model.with_name("decoder.yml")]
    for path in [path for path in paths if path.is_file()][:1]:
        settings = _plain(path.read_text("utf-8", errors="replace"))
        search = {"beam_size": 12, "alpha": 0}  # marian-decoder's defaults
        for name in settings.keys() & {*_SEARCH, *_NO_EFFECT}:
            value = settings[name]
            if name in _SEARCH and re.fullmatch(_SEARCH[name][1], value):
                search[_SEARCH[name][0]] = json.loads(value)
            elif value != _NO_EFFECT.get(name):
                remarks.append(f"{path}: {name}: {value} does not carry over")
    return search, remarks


def _plain(text: str) -> dict[str, str]:
    pairs = (line.partition(": ") for line in text.split("\n") if not line.startswith((" ", "-")))
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}


def _vocabulary(
    given: str | None, folder: pathlib.Path
) -> tuple[str, list[list[str]], list[bytes]]:
    """Return a name, and for both sides at once or for each the pieces by Marian's numbers and the
    SentencePiece model."""
    paths = [pathlib.Path(part.strip()) for part in given.split(",")] if given else _beside(folder)
    spm = [path for path in paths if path.suffix == ".spm"]
    numbers = [path for path in paths if path.suffix in (*_YAML, ".vocab")]
    codes = [path for path in paths if path.suffix == ".bpe"]
    if codes or (not paths and list(folder.glob("*.bpe"))):
        raise errors.UserError(
            "the model cannot be imported: its texts are cut by BPE "
            f"({(codes or sorted(folder.glob('*.bpe')))[0]}), not by SentencePiece"
        )
    if len(paths) != len(spm) + len(numbers) or not 1 <= len(spm) <= 2 or len(numbers) > 2:
        raise errors.UserError(
            "give the vocabulary as --vocab=source.spm,target.spm,vocab.yml, or as one .spm; got "
            f"{', '.join(map(str, paths)) or 'nothing, and none lies beside the model'}"
        )
    try:
        models = [path.read_bytes() for path in spm]
        processors = [sentencepiece_vocabulary.processor(model) for model in models]
        for path, processor in zip(spm, processors):
            piece_files.refuse_bytes(processor, path)
        if numbers:
            return numbers[0].name, [_pieces(path) for path in numbers], models
    except FileNotFoundError as error:
        raise errors.UserError(
            f"there is no vocabulary file {error.filename}{errors.missing_folder(error.filename)}"
        ) from error
    except (RuntimeError, UnicodeDecodeError) as error:
        raise errors.UserError(f"{', '.join(map(str, paths))}: no vocabularies") from error
    pieces = [
        marian_yaml.ordered({model.IdToPiece(i): i for i in range(model.GetPieceSize())})
        for model in processors
    ]
    return spm[0].name, pieces, models


def _pieces(path: pathlib.Path) -> list[str]:
    """Return the pieces of a vocab.yml, or of a file that has one on each line."""
    text = path.read_text("utf-8")
    try:
        if path.suffix in _YAML:
            return marian_yaml.ordered(marian_yaml.read(text))
        lines = text.removesuffix("\n").split("\n")
        return marian_yaml.ordered({line.rstrip("\r"): i for i, line in enumerate(lines)})
    except errors.UserError as error:
        raise errors.UserError(f"{path}: {error}") from error


def _beside(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of the vocabulary, those of sources first."""
    sides = [folder / "source.spm", folder / "target.spm"]
    if all(path.is_file() for path in sides):
        own = [path for side in ("src", "trg") for path in folder.glob(f"*.{side}.vocab")]
        if len(own) == 2:
            return [*sides, *own]
        yml = [path for path in folder.glob("*.yml") if not _OTHER_YML.search(path.name)]
        yml.sort(key=lambda path: ("vocab" not in path.name, path.name))
        found, unclear = [*sides, *yml[:1]], yml[:2]
        is_unclear = len(yml) > 1 and "vocab" in yml[1].name
    else:
        found = unclear = sorted(folder.glob("*.spm"))
        is_unclear = len(found) == 2
    if is_unclear:
        raise errors.UserError(
            f"which vocabulary is the source's, {unclear[0].name} or {unclear[1].name}? Give all "
            "files as --vocab, the source's first"
        )
    return found
