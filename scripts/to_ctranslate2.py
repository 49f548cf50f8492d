"""Turn a trained model into one that CTranslate2 runs (pip install ctranslate2).

  python scripts/to_ctranslate2.py --output_dir=run --target=ct2_model [--checkpoint_path=...]

CTranslate2 takes and gives pieces of text: cut it with the SentencePiece model that is copied into
the folder, or, where an imported model has none, as its framework does. Imported models are
converted too: with their biases, activations, positions and first inputs. Its length penalty
divides by n^alpha, not by ((5 + n) / 6)^alpha, so only with length_penalty=0 (ours: alpha=0) are
both searches the same.
"""

import argparse
import os
import pathlib
import shutil
import sys

import numpy as np

from t2t_lite import config, errors
from t2t_lite.model import transformer
from t2t_lite.run import checkpoint, output_dir
from t2t_lite.text import any_vocabulary

MAX_POSITIONS = 1024
# Its row of the decoder's embedding is the decoder's first input; never emitted.
START = "<pad>"
# What a model's folder holds; another file there is somebody's.
FILES = {"model.bin", "config.json", "vocabulary.model", "vmap.txt"} | {
    f"{side}_vocabulary.json" for side in ("source", "target", "shared")
}


def main() -> int:
    """Convert; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", required=True)
    parser.add_argument(
        "--target", required=True, help="a folder; made, or replaced if it is such a model"
    )
    parser.add_argument("--checkpoint_path")
    parser.add_argument("--quantization", help="int8, bfloat16, ...; default: as trained")
    flags = parser.parse_args()
    try:
        convert(flags.output_dir, flags.target, flags.checkpoint_path, flags.quantization)
    except errors.UserError as error:
        print(f"to_ctranslate2: {error}", file=sys.stderr)
        return 1
    return 0


def convert(
    directory: str,
    target: str,
    checkpoint_path: str | None = None,
    quantization: str | None = None,
) -> None:
    """Write the CTranslate2 model of an output_dir's checkpoint."""
    path = pathlib.Path(target)
    _check_replaceable(path)
    run = output_dir.read(directory)
    hparams = run.hparams
    if not hparams.d_k == hparams.d_v == hparams.d_model / hparams.num_heads:
        raise errors.UserError(
            "CTranslate2 has only heads of the size d_model / num_heads, here "
            f"{hparams.d_model} / {hparams.num_heads}; got d_k={hparams.d_k}, d_v={hparams.d_v}"
        )
    others = {
        name: getattr(hparams, name)
        for name in ("attention_function", "attention_window", "relative_bias", "next_word")
    }
    if any(value != getattr(config.HParams(), name) for name, value in others.items()):
        raise errors.UserError(
            "CTranslate2 has only the paper's attention, here "
            + ", ".join(f"{name}={value}" for name, value in others.items())
        )
    try:
        import ctranslate2  # noqa: F401 # pyright: ignore[reportMissingImports] (optional)
    except ModuleNotFoundError as error:
        raise errors.UserError(f"{error}: run `pip install ctranslate2`") from error
    vocab = any_vocabulary.load(run.vocabulary_path)
    model = transformer.Transformer(run.hparams, vocab.targets.size)
    prefix = checkpoint.resolve(run.path, checkpoint_path)
    checkpoint.restore_weights(prefix, model.named_variables(), run.identity)
    spec = specification(
        model, *([v.pieces[token] for token in range(v.size)] for v in (vocab, vocab.targets))
    )
    spec.validate()
    spec.optimize(quantization=quantization)
    temporary = path.with_name(f".{path.name}.incomplete-{os.getpid()}")
    try:
        temporary.mkdir(parents=True)
        spec.save(str(temporary))
        if vocab.sentencepiece_model:
            (temporary / "vocabulary.model").write_bytes(vocab.sentencepiece_model)
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_replaceable(path: pathlib.Path) -> None:
    """Raise UserError if the path holds anything but a model that this script wrote."""
    if not path.exists():
        return
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else {""}
    if names and not ("model.bin" in names and names <= FILES and _is_model(path / "model.bin")):
        raise errors.UserError(
            f"--target {path} holds more than a CTranslate2 model, which would be lost: give "
            "another path"
        )


def _is_model(path: pathlib.Path) -> bool:
    with path.open("rb") as file:
        return b"TransformerSpec" in file.read(64)


def specification(
    model: transformer.Transformer, source_pieces: list[str], target_pieces: list[str]
):
    """Return the TransformerSpec with the model's weights."""
    from ctranslate2 import specs  # pyright: ignore[reportMissingImports] (optional)

    hparams = model.hparams
    spec = specs.TransformerSpec.from_config(
        (hparams.num_encoder_layers, hparams.num_decoder_layers),
        hparams.num_heads,
        pre_norm=hparams.pre_norm,
        activation={
            "relu": specs.common_spec.Activation.RELU,
            "swish": specs.common_spec.Activation.SWISH,
        }[hparams.imported.activation],
    )
    weights = {name: variable.numpy() for name, variable in model.named_variables().items()}
    matrix = weights["embedding/matrix"]
    own = {"encoder": weights.get("source_embedding/matrix", matrix), "decoder": matrix}
    # The row of PAD: nothing, or what the decoder begins with.
    start = weights.get("target/vector", np.zeros(hparams.d_model, np.float32))
    first = {"encoder": 0 * start, "decoder": start * hparams.d_model**-0.5}
    places = np.arange(MAX_POSITIONS) + hparams.imported.first_position
    positions = model.source.positions(places).numpy()
    sides = {"encoder": spec.encoder, "decoder": spec.decoder}
    for name, side in sides.items():
        embeddings = side.embeddings[0] if name == "encoder" else side.embeddings
        embeddings.weight = np.concatenate([first[name][None], own[name][1:]])
        side.scale_embeddings = True
        added = weights.get("source/vector", 0) if name == "encoder" else 0
        side.position_encodings.encodings = positions + added
        for i, layer in enumerate(side.layer):
            _set_layer(layer, weights, f"{name}_{i}")
        if hparams.pre_norm:
            _set_norm(side.layer_norm, weights, f"{name}_norm")
    spec.decoder.projection.weight = weights.get("softmax/matrix", matrix)
    if hparams.imported.logits_bias:
        spec.decoder.projection.bias = weights["logits/bias"]
    tokens = _tokens(target_pieces, len(matrix))
    spec.register_source_vocabulary(_tokens(source_pieces, len(own["encoder"])))
    spec.register_target_vocabulary(tokens)
    spec.config.add_source_eos = hparams.imported.source_eos
    spec.config.unk_token = tokens[2]
    spec.config.bos_token = spec.config.decoder_start_token = START
    spec.config.layer_norm_epsilon = hparams.imported.norm_epsilon
    return spec


def _tokens(pieces: list[str], num_rows: int) -> list[str]:
    """Return a token for each row of a matrix: spare rows of the target's are columns of the
    softmax like all others."""
    spare = [f"<spare_{i}>" for i in range(num_rows - len(pieces))]
    return [START, "</s>", *pieces[2:], *spare]


def _set_layer(layer, weights: dict[str, np.ndarray], prefix: str) -> None:
    """Copy one layer; CTranslate2 has its matrices transposed and layer norms inside."""
    own = layer.self_attention
    own.linear[0].weight = weights[f"{prefix}/self_attention/qkv"].T
    own.linear[1].weight = weights[f"{prefix}/self_attention/output"].T
    _set_norm(own.layer_norm, weights, f"{prefix}/self_attention_norm")
    _set_biases(own.linear, weights, f"{prefix}/self_attention")
    if hasattr(layer, "attention"):
        cross = layer.attention
        cross.linear[0].weight = weights[f"{prefix}/cross_attention/q"].T
        cross.linear[1].weight = weights[f"{prefix}/cross_attention/kv"].T
        cross.linear[2].weight = weights[f"{prefix}/cross_attention/output"].T
        _set_norm(cross.layer_norm, weights, f"{prefix}/cross_attention_norm")
        _set_biases(cross.linear, weights, f"{prefix}/cross_attention")
    for linear, number in ((layer.ffn.linear_0, 1), (layer.ffn.linear_1, 2)):
        linear.weight = weights[f"{prefix}/feed_forward/kernel_{number}"].T
        linear.bias = weights[f"{prefix}/feed_forward/bias_{number}"]
    _set_norm(layer.ffn.layer_norm, weights, f"{prefix}/feed_forward_norm")


def _set_biases(linear, weights: dict[str, np.ndarray], prefix: str) -> None:
    """Copy attention's biases, where it has any: CTranslate2 has them on keys and values too."""
    if f"{prefix}/q_bias" not in weights:
        return
    for one in linear[:-1]:
        one.bias = np.zeros(len(one.weight), np.float32)
    bias = weights[f"{prefix}/q_bias"]
    linear[0].bias[: len(bias)] = bias
    linear[-1].bias = weights[f"{prefix}/output_bias"]


def _set_norm(spec, weights: dict[str, np.ndarray], name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}/scale"], weights[f"{name}/bias"]


if __name__ == "__main__":
    sys.exit(main())
