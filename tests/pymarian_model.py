"""A model of two target languages that Marian itself trains, and what it answers.

A process of its own, in a Python with pymarian and SentencePiece; it takes a quarter of a minute:

  python tests/pymarian_model.py FOLDER
"""

import itertools
import json
import os
import pathlib
import sys

import pymarian  # pyright: ignore[reportMissingImports]
import sentencepiece

SUBJECTS = {"A dog": "Ein Hund", "The man": "Der Mann", "My friend": "Mein Freund"}
SUBJECTS |= {"Nobody": "Niemand", "The boy": "Der Junge", "An old cat": "Eine alte Katze"}
VERBS = {"sees": "sieht", "hears": "hoert", "paints": "malt", "runs after": "verfolgt"}
OBJECTS = {"a house": "ein Haus", "the sea": "das Meer", "red birds": "rote Tiere", "me": "mich"}
OBJECTS |= {"his horse": "sein Pferd", "the red car": "das rote Auto"}
SEARCHES = ((1, 0), (4, 1), (6, 0.6))  # beams, --normalize
TRAINING = """--type transformer --train-sets train.source train.target --dim-emb 32
--transformer-dim-ffn 64 --transformer-heads 4 --enc-depth 2 --dec-depth 2
--transformer-ffn-activation swish --tied-embeddings-all --mini-batch 64 --after-batches 100
--learn-rate 0.01 --lr-warmup 50 --optimizer-params 0.9 0.98 1e-9 --seed 1 --workspace 300"""


def main() -> None:
    """Train, decode, and write expected.json: {search: [[piece, ...] of each text]}."""
    triples = list(itertools.product(SUBJECTS.items(), VERBS.items(), OBJECTS.items()))
    english = [" ".join(own for own, _ in words) + "." for words in triples]
    german = [" ".join(other for _, other in words) + "." for words in triples]
    languages = {">>deu<<": german, ">>xxx<<": [text.upper() for text in english]}
    sides = {"source": english, "target": [*german, *languages[">>xxx<<"]]}
    models = {}
    for name, lines in sides.items():
        path = pathlib.Path(f"{name}.spm")
        with path.open("wb") as file:
            sentencepiece.SentencePieceTrainer.Train(
                sentence_iterator=iter(lines),
                model_writer=file,
                vocab_size=90,
                hard_vocab_limit=False,
                minloglevel=2,
            )
        models[name] = sentencepiece.SentencePieceProcessor(model_file=str(path))
    found = [m.IdToPiece(i) for m in models.values() for i in range(3, m.GetPieceSize())]
    pieces = ["</s>", "<unk>", *dict.fromkeys(found), *languages]
    lines = [f'"{piece}": {i}\n' for i, piece in enumerate(pieces)]
    pathlib.Path("vocab.yml").write_text("".join(lines))
    pairs = [
        ([label, *models["source"].EncodeAsPieces(text)], models["target"].EncodeAsPieces(output))
        for label, outputs in languages.items()
        for text, output in zip(english, outputs)
    ]
    for name, rows in zip(sides, zip(*pairs)):
        pathlib.Path(f"train.{name}").write_text("".join(f"{' '.join(row)}\n" for row in rows))
    common = "--vocabs vocab.yml vocab.yml --cpu-threads 1 --quiet"
    pymarian.Trainer(f"{TRAINING} {common} --model model.npz".replace("\n", " ")).train()
    texts = [f"{label} {text}" for label in languages for text in english][::3]
    expected = {"texts": texts}
    for beams, normalize in SEARCHES:
        options = f"--models model.npz --beam-size {beams} --normalize {normalize} --workspace 300"
        answers = pymarian.Translator(f"{options} {common}").translate(
            [" ".join(source) for source, _ in pairs[::3]]
        )
        expected[f"{beams} {normalize}"] = [answer.split() for answer in answers]
    pathlib.Path("expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    main()
