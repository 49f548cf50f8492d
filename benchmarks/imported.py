"""An imported model beside the framework that has trained it: the same numbers, the same outputs?

  scripts/train_elsewhere.sh marian raw_multi30k work pymarian/bin/python
  t2t-lite-import --from=marian --model=work/model --output_dir=work/run
  pymarian/bin/python benchmarks/decode_text.py --source=work/test_2016_flickr.en \\
    --target=work/test_2016_flickr.de --marian=work/model/model.npz \\
    --vocab=work/model/source.spm,work/model/target.spm,work/model/vocab.yml \\
    --outputs=work/theirs.de --logits=work/theirs.npz --times=0
  python benchmarks/imported.py --output_dir=work/run --source=work/test_2016_flickr.en \\
    --reference=work/test_2016_flickr.de --outputs=work/theirs.de --logits=work/theirs.npz \\
    --raw_dir=work

decode_text.py says how the other frameworks decode, and compares speeds. tensor2tensor lets an
output end where others do not: --decode_hparams=beam_size=4,alpha=0. Prints RESULT {json}:

  logits     the largest difference over 100 pairs, of all logits or of the targets' probabilities
  outputs    how many are equal, BLEU of both; of those that are not, how many of theirs are less
             probable than ours, by the model itself, or have an unknown token. Prints these, too.
  serving    of --served sentences how many answers of the export in the C program and in Python are
             the decoder's
  training   with --raw_dir, which holds Multi30k as plain text: the dev loss (of a token, without
             smoothing) as imported and after each quarter of --train_steps
"""

import argparse
import importlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite.decode import devices, forced, options, scoring, translator
from t2t_lite.evaluate import bleu
from t2t_lite.serving import export, exported
from t2t_lite.text import vocabulary


def main() -> None:
    """Measure, and print a line for each claim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", required=True, help="the imported model")
    parser.add_argument("--source", type=pathlib.Path, required=True, help="sentences, one a line")
    parser.add_argument("--reference", type=pathlib.Path, required=True)
    parser.add_argument("--outputs", type=pathlib.Path, help="of the framework, by decode_text.py")
    parser.add_argument("--logits", type=pathlib.Path, help="of the framework, by decode_text.py")
    parser.add_argument("--decode_hparams", default="beam_size=4,alpha=0,strict_ends=true")
    parser.add_argument("--served", type=int, default=30, help="sentences; 0: none")
    parser.add_argument("--raw_dir", type=pathlib.Path, help="to train further")
    parser.add_argument("--train_steps", type=int, default=100)
    flags = parser.parse_args()
    sources, references = (
        p.read_text("utf-8").splitlines() for p in (flags.source, flags.reference)
    )
    search = options.parse(flags.decode_hparams)
    model = translator.Translator.from_output_dir(
        flags.output_dir, devices=devices.for_batches(), **search
    )
    if flags.logits:
        _say("logits", **_logits(model, sources, references, np.load(flags.logits)))
    if flags.outputs:
        theirs = flags.outputs.read_text("utf-8").split("\n")[: len(sources)]
        _say("outputs", **_outputs(model, sources, references, theirs))
    with tempfile.TemporaryDirectory() as folder:
        if flags.served:
            texts = sources[: flags.served]
            _say("serving", **_served(model, flags.output_dir, search, texts, pathlib.Path(folder)))
        if flags.raw_dir:
            _say("training", **_trained(model, flags, pathlib.Path(folder)))


def _say(claim: str, **figures: Any) -> None:
    print(f"RESULT {json.dumps({'claim': claim, **figures})}", flush=True)


def _logits(
    model: translator.Translator, sources: Sequence[str], targets: Sequence[str], theirs: Any
) -> dict[str, Any]:
    """Return the largest difference from a file of the framework's (see decode_text.Peer)."""
    own, largest, tokens = model.vocabulary.targets, 0.0, 0
    both = [(i, i) for i in range(vocabulary.EOS_ID, own.size)]  # ids of the same piece
    if "pieces" in theirs:
        numbers = {own.piece(i): i for _, i in both}
        names = enumerate(theirs["pieces"].tolist())
        both = [(i, numbers[piece]) for i, piece in names if piece in numbers]
    their_columns, own_columns = map(list, zip(*both))
    count = sum(name.startswith("pair_") for name in theirs)
    for number, (source, target) in enumerate(zip(sources[:count], targets)):
        inputs = tf.constant([model.task.encode([source], 1000)[0].ids])
        outputs = tf.constant([model.task.encode_targets([target], 1000)[0].ids])
        array = theirs[f"pair_{number}"]
        tokens += len(array)
        if array.ndim == 1:
            found = forced.log_probabilities(model.models, inputs, outputs)[0].numpy()[: len(array)]
        else:
            found = model.models[0](inputs, outputs)[0].numpy()[:, own_columns]
            array = array[:, their_columns]
        largest = max(largest, float(np.abs(found - array).max()))
    return {"pairs": count, "tokens": tokens, "largest_difference": largest}


def _outputs(
    model: translator.Translator,
    sources: Sequence[str],
    references: Sequence[str],
    theirs: Sequence[str],
) -> dict[str, Any]:
    """Return how many outputs are equal; print the others, with their log-probabilities."""
    ours = model.translate(sources)
    others = [i for i, (own, text) in enumerate(zip(ours, theirs)) if own.text != text]
    their_scores = _scores(model, [sources[i] for i in others], [theirs[i] for i in others])
    less_probable = 0
    for i, score in zip(others, their_scores):
        own = ours[i]
        end = "" if own.finished else ", cut off"
        print(f"{i + 1}: ours   {own.score:9.4f}{end}: {own.text}")
        print(f"{i + 1}: theirs {score.log_probability:9.4f}: {theirs[i]}")
        less_probable += score.log_probability < own.score
    return {
        "equal": len(sources) - len(others),
        "of": len(sources),
        "theirs_less_probable": less_probable,
        "theirs_with_unknown": sum("<unk>" in theirs[i] or "⁇" in theirs[i] for i in others),
        "bleu": round(bleu.corpus_score([own.text for own in ours], references), 2),
        "bleu_theirs": round(bleu.corpus_score(theirs, references), 2),
    }


def _scores(
    model: translator.Translator, sources: Sequence[str], targets: Sequence[str]
) -> list[scoring.PairScore]:
    batches = scoring.Scorer(model).score(sources, targets)
    return [score for _, score in sorted(pair for batch in batches for pair in batch)]


def _served(
    model: translator.Translator,
    output_dir: str,
    search: dict[str, Any],
    texts: Sequence[str],
    folder: pathlib.Path,
) -> dict[str, Any]:
    """Return how many texts the export answers as the decoder does, in C and in Python."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
    c_program = importlib.import_module("c_program")  # how the tests run it

    expected = [one.text for one in model.translate(texts)]
    version = export.export(output_dir, folder / "export", **search)
    answers = c_program.run(c_program.build(folder), version, [text.encode() for text in texts])
    in_c = [text for text, _, _ in answers]
    in_python = [output.text for output in exported.load(version).translate(texts)]
    return {
        "of": len(texts),
        "c_program": sum(map(str.__eq__, in_c, expected)),
        "python": sum(map(str.__eq__, in_python, expected)),
    }


def _trained(
    model: translator.Translator, flags: argparse.Namespace, folder: pathlib.Path
) -> dict[str, Any]:
    """Train the model further by the commands; return its losses on the dev split."""
    data, run = folder / "data", folder / "tuned"
    problem, quarter = "--problem=multi30k_ende", flags.train_steps // 4
    commands = (
        ["t2t-lite-datagen", f"--raw_dir={flags.raw_dir}", f"--vocab_from={flags.output_dir}"],
        [
            *("t2t-lite-trainer", f"--output_dir={run}", f"--warm_start_from={flags.output_dir}"),
            *(f"--hparams_set={flags.output_dir}", "--hparams=warmup_steps=1000,batch_tokens=2048"),
            *(f"--train_steps={4 * quarter}", f"--save_checkpoints_steps={quarter}"),
            *("--eval_sentences=0", "--random_seed=1"),
        ],
    )
    for command in commands:
        subprocess.run([*command, problem, f"--data_dir={data}"], check=True, stdout=sys.stderr)
    dev = [flags.raw_dir / f"val.{language}" for language in ("en", "de")]
    pairs = [path.read_text("utf-8").splitlines() for path in dev]
    losses = {0: _loss(model, *pairs)}
    for step in range(quarter, 4 * quarter + 1, quarter):
        tuned = translator.Translator.from_output_dir(run, str(run / f"ckpt-{step}"))
        losses[step] = _loss(tuned, *pairs)
    return {"dev_loss": losses}


def _loss(model: translator.Translator, sources: Sequence[str], targets: Sequence[str]) -> float:
    scores = _scores(model, sources, targets)
    total = math.fsum(score.log_probability for score in scores)
    return round(-total / sum(score.num_tokens for score in scores), 4)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()
