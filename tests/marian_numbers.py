"""Files of Marian's Transformer with random weights; foreign_numbers has its layers in NumPy.

Ids are Marian's: "</s>" is 0, "<unk>" 1.
"""

import io
import pathlib
from typing import Any

import foreign_numbers
import numpy as np
import sentencepiece

TEXTS = ["a dog runs in the park", "the man sees a red house", "two dogs sleep"] * 20


def write(
    folder: pathlib.Path,
    *,
    pre_norm=False,
    relu=False,
    tied="all",
    own=False,
    labels=(),
    **settings: str,
) -> foreign_numbers.Model:
    """Write model.npz, source.spm, target.spm and vocab.yml; return the model.

    `own`: each side has a vocabulary of its own, a.src.vocab and a.trg.vocab, a piece a line.
    `labels`: further entries of vocab.yml, such as ">>deu<<".
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
    pieces |= dict.fromkeys(labels)
    if own:
        own_pieces[1].append("XYZ")  # so that the sizes differ
        for side, vocabulary in zip(("src", "trg"), own_pieces):
            (folder / f"a.{side}.vocab").write_text("".join(f"{piece}\n" for piece in vocabulary))
    else:
        lines = [f'"{piece}": {i}' if i % 2 else f"{piece}: {i}" for i, piece in enumerate(pieces)]
        (folder / "vocab.yml").write_text("\n".join(lines) + "\n")
    sizes = map(len, own_pieces) if own else [len(pieces)]
    weights = foreign_numbers.random_weights(
        *sizes, pre_norm=pre_norm, shared=tied == "all", softmax_bias=True
    )
    if tied == "target":
        weights["softmax"] = weights["target"]
    order = {"preprocess": "n", "postprocess": "da", "postprocess-top": "n"}
    order = order if pre_norm else {"preprocess": '""', "postprocess": "dan"}
    values = {
        "type": "transformer",
        "transformer-heads": str(foreign_numbers.HEADS),
        "enc-depth": "2",
        "dec-depth": "2",
        "transformer-ffn-activation": "relu" if relu else "swish",
        **{f"transformer-{name}": value for name, value in order.items()},
        **settings,
    }
    text = "".join(f"{name}: {value}\n" for name, value in values.items())
    text += "dim-vocabs:\n  - 60\n  - 60\n"
    yml = np.frombuffer(text.encode() + b"\0", np.int8)
    arrays: dict[str, Any] = {"special:model.yml": yml}
    arrays |= _arrays(weights, pre_norm=pre_norm, tied=tied)
    np.savez(folder / "model.npz", **arrays)
    zeros = np.zeros([1, foreign_numbers.WIDTH])  # the decoder's first input
    weights["target"] = np.concatenate([weights["target"], zeros])
    start = len(weights["target"]) - 1
    return foreign_numbers.Model(
        weights, pre_norm, not relu, epsilon=1e-6, first_position=0, start=start
    )


def _arrays(weights: dict[str, Any], *, pre_norm: bool, tied: str) -> dict[str, np.ndarray]:
    """Return weights under Marian's names; `tied` says which embeddings are one matrix."""
    arrays = {"decoder_ff_logit_out_b": weights["softmax_bias"][None]}
    if tied == "all":
        arrays["Wemb"] = weights["source"]
    else:
        arrays |= {"encoder_Wemb": weights["source"], "decoder_Wemb": weights["target"]}
    if tied == "none":
        arrays["decoder_ff_logit_out_Wt"] = weights["softmax"]
    if tied == "none, early":
        arrays["decoder_ff_logit_out_W"] = weights["softmax"].T
    parts = {"self": "self", "cross": "context", "ffn": "ffn"}
    for name, value in weights.items():
        side, *rest = name.removesuffix("_norm").split(".")
        owner = f"{side}_l{int(rest[0]) + 1}_{parts[rest[1]]}" if rest else f"{side}_top"
        if name.endswith("_norm"):
            norm = owner + (("_ffn" if rest[1] == "ffn" else "_Wo") if rest else "")
            end = "_pre" if pre_norm and rest else ""
            for kind, array in zip(("scale", "bias"), value):
                arrays[f"{norm}_ln_{kind}{end}"] = array[None]
        elif rest:
            for kind, (kernel, bias) in value.items():
                arrays |= {f"{owner}_W{kind}": kernel, f"{owner}_b{kind}": bias[None]}
    return arrays


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
