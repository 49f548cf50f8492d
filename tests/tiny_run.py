"""A tiny model with random weights, its vocabulary, and the output_dir of a run that made it."""

import functools
import pathlib

import numpy as np
import tensorflow as tf

from t2t_lite import config
from t2t_lite.model import transformer
from t2t_lite.run import checkpoint, output_dir
from t2t_lite.tasks import parsing, translation
from t2t_lite.text import sentencepiece_vocabulary, vocabulary

HPARAMS = config.HParams(
    d_model=16,
    d_ff=24,
    num_heads=2,
    d_k=8,
    d_v=8,
    num_encoder_layers=1,
    num_decoder_layers=1,
    extra_length=8,
)
SENTENCES = [
    "a dog runs",
    "two dogs run in the park",
    "the man sees a small red house",
    "a woman in a blue dress reads a long book in the park",
    "he sleeps",
]


@functools.cache
def subwords() -> vocabulary.Vocabulary:
    """Return a vocabulary of 300 ids."""
    return sentencepiece_vocabulary.SentencePieceVocabulary(
        sentencepiece_vocabulary.train(SENTENCES * 10, 300)
    )


@functools.cache
def tree_subwords() -> vocabulary.Vocabulary:
    """Return a vocabulary of 300 ids with the symbols of trees: a parser's."""
    symbols = [f" {bracket}{label}" for bracket in "()" for label in ("NP", "PP", "S", "VP")]
    return sentencepiece_vocabulary.SentencePieceVocabulary(
        sentencepiece_vocabulary.train(SENTENCES * 10, 300, symbols=[*symbols, " XX"])
    )


@functools.cache
def task() -> translation.Translation:
    """Return translation with `subwords`."""
    return translation.Translation(subwords())


@functools.cache
def tree_task() -> parsing.Parsing:
    """Return parsing with `tree_subwords`."""
    return parsing.Parsing(tree_subwords())


def model(
    seed: int = 1,
    *,
    eos_gain: float = 8.0,
    vocab_size: int | None = None,
    hparams: config.HParams = HPARAMS,
    dtype: str = "float32",
) -> transformer.Transformer:
    """Return a model whose outputs differ, end at different lengths or hit their limit."""
    result = transformer.Transformer(hparams, vocab_size or subwords().size, dtype=dtype)
    variables = result.named_variables()
    for name, variable in variables.items():
        rng = np.random.default_rng([seed, *name.encode()])  # whatever the variables' order
        variable.assign(rng.normal(1.0 * name.endswith("scale"), 0.4, variable.shape))
    # Random signs: with tied embeddings the model would otherwise repeat its last token.
    signs = np.random.default_rng(seed).choice([-2.0, 2.0], HPARAMS.d_model)
    variables["decoder_0/feed_forward_norm/scale"].assign(signs)
    # The product of this bias with the embedding of EOS is added to the logit of EOS.
    eos_row = tf.cast(variables["embedding/matrix"][1], tf.float32)
    bias = eos_gain * eos_row / tf.reduce_sum(eos_row**2)
    variables["decoder_0/feed_forward_norm/bias"].assign(bias)
    return result


def write(
    directory: pathlib.Path,
    *,
    seeds=(1,),
    problem: str = "toy_ende",
    hparams: config.HParams = HPARAMS,
) -> pathlib.Path:
    """Write an output_dir with one checkpoint for each seed, ckpt-1, ckpt-2, ..."""
    path = directory / "vocab.model"
    directory.mkdir(parents=True, exist_ok=True)
    task_of_run = tree_task() if problem.endswith("_parsing") else task()
    vocab = task_of_run.vocabulary
    path.write_bytes(vocab.model_bytes)
    run = output_dir.Run(
        problem=problem,
        task=task_of_run.name,
        data_dir=str(directory / "data"),
        vocabulary="vocab.tiny.model",
        vocab_size=vocab.size,
        hparams_set="tiny",
        precision="float32",
        random_seed=1,
    )
    target = directory / "run"
    written = output_dir.open_or_create(target, hparams=hparams, run=run, vocabulary_path=path)
    for step, seed in enumerate(seeds, start=1):
        weights = model(seed, vocab_size=vocab.size, hparams=hparams).named_variables()
        checkpoint.write_weights(str(target / f"ckpt-{step}"), weights, written.identity)
    return target
