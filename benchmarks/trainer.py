"""What of the bare training step's speed the trainer keeps on a real corpus.

  python benchmarks/trainer.py --problem=multi30k_ende --data_dir=data

trains as t2t-lite-trainer does and, in turns of ten steps, runs the step alone on synthetic batches
of the same shapes, without pipeline, padding and reports. Prints real tokens a second of the
trainer, all tokens a second of the bare step, and their ratio; compilation counts in neither.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator

from t2t_lite import config, registry

TURN = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problem", required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--hparams_set", default="transformer_tiny")
    parser.add_argument("--hparams", default="")
    parser.add_argument("--steps", type=int, default=200)
    flags = parser.parse_args()
    hparams = config.override(registry.hparams(flags.hparams_set), flags.hparams)
    with tempfile.TemporaryDirectory() as directory:
        _measure(flags, hparams, directory)


def _measure(flags: argparse.Namespace, hparams: config.HParams, directory: str) -> None:
    import numpy as np
    import tensorflow as tf

    from t2t_lite.train import options, preparation, reporter

    training = preparation.prepare(
        registry.problem(flags.problem),
        data_dir=flags.data_dir,
        directory=directory,
        hparams=hparams,
        hparams_set=flags.hparams_set,
        options=options.TrainerOptions(),
    )
    last = flags.steps * 10  # most of the first steps compile
    report = reporter.Reporter(None, stream=sys.stderr, first_step=0, last_step=last)
    seen: list[dict[str, tf.Tensor]] = []
    training.batches = _noting(training.batches, seen)
    random = np.random.default_rng(0)
    seconds = {"trainer": 0.0, "bare step": 0.0}
    tokens = {"trainer": 0, "bare step": 0}

    turn: list[dict[str, tf.Tensor]] = []
    num_steps = 0
    for step in range(1, last + 1):
        traces = training.train_step.traces
        start = time.perf_counter()
        training.update(step, report)
        elapsed = time.perf_counter() - start
        if training.train_step.traces > traces:
            continue
        num_steps += 1
        seconds["trainer"] += elapsed
        tokens["trainer"] += sum(int(tf.math.count_nonzero(x)) for x in seen[-1].values())
        turn.append(
            {
                side: tf.constant(random.integers(10, 1000, x.shape), tf.int32)
                for side, x in seen[-1].items()
            }
        )
        if len(turn) == TURN:
            start = time.perf_counter()
            for batch in turn:
                float(training.train_step(batch, step=1, learning_rate=0.0).loss)
            seconds["bare step"] += time.perf_counter() - start
            tokens["bare step"] += sum(int(tf.size(x)) for batch in turn for x in batch.values())
            turn.clear()
        if num_steps == flags.steps:
            break
    report.close()
    speed = {name: tokens[name] / seconds[name] for name in tokens}
    print(
        f"trainer {speed['trainer']:,.0f} real tokens/s, bare step {speed['bare step']:,.0f} "
        f"tokens/s: {speed['trainer'] / speed['bare step']:.1%}"
    )


def _noting(batches: Iterator, seen: list) -> Iterator:
    """Pass batches on and keep the last one in `seen`."""
    for batch in batches:
        seen[:] = [batch]
        yield batch


if __name__ == "__main__":
    main()
