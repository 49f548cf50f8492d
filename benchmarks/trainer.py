"""What of the bare training step's speed the trainer keeps on a real corpus.

  python benchmarks/trainer.py --problem=multi30k_ende --data_dir=data

runs the step on synthetic batches, without pipeline, padding and reports, then trains as
t2t-lite-trainer does: the same shapes, each as often. Prints real tokens a second of the trainer,
all tokens a second of the bare step, and their ratio; compilation counts in neither.
"""

import argparse
import collections
import sys
import tempfile
import time

from t2t_lite import config, registry


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problem", required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--hparams_set", default="transformer_tiny")
    parser.add_argument("--hparams", default="")
    parser.add_argument("--steps", type=int, default=300)
    flags = parser.parse_args()
    hparams = config.override(registry.hparams(flags.hparams_set), flags.hparams)
    hparams = config.override(hparams, f"train_steps={flags.steps}")
    bare = _bare_speed(flags, hparams)
    real = _trainer_speed(flags, hparams)
    print(f"trainer {real:,.0f} real tokens/s, bare step {bare:,.0f} tokens/s: {real / bare:.1%}")


def _trainer_speed(flags: argparse.Namespace, hparams: config.HParams) -> float:
    from t2t_lite.train import trainer

    with tempfile.TemporaryDirectory() as directory:
        summary = trainer.train(
            registry.problem(flags.problem),
            data_dir=flags.data_dir,
            directory=directory,
            hparams=hparams,
            hparams_set=flags.hparams_set,
            options=trainer.Options(eval_frequency=10**9, eval_sentences=0),
            stream=sys.stderr,
        )
    return summary.tokens_per_second


def _bare_speed(flags: argparse.Namespace, hparams: config.HParams) -> float:
    import numpy as np
    import tensorflow as tf

    from t2t_lite.data import manifest, pipeline, vocabulary
    from t2t_lite.model import transformer
    from t2t_lite.train import devices, optimizer, step

    problem = registry.problem(flags.problem)
    sizes = {
        "batch_tokens": hparams.batch_tokens,
        "max_length": hparams.max_length,
        "max_buckets": hparams.max_buckets,
    }
    batches = pipeline.train_batches(problem, flags.data_dir, seed=1, **sizes)
    counts = collections.Counter(
        tuple(tuple(batch[key].shape) for key in ("inputs", "targets"))
        for batch in batches.take(flags.steps)
    )
    path = manifest.load(flags.data_dir, problem).vocabulary_path
    vocab_size = vocabulary.load(path).size
    policy = devices.dtype_policy(devices.precision("auto"))
    model = transformer.Transformer(hparams, vocab_size, dtype=policy)
    train_step = step.TrainStep(
        model,
        optimizer.Adam(model.named_variables(), beta1=0.9, beta2=0.98, epsilon=1e-9),
        hparams=hparams,
        strategy=devices.strategy("one_device"),
        xla=devices.use_xla("auto"),
        random_seed=1,
    )
    random = np.random.default_rng(0)
    synthetic = {
        shapes: {
            key: tf.constant(random.integers(10, vocab_size, shape), tf.int32)
            for key, shape in zip(("inputs", "targets"), shapes)
        }
        for shapes in counts
    }

    def run(shapes) -> None:
        float(train_step(synthetic[shapes], step=1, learning_rate=1e-4).loss)

    for shapes in counts:
        run(shapes)

    start = time.perf_counter()
    for shapes in counts.elements():
        run(shapes)
    seconds = time.perf_counter() - start
    return sum(n * sum(b * t for b, t in shapes) for shapes, n in counts.items()) / seconds


if __name__ == "__main__":
    main()
