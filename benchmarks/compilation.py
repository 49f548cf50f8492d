"""What XLA's compilation of a training step takes, by the number of shapes of batches.

    python benchmarks/compilation.py --hparams_set=transformer_base --shapes=4

calls the step with batches of --shapes different lengths, XLA on, of two rows each: how long
compilation takes does not depend on the rows, and the call itself is short. Prints for each shape
the seconds and the processor seconds of the first call and of the second, which only computes. XLA
compiles for the device at hand: on a processor the figures stand in for those of a GPU.
"""

import argparse
import time

from t2t_lite import registry


def main() -> None:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hparams_set", default="transformer_base")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--shapes", type=int, default=4)
    flags = parser.parse_args()

    import tensorflow as tf

    from t2t_lite.model import transformer
    from t2t_lite.train import devices, optimizer, step

    hparams = registry.hparams(flags.hparams_set)
    model = transformer.Transformer(hparams, flags.vocab_size)
    train_step = step.TrainStep(
        model,
        optimizer.Adam(model.named_variables(), beta1=0.9, beta2=0.98, epsilon=1e-9),
        hparams=hparams,
        strategy=devices.strategy("one_device"),
        xla=True,
        random_seed=1,
    )

    def call(length: int) -> tuple[float, float]:
        ids = tf.fill([2, length], 7)
        wall, cpu = time.perf_counter(), time.process_time()
        float(train_step({"inputs": ids, "targets": ids}, step=1, learning_rate=1e-4).loss)
        return time.perf_counter() - wall, time.process_time() - cpu

    call(4)  # initializes devices and the optimizer
    for index in range(flags.shapes):
        length = 8 * (index + 1)
        (first, first_cpu), (second, second_cpu) = call(length), call(length)
        print(
            f"RESULT set={flags.hparams_set} length={length} first_s={first:.1f} "
            f"first_cpu_s={first_cpu:.1f} second_s={second:.2f} second_cpu_s={second_cpu:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
