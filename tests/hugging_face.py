"""Random models of transformers' class MarianMTModel, with SentencePiece models trained here.

Only where transformers and PyTorch are installed. Run as a script it writes tests/golden/opus_mt:

  python tests/hugging_face.py tests/golden/opus_mt
"""

import io
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import sentencepiece

ENGLISH = [
    f"{a} {b} {c}."
    for a in ("A dog", "The man", "Two girls", "Nobody else", "My old friend")
    for b in ("sees", "runs after", "is near", "paints")
    for c in ("a house", "the sea", "red birds", "me", "his quick white horse")
]
GERMAN = [text.upper()[::-1] for text in ENGLISH]
BEAMS = ((1, 1.0), (4, 1.0), (6, 1.0), (6, 0.6))  # with a length penalty


def write(
    folder: pathlib.Path,
    *,
    own: bool = False,
    activation: str = "swish",
    scale: float = 2.5,
    end: float = 4.5,
    **sizes: Any,
):
    """Write a model and return it.

    Args:
      folder: a new one.
      own: whether each side has a vocabulary of its own.
      activation: of the feed-forward networks.
      scale: of the kernels' weights; larger ones make outputs differ more from each other.
      end: bias of the end's logit.
      **sizes: further settings of MarianConfig.
    """
    import torch  # pyright: ignore[reportMissingImports]
    import transformers  # pyright: ignore[reportMissingImports]

    folder.mkdir(parents=True)
    texts = {"source": ENGLISH, "target": GERMAN}
    sides = [_pieces(folder / f"{name}.spm", lines) for name, lines in texts.items()]
    if own:
        longest = max(map(len, sides))  # transformers' search counts on equal sizes
        sides = [[*side, *(f"_{i}" for i in range(longest - len(side)))] for side in sides]
    else:
        sides = [list(dict.fromkeys([*sides[0], *sides[1]]))] * 2
    for file, side in zip(["vocab.json", "target_vocab.json"] if own else ["vocab.json"], sides):
        ids = {piece: i for i, piece in enumerate([*side, "<pad>"])}
        (folder / file).write_text(json.dumps(ids))
    (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": own}))
    pad = len(sides[0])
    settings = {
        "vocab_size": pad + 1,
        "decoder_start_token_id": pad,
        "pad_token_id": pad,
        "activation_function": activation,
        "scale_embedding": True,
        "max_position_embeddings": 128,
        "share_encoder_decoder_embeddings": not own,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "d_model": 16,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        **sizes,
    }
    torch.manual_seed(1)
    model = transformers.MarianMTModel(transformers.MarianConfig(**settings)).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.ndim == 2 and "embed_positions" not in name:
                is_matrix = any(part in name for part in ("embed", "shared", "lm_head"))
                value.normal_(0, (1.7 if is_matrix else scale) * value.shape[-1] ** -0.5)
            elif value.ndim == 1 and "layer_norm" not in name:
                value.normal_(0, 0.3)
        model.final_logits_bias.normal_(0, 0.3)
        model.final_logits_bias[0, 0] = end  # so that outputs end
        model.final_logits_bias[0, 1] = -30.0  # <unk>, which is never an output here
    model.generation_config = transformers.GenerationConfig(
        num_beams=4,
        max_length=64,
        min_length=0 if own else 6,  # many end as early as they may
        bad_words_ids=[[pad]],
        decoder_start_token_id=pad,
        eos_token_id=0,
        forced_eos_token_id=0,
        pad_token_id=pad,
        renormalize_logits=own,
    )
    model.save_pretrained(folder)
    return model


def answers(model: Any, folder: pathlib.Path, texts: Sequence[str]) -> dict[str, Any]:
    """Return the ids of texts, the outputs' ids, texts and scores for each of BEAMS, and the logits
    of the first of these."""
    import torch  # pyright: ignore[reportMissingImports]
    import transformers  # pyright: ignore[reportMissingImports]

    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    pad = model.config.pad_token_id
    batch = tokenizer(list(texts), return_tensors="pt", padding=True)
    found: dict[str, Any] = {"inputs": [tokenizer(text)["input_ids"] for text in texts]}
    with torch.no_grad():
        for beams, penalty in BEAMS:
            result = model.generate(
                **batch,
                num_beams=beams,
                length_penalty=penalty,
                return_dict_in_generate=True,
                output_scores=True,
            )
            ids = [[i for i in row if i != pad] for row in result.sequences.tolist()]
            found[f"{beams} {penalty}"] = {
                "ids": ids,
                "texts": tokenizer.batch_decode(result.sequences, skip_special_tokens=True),
                "scores": result.sequences_scores.tolist() if beams > 1 else [],
            }
        found["logits"] = [
            model(
                **tokenizer([text], return_tensors="pt"),
                decoder_input_ids=torch.tensor([[pad, *ids[:-1]]]),
            )
            .logits[0]
            .tolist()
            for text, ids in zip(texts, found["1 1.0"]["ids"])
        ]
    return found


def _pieces(path: pathlib.Path, texts: Sequence[str]) -> list[str]:
    """Train SentencePiece, write the model, return the entries of the vocabulary."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=48,
        hard_vocab_limit=False,
        normalization_rule_name="identity",  # the table of OPUS-MT's rule has 240 kB
        num_threads=1,
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())
    loaded = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [loaded.IdToPiece(i) for i in range(3, loaded.GetPieceSize())]
    return ["</s>", "<unk>", *pieces]


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    written = write(target)
    texts = ENGLISH[::9]
    content = {"texts": texts, **answers(written, target, texts)}
    content["logits"] = [[[round(x, 5) for x in row] for row in one] for one in content["logits"]]
    (target / "expected.json").write_text(json.dumps(content) + "\n")
