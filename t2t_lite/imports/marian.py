"""Transformers of Marian, OPUS-MT's among them: model.npz with its vocabulary.

Its settings stand in the .npz itself, as special:model.yml. Ids are moved: Marian has no PAD, and
</s> and <unk> at 0 and 1.
"""

import os
import pathlib
import re
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np

from t2t_lite import config, errors
from t2t_lite.imports import conversion, imported
from t2t_lite.text import marian_yaml, piece_vocabulary

_SETTINGS = "special:model.yml"
# The logit of PAD, which Marian has not: its probability is that of no other id by e^-100.
_NEVER = -100.0
_ATTENTION = {"self": "self_attention", "context": "cross_attention"}
_NORMS = {"ln_scale": "scale", "ln_bias": "bias"}

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
}
_DAMAGE = (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, NotImplementedError)
# What words in the name of a weight belong to that is not here.
_OTHER_PARTS = {"gru": "an RNN", "cell": "an RNN", "Wpos": "learned positions", "factor": "factors"}


def read(
    model: str | os.PathLike[str],
    *,
    vocab: str | None = None,
    problem: str | None = None,
) -> imported.Imported:
    """Read a model.

    Args:
      model: the .npz, or a folder with one.
      vocab: source.spm,target.spm,vocab.yml, or one .spm of both sides; default: those beside it.
      problem: what it has learnt.

    Raises UserError for what is missing, damaged, or no Transformer of the kinds that are here.
    """
    path = _model_path(pathlib.Path(model))
    arrays = _arrays(path)
    settings = _settings(arrays.pop(_SETTINGS, None), path)
    _refuse(settings)
    name, pieces, spm = _vocabulary(vocab, path.parent)
    hparams = _to_hparams(arrays, settings, num_ids=len(pieces))
    places = conversion.order(pieces, pad=None, eos=marian_yaml.EOS, unk=marian_yaml.UNK)
    weights = convert(arrays, hparams, places)
    ordered = ["<pad>", *(pieces[place] for place in places[1:])]
    return imported.Imported(
        hparams=hparams,
        weights=weights,
        vocabulary_name=f"{name}.marian",
        vocabulary=piece_vocabulary.joined(ordered, source=spm[0], target=spm[-1]),
        vocab_size=len(pieces) + 1,
        problem=problem or "parallel_text",
        hparams_set="marian",
        step=0,
    )


def convert(
    arrays: Mapping[str, np.ndarray], hparams: config.HParams, places: Sequence[int]
) -> dict[str, np.ndarray]:
    """Map {Marian's name: array} to {name in `Transformer.named_variables`: array}.

    `places` are Marian's numbers by the ids here. Raises UserError for a name that is no part of a
    Transformer.
    """
    found: dict[str, np.ndarray] = {}
    for name, value in arrays.items():
        if name in ("Wemb", "decoder_Wemb"):
            found["embedding/matrix"] = conversion.reordered(value, places)
        elif name == "encoder_Wemb":
            found["source_embedding/matrix"] = conversion.reordered(value, places)
        elif name == "decoder_ff_logit_out_W":
            found["softmax/matrix"] = conversion.reordered(value.T, places)
        elif name == "decoder_ff_logit_out_b":
            found["logits_bias/vector"] = conversion.reordered(value.reshape(-1), places)
            found["logits_bias/vector"][0] = _NEVER
        else:
            found[_name(name)] = value.reshape(-1) if 1 in value.shape[:1] else value
    if hparams.logits_bias and "logits_bias/vector" not in found:
        rows = len(found["embedding/matrix"])
        found["logits_bias/vector"] = np.where(np.arange(rows) == 0, _NEVER, 0).astype(np.float32)
    if hparams.embeddings == "separate":
        # Marian may tie two of the three (tied-embeddings, tied-embeddings-src).
        for ours in ("source_embedding/matrix", "softmax/matrix"):
            found.setdefault(ours, found["embedding/matrix"])
    return conversion.fused(found)


def _name(name: str) -> str:
    """Return "encoder_0/self_attention/W/q" for encoder_l1_self_Wq."""
    if top := re.fullmatch(r"(encoder|decoder)_top_(ln_scale|ln_bias)", name):
        return f"{top[1]}_norm/{_NORMS[top[2]]}"
    layer = re.fullmatch(r"(encoder|decoder)_l(\d{1,4})_(self|context|ffn)_(\w+)", name)
    if not layer:
        raise conversion.no_part(name, _OTHER_PARTS)
    prefix, part, rest = f"{layer[1]}_{int(layer[2]) - 1}", layer[3], layer[4]
    owner = "feed_forward" if part == "ffn" else _ATTENTION[part]
    if norm := re.fullmatch(r"(?:Wo|ffn)_(ln_scale|ln_bias)(?:_pre)?", rest):
        return f"{prefix}/{owner}_norm/{_NORMS[norm[1]]}"
    if part == "ffn" and (linear := re.fullmatch(r"([Wb])([12])", rest)):
        return f"{prefix}/{owner}/{'kernel' if linear[1] == 'W' else 'bias'}_{linear[2]}"
    if part != "ffn" and (linear := re.fullmatch(r"([Wb])([qkvo])", rest)):
        return f"{prefix}/{owner}/{linear[1]}/{linear[2]}"
    raise conversion.no_part(name, _OTHER_PARTS)


def _to_hparams(
    arrays: Mapping[str, np.ndarray], settings: Mapping[str, str], *, num_ids: int
) -> config.HParams:
    def shape(name: str) -> tuple[int, int]:
        if name not in arrays or arrays[name].ndim != 2:
            raise errors.UserError(f"the model cannot be imported: it lacks the matrix {name}")
        return arrays[name].shape

    def number(name: str) -> int:
        text = settings.get(name, "")
        if not re.fullmatch(r"[1-9]\d{0,5}", text):
            raise errors.UserError(f"{_SETTINGS}: {name} is no number: {text!r:.60}")
        return int(text)

    shared = "Wemb" in arrays and "decoder_ff_logit_out_W" not in arrays
    rows, d_model = shape("Wemb" if "Wemb" in arrays else "decoder_Wemb")
    for name in {"encoder_Wemb", "Wemb"} & arrays.keys():
        if shape(name)[0] != num_ids or rows != num_ids:
            raise errors.UserError(
                f"the vocabulary has {num_ids} entries and the embedding {shape(name)[0]} rows: "
                "give those that the model was trained with as --vocab; one for each side cannot "
                "be imported"
            )
    heads = number("transformer-heads")
    if d_model % heads:
        raise errors.UserError(f"{heads} heads do not divide a width of {d_model}")
    return config.HParams(
        d_model=d_model,
        d_ff=shape("encoder_l1_ffn_W1")[1],
        num_heads=heads,
        d_k=d_model // heads,
        d_v=d_model // heads,
        num_encoder_layers=number("enc-depth"),
        num_decoder_layers=number("dec-depth"),
        position_encoding="sinusoid_t2t",
        pre_norm=_is_pre_norm(settings),
        embeddings="shared" if shared else "separate",
        attention_bias=True,
        activation=_activation(settings),
        logits_bias=True,
        vocab_multiple=1,
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


def _activation(settings: Mapping[str, str]) -> config.Activation:
    name = settings.get("transformer-ffn-activation", "swish")
    if name == "swish":
        return "swish"
    if name == "relu":
        return "relu"
    raise errors.UserError(f"the model cannot be imported: its activation is {name!r:.60}")


def _model_path(path: pathlib.Path) -> pathlib.Path:
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.npz"))
    found = [p for p in found if not p.name.endswith((".optimizer.npz", ".orig.npz"))] or found
    if len(found) != 1:
        raise errors.UserError(f"{path} holds {len(found)} models *.npz: give one as --model")
    return found[0]


def _arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Return the arrays of a .npz as float32, its settings as they are."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise errors.UserError(f"there is no model {path}") from error
    except (*_DAMAGE, AttributeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise errors.UserError(f"cannot read the model {path}: {reason}") from error
    for name, value in arrays.items():
        if name != _SETTINGS and value.dtype.kind != "f":
            raise errors.UserError(
                f"the model cannot be imported: {name} holds {value.dtype}, not floats: give the "
                "model as it was before it was made smaller"
            )
    return {n: v if n == _SETTINGS else v.astype(np.float32) for n, v in arrays.items()}


def _settings(content: np.ndarray | None, path: pathlib.Path) -> dict[str, str]:
    """Return the settings that are plain values, as texts; lists are left out."""
    if content is None:
        raise errors.UserError(f"{path} is no model of Marian: it lacks {_SETTINGS}")
    text = content.tobytes().rstrip(b"\0").decode("utf-8", "replace")
    pairs = (line.partition(": ") for line in text.split("\n") if not line.startswith((" ", "-")))
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}


def _refuse(settings: Mapping[str, str]) -> None:
    for name, allowed in _ONLY.items():
        value = settings.get(name, allowed[0])
        if value not in allowed:
            raise errors.UserError(f"the model cannot be imported: it has {name}: {value!s:.60}")


def _vocabulary(given: str | None, folder: pathlib.Path) -> tuple[str, list[str], list[bytes]]:
    """Return a name, the pieces by Marian's numbers, and one SentencePiece model or two."""
    paths = [pathlib.Path(part.strip()) for part in given.split(",")] if given else _beside(folder)
    spm = [path for path in paths if path.suffix == ".spm"]
    yml = [path for path in paths if path.suffix in (".yml", ".yaml")]
    if not (len(paths) == len(spm) + len(yml) and (len(spm), len(yml)) in ((1, 0), (1, 1), (2, 1))):
        raise errors.UserError(
            "give the vocabulary as --vocab=source.spm,target.spm,vocab.yml, or as one .spm; got "
            f"{', '.join(map(str, paths)) or 'nothing, and none lies beside the model'}"
        )
    try:
        models = [path.read_bytes() for path in spm]
        processors = [piece_vocabulary.processor(model) for model in models]
        if yml:
            text = yml[0].read_text("utf-8")
            return yml[0].name, marian_yaml.ordered(marian_yaml.read(text)), models
    except FileNotFoundError as error:
        raise errors.UserError(f"there is no vocabulary file {error.filename}") from error
    except (RuntimeError, UnicodeDecodeError) as error:
        raise errors.UserError(f"{', '.join(map(str, paths))}: no vocabularies") from error
    ids = {processors[0].IdToPiece(i): i for i in range(processors[0].GetPieceSize())}
    return spm[0].name, marian_yaml.ordered(ids), models


def _beside(folder: pathlib.Path) -> list[pathlib.Path]:
    sides = [folder / "source.spm", folder / "target.spm"]
    if all(path.is_file() for path in sides):
        return [*sides, *sorted(folder.glob("*.yml"), key=lambda p: "vocab" not in p.name)[:1]]
    return sorted(folder.glob("*.spm"))
