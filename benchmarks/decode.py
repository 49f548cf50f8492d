"""Beam-4 decoding of a fixed workload, timed: prints one line RESULT {json}.

Workload D: d_model 256, 3 + 3 layers, 4 heads, d_ff 1024, shared vocabulary of 8,000, random
weights; 32 sentences of 32 source ids, every output exactly 32 tokens (EOS blocked). The figure is
target tokens of the best hypothesis a second, in graph mode: what an exported model runs; or with
`--xla` as t2t-lite-decoder --xla=on searches. As in t2t-lite-decoder each thread decodes a part of
the sentences; with `--workers=1` all are one batch whose operations have the threads.
`--target_length` decodes longer outputs.

  python benchmarks/compare.py "python benchmarks/decode.py" "python benchmarks/decode.py --xla"
"""

import argparse
import json
import os
import statistics
import time
from concurrent import futures

BATCH, SOURCE, BEAM, VOCABULARY = 32, 32, 4, 8000


def main() -> None:
    """Time it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--xla", action="store_true")
    parser.add_argument("--hparams_set", help="instead of workload D's sizes")
    parser.add_argument("--vocab_size", type=int, default=VOCABULARY)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--target_length", type=int, default=32)
    parser.add_argument("--threads", type=int, default=int(os.environ.get("BENCH_THREADS", "2")))
    parser.add_argument("--workers", type=int, default=0, help="default: as many as threads")
    parser.add_argument("--runs", type=int, default=int(os.environ.get("BENCH_RUNS", "5")))
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

    decode, num_steps = workload(arguments)
    start = time.perf_counter()
    decode()
    first = time.perf_counter() - start
    decode()
    times, cpu = [], time.process_time()
    for _ in range(arguments.runs):
        start = time.perf_counter()
        decode()
        times.append(time.perf_counter() - start)
    cpu = (time.process_time() - cpu) / arguments.runs
    median, tokens = statistics.median(times), arguments.batch * arguments.target_length
    result = {
        "peer": f"t2t-lite {arguments.precision}{' XLA' * arguments.xla}",
        "threads": arguments.threads,
        "load1": round(os.getloadavg()[0], 2),
        "task": f"decode-beam{BEAM}",
        "tok_s": round(tokens / median),
        "median_s": round(median, 3),
        "min_s": round(min(times), 3),
        "first_call_s": round(first, 2),
        "cpu_s": round(cpu, 3),
        "tok_per_cpu_s": round(tokens / cpu),
        "out": num_steps(),
    }
    print(f"RESULT {json.dumps(result)}", flush=True)


def workload(arguments):
    """Return a function that decodes once, and one that tells the lengths of its outputs."""
    import numpy as np
    import tensorflow as tf

    from t2t_lite import config, registry
    from t2t_lite.decode import beam_search, cached_decoder, candidates, options, static_decoder
    from t2t_lite.model import transformer

    workers = arguments.workers or arguments.threads
    tf.config.threading.set_intra_op_parallelism_threads(max(arguments.threads // workers, 1))
    tf.config.threading.set_inter_op_parallelism_threads(workers)
    tf.random.set_seed(1)
    hparams = config.HParams(
        d_model=256, d_ff=1024, num_heads=4, d_k=64, d_v=64, num_encoder_layers=3,
        num_decoder_layers=3,
    )  # fmt: skip
    if arguments.hparams_set:
        hparams = registry.hparams(arguments.hparams_set)
    decode_options = options.DecodeOptions(
        beam_size=BEAM, min_length=arguments.target_length + 1, precision=arguments.precision
    )
    model = transformer.Transformer(
        hparams, arguments.vocab_size, dtype=decode_options.weights_dtype
    )
    decoder = cached_decoder.of_models([model], decode_options)

    static = static_decoder.StaticDecoder(model, BEAM, decode_options.matmul_dtype)

    any_shape = [tf.TensorSpec([None, None], tf.int32)]
    signature = None if arguments.xla else any_shape  # XLA compiles for each shape

    @tf.function(input_signature=signature, autograph=False, jit_compile=arguments.xla)
    def search(inputs):
        rows = inputs.shape[0] or tf.shape(inputs)[0]
        given = {
            "emittable": candidates.EmittableIds(arguments.vocab_size, forbidden=(0, 2)),
            "max_lengths": tf.fill([rows], arguments.target_length),
        }
        if arguments.xla:
            room, state = arguments.target_length, static.encode(inputs)
            return beam_search.search_in_room(static, state, decode_options, room=room, **given)[0]
        return beam_search.search(decoder, decoder.encode(inputs), decode_options, **given)

    inputs = np.random.default_rng(0).integers(10, arguments.vocab_size, (arguments.batch, SOURCE))
    parts = np.array_split(inputs.astype(np.int32), workers)
    pool = futures.ThreadPoolExecutor(workers)
    return (
        lambda: list(pool.map(lambda part: search(part).scores.numpy(), parts)),
        lambda: sorted({int(n) for part in parts for n in search(part).lengths[:, 0]}),
    )


if __name__ == "__main__":
    main()
