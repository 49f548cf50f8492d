"""Marian's Transformer in NumPy, from the definitions of its layers, with random weights.

Batches of one sentence and no padding; ids are Marian's: "</s>" is 0, "<unk>" 1.
"""

import io
import pathlib
from typing import Any

import numpy as np
import sentencepiece

HEADS, WIDTH, HIDDEN = 2, 8, 12
TEXTS = ["a dog runs in the park", "the man sees a red house", "two dogs sleep"] * 20


def write(
    folder: pathlib.Path, *, pre_norm=False, relu=False, tied="all", own=False, **settings: str
) -> dict:
    """Write model.npz, source.spm, target.spm and vocab.yml; return the arrays.

    `own`: each side has a vocabulary of its own, a.src.vocab and a.trg.vocab, a piece a line.
    """
    sides = {"source": TEXTS, "target": [text.upper() for text in TEXTS]}
    special = ["</s>", "<unk>"]
    pieces, own_pieces = dict.fromkeys(special), []
    for name, texts in sides.items():
        model = _sentencepiece(texts)
        (folder / f"{name}.spm").write_bytes(model)
        loaded = sentencepiece.SentencePieceProcessor(model_proto=model)
        found = [loaded.IdToPiece(i) for i in range(3, loaded.GetPieceSize())]
        pieces |= dict.fromkeys(found)
        own_pieces.append([*special, *found])
    if own:
        own_pieces[1].append("XYZ")  # so that the sizes differ
        for side, vocabulary in zip(("src", "trg"), own_pieces):
            (folder / f"a.{side}.vocab").write_text("".join(f"{piece}\n" for piece in vocabulary))
    else:
        lines = [f'"{piece}": {i}' if i % 2 else f"{piece}: {i}" for i, piece in enumerate(pieces)]
        (folder / "vocab.yml").write_text("\n".join(lines) + "\n")
    sizes = map(len, own_pieces) if own else [len(pieces)]
    arrays = _weights(*sizes, pre_norm=pre_norm, tied=tied)
    order = {"preprocess": "n", "postprocess": "da", "postprocess-top": "n"}
    order = order if pre_norm else {"preprocess": '""', "postprocess": "dan"}
    values = {
        "type": "transformer",
        "transformer-heads": str(HEADS),
        "enc-depth": "2",
        "dec-depth": "2",
        "transformer-ffn-activation": "relu" if relu else "swish",
        **{f"transformer-{name}": value for name, value in order.items()},
        **settings,
    }
    text = "".join(f"{name}: {value}\n" for name, value in values.items())
    text += "dim-vocabs:\n  - 60\n  - 60\n"
    yml = np.frombuffer(text.encode() + b"\0", np.int8)
    everything: dict[str, Any] = {**arrays, "special:model.yml": yml}
    np.savez(folder / "model.npz", **everything)
    return arrays


def logits(arrays: dict, source: list[int], target: list[int], *, pre_norm=False, relu=False):
    """Return the logits [T, V] of target ids given source ids, both with their EOS."""

    def norm(x, name):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        u = (x - mean) / np.sqrt(variance + 1e-6)
        return u * arrays[f"{name}_ln_scale"] + arrays[f"{name}_ln_bias"]

    def residual(x, name, sublayer):
        if pre_norm:
            return x + sublayer(norm_pre(x, name))
        return norm(x + sublayer(x), name)

    def norm_pre(x, name):
        renamed = {f"{name}_ln_{k}": arrays[f"{name}_ln_{k}_pre"] for k in ("scale", "bias")}
        arrays.update(renamed)
        return norm(x, name)

    def affine(x, name, kind):
        return x @ arrays[f"{name}_W{kind}"] + arrays[f"{name}_b{kind}"]

    def attention(x, memory, name, mask):
        q, k, v = affine(x, name, "q"), affine(memory, name, "k"), affine(memory, name, "v")
        size, heads = WIDTH // HEADS, []
        for h in range(HEADS):
            own = slice(h * size, (h + 1) * size)
            scores = q[:, own] @ k[:, own].T / np.sqrt(size) + mask
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(weights / weights.sum(-1, keepdims=True) @ v[:, own])
        return affine(np.concatenate(heads, 1), name, "o")

    def feed_forward(x, name):
        hidden = affine(x, name, "1")
        hidden = np.maximum(hidden, 0) if relu else hidden / (1 + np.exp(-hidden))
        return affine(hidden, name, "2")

    def embedded(ids, name):
        matrix = arrays[name if name in arrays else "Wemb"]
        return matrix[ids] * np.sqrt(WIDTH)

    x = embedded(source, "encoder_Wemb") + _positions(len(source))
    for n in (1, 2):
        name = f"encoder_l{n}"
        x = residual(x, f"{name}_self_Wo", lambda y, p=name: attention(y, y, f"{p}_self", 0))
        x = residual(x, f"{name}_ffn_ffn", lambda y, p=name: feed_forward(y, f"{p}_ffn"))
    memory = norm(x, "encoder_top") if pre_norm else x
    shifted = np.concatenate([np.zeros([1, WIDTH]), embedded(target, "decoder_Wemb")[:-1]])
    x = shifted + _positions(len(target))
    causal = np.triu(np.full([len(target)] * 2, -1e9), 1)
    for n in (1, 2):
        name = f"decoder_l{n}"
        x = residual(x, f"{name}_self_Wo", lambda y, p=name: attention(y, y, f"{p}_self", causal))
        x = residual(
            x, f"{name}_context_Wo", lambda y, p=name: attention(y, memory, f"{p}_context", 0)
        )
        x = residual(x, f"{name}_ffn_ffn", lambda y, p=name: feed_forward(y, f"{p}_ffn"))
    x = norm(x, "decoder_top") if pre_norm else x
    embeddings = arrays["Wemb" if "Wemb" in arrays else "decoder_Wemb"]
    matrix = arrays.get("decoder_ff_logit_out_Wt", embeddings).T
    matrix = arrays.get("decoder_ff_logit_out_W", matrix)
    return x @ matrix + arrays["decoder_ff_logit_out_b"]


def _positions(length: int) -> np.ndarray:
    """Sines, then cosines; the wavelengths of tensor2tensor."""
    half = WIDTH // 2
    rates = np.exp(-np.arange(half) * np.log(10_000) / (half - 1))
    angles = np.arange(length)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], 1)


def _weights(
    num_ids: int, target_ids: int | None = None, *, pre_norm: bool, tied: str
) -> dict[str, np.ndarray]:
    target_ids = target_ids or num_ids
    shapes: dict[str, tuple[int, ...]] = {"decoder_ff_logit_out_b": (1, target_ids)}
    if tied == "all":
        shapes["Wemb"] = (num_ids, WIDTH)
    else:
        shapes |= {"encoder_Wemb": (num_ids, WIDTH), "decoder_Wemb": (target_ids, WIDTH)}
    if tied == "none":
        shapes["decoder_ff_logit_out_Wt"] = (target_ids, WIDTH)
    if tied == "none, early":
        shapes["decoder_ff_logit_out_W"] = (WIDTH, target_ids)
    norms = []
    for side, parts in (("encoder", ["self"]), ("decoder", ["self", "context"])):
        norms += [f"{side}_top_ln"] if pre_norm else []
        for n in (1, 2):
            for part in parts:
                name = f"{side}_l{n}_{part}"
                shapes |= {f"{name}_W{kind}": (WIDTH, WIDTH) for kind in "qkvo"}
                shapes |= {f"{name}_b{kind}": (1, WIDTH) for kind in "qkvo"}
                norms.append(f"{name}_Wo_ln")
            name = f"{side}_l{n}_ffn"
            shapes |= {f"{name}_W1": (WIDTH, HIDDEN), f"{name}_b1": (1, HIDDEN)}
            shapes |= {f"{name}_W2": (HIDDEN, WIDTH), f"{name}_b2": (1, WIDTH)}
            norms.append(f"{name}_ffn_ln")
    end = "_pre" if pre_norm else ""
    for norm in norms:
        own_end = "" if "_top_" in norm else end
        shapes |= {f"{norm}_{kind}{own_end}": (1, WIDTH) for kind in ("scale", "bias")}
    rng = np.random.default_rng(5)
    return {
        name: (rng.normal(0, 0.4, shape) + ("ln_scale" in name)).astype(np.float32)
        for name, shape in shapes.items()
    }


def _sentencepiece(texts: list[str]) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=34,
        model_type="unigram",
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()
