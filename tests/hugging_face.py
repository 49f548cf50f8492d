"""Models of transformers' class MarianMTModel, trained for seconds, and what it answers.

A process of its own, for TensorFlow and PyTorch disagree within one; it needs transformers 4 and
PyTorch. A kind is one of KINDS, and --every is for fewer texts:

  USE_TF=0 python tests/hugging_face.py --kind=shared --every=24 tests/golden/opus_mt
"""

import argparse
import io
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import sentencepiece
import torch  # pyright: ignore[reportMissingImports]
import transformers  # pyright: ignore[reportMissingImports]

torch.set_num_threads(1)

# Shared vocabularies and swish, as most models; separate ones and ReLU, as the newer tc-big ones.
KINDS: dict[str, dict[str, Any]] = {
    "shared": {},
    "separate": {
        "own": True,
        "activation": "relu",
        "d_model": 24,
        "encoder_layers": 3,
        "encoder_attention_heads": 6,
        "decoder_attention_heads": 6,
    },
}
ENGLISH = [
    f"{a} {b} {c}."
    for a in ("A dog", "The man", "Two girls", "Nobody else", "My old friend")
    for b in ("sees", "runs after", "is near", "paints")
    for c in ("a house", "the sea", "red birds", "me", "his quick white horse")
]
GERMAN = [text.upper()[::-1] for text in ENGLISH]
UPDATES = 60  # outputs end, and are unsure
BEAMS = ((1, 1.0), (4, 1.0), (6, 1.0), (6, 0.6))  # with a length penalty


def write(folder: pathlib.Path, *, own: bool = False, activation: str = "swish", **sizes: Any):
    """Write a model that has learnt from GERMAN for a few updates, and return it.

    Args:
      folder: a new one.
      own: whether each side has a vocabulary of its own.
      activation: of the feed-forward networks.
      **sizes: further settings of MarianConfig.
    """
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
                value.normal_(0, value.shape[-1] ** -0.5)
            elif value.ndim == 1 and "layer_norm" not in name:
                value.normal_(0, 0.3)
        model.final_logits_bias.normal_(0, 0.3)
        model.final_logits_bias[0, 1] = -30.0  # <unk>, which is never an output here
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    batch = tokenizer(ENGLISH, text_target=GERMAN, return_tensors="pt", padding=True)
    batch["labels"][batch["labels"] == pad] = -100
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    model.generation_config = transformers.GenerationConfig(
        num_beams=4,
        max_length=100,
        min_length=0 if own else 6,
        no_repeat_ngram_size=3 if own else 0,
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("folder", type=pathlib.Path)
    given = parser.parse_args()
    written = write(given.folder, **KINDS[given.kind])
    inputs = ENGLISH[:: given.every]
    content = {"texts": inputs, **answers(written, given.folder, inputs)}
    content["logits"] = [[[round(x, 5) for x in row] for row in one] for one in content["logits"]]
    (given.folder / "expected.json").write_text(json.dumps(content) + "\n")
