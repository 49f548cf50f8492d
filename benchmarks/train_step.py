"""One training step on synthetic batches, with dropout, Adam and the loss fetched each step.

  python benchmarks/train_step.py --precision=bfloat16             # workload W, the default
  python benchmarks/train_step.py --hparams_set=transformer_base --batch=64 --source=64 --target=64

Workload W: d_model 256, 3 + 3 layers, 4 heads, d_ff 1024, vocabulary 8,000, 64 rows of 32 source
and 32 target tokens. Prints one `RESULT {json}` line: tok_s counts source and target tokens.
"""

import argparse
import json
import os
import resource
import statistics
import time

from t2t_lite import config, registry

WORKLOAD_W = config.HParams(
    d_model=256, d_ff=1024, num_heads=4, d_k=64, d_v=64, num_encoder_layers=3, num_decoder_layers=3
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--hparams_set", help="instead of workload W")
    parser.add_argument("--hparams", default="", help="further ones, as the trainer's --hparams")
    parser.add_argument("--xla", choices=["auto", "on", "off"], default="auto")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--source", type=int, default=32)
    parser.add_argument("--target", type=int, default=32)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("BENCH_STEPS", "20")))
    flags = parser.parse_args()
    print("RESULT " + json.dumps(_measure(flags)), flush=True)


def _measure(flags: argparse.Namespace) -> dict:
    import numpy as np
    import tensorflow as tf

    from t2t_lite.model import transformer
    from t2t_lite.train import cost, devices, optimizer, step

    threads = int(os.environ.get("BENCH_THREADS", "0"))
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    hparams = registry.hparams(flags.hparams_set) if flags.hparams_set else WORKLOAD_W
    hparams = config.override(hparams, flags.hparams)
    policy = devices.dtype_policy(flags.precision)
    model = transformer.Transformer(hparams, flags.vocab_size, dtype=policy)
    train_step = step.TrainStep(
        model,
        optimizer.Adam(model.named_variables(), beta1=0.9, beta2=0.98, epsilon=1e-9),
        hparams=hparams,
        strategy=devices.strategy("one_device"),
        xla=devices.use_xla(flags.xla),
        random_seed=1,
    )
    random = np.random.default_rng(0)
    shapes = {"inputs": (flags.batch, flags.source), "targets": (flags.batch, flags.target)}
    batch = {
        name: tf.constant(random.integers(10, flags.vocab_size, shape), tf.int32)
        for name, shape in shapes.items()
    }

    def run(number: int) -> float:
        start = time.perf_counter()
        float(train_step(batch, step=number, learning_rate=1e-4).loss)
        return time.perf_counter() - start

    first, _, _ = run(1), run(2), run(3)
    cpu = _cpu_seconds()
    seconds = [run(number) for number in range(4, 4 + flags.steps)]
    cpu = (_cpu_seconds() - cpu) / flags.steps
    median = statistics.median(seconds)
    tokens = flags.batch * (flags.source + flags.target)
    sizes = {"batch": flags.batch, "source": flags.source, "target": flags.target}
    flops = cost.step_flops(hparams, model.embedding.num_rows, **sizes)
    return {
        "peer": f"t2t-lite {flags.precision}",
        "threads": threads or os.cpu_count(),
        "load1": round(os.getloadavg()[0], 2),
        "task": "train",
        "tok_s": round(tokens / median),
        "step_ms_median": round(median * 1e3, 1),
        "step_ms_min": round(min(seconds) * 1e3, 1),
        "first_call_s": round(first, 2),
        "cpu_s_per_step": round(cpu, 3),
        "tok_per_cpu_s": round(tokens / cpu),
        "params": model.count_params(),
        "gflop_s": round(flops / median / 1e9),
        "device": tf.config.list_physical_devices()[-1].device_type,
    }


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
