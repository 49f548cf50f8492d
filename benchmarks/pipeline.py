"""How many tokens a second the input pipeline delivers, alone, in one process.

    python benchmarks/pipeline.py --problem=multi30k_ende --data_dir=data

prints real (not padded) tokens of both sides, the fill and the number of shapes, for batches by
length and for packed rows. Compare with the tokens a second that training consumes
(benchmarks/train_step.py).
"""

import argparse
import time


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problem", required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--batch_tokens", default=25_000, type=int)
    parser.add_argument("--max_length", default=256, type=int)
    parser.add_argument("--seconds", default=15.0, type=float)
    options = parser.parse_args()

    from t2t_lite import registry
    from t2t_lite.data import pipeline

    problem = registry.problem(options.problem)
    sizes = {"batch_tokens": options.batch_tokens, "max_length": options.max_length}
    for kind, make in (("buckets", pipeline.train_batches), ("packed", pipeline.packed_batches)):
        iterator = iter(make(problem, options.data_dir, seed=0, **sizes))
        next(iterator)
        batches, start = [], time.perf_counter()
        while time.perf_counter() < start + options.seconds:
            batch = next(iterator)
            batches.append({key: batch[key] for key in ("inputs", "targets")})
        seconds = time.perf_counter() - start
        fill = pipeline.fill(batches)
        padded = sum(int(ids.shape[0] * ids.shape[1]) for one in batches for ids in one.values())
        shapes = len({(one["inputs"].shape, one["targets"].shape) for one in batches})
        print(
            f"RESULT pipeline kind={kind} problem={options.problem} "
            f"batch_tokens={options.batch_tokens} tokens_per_second={fill * padded / seconds:.0f} "
            f"fill={fill:.4f} shapes={shapes}"
        )


if __name__ == "__main__":
    main()
