"""Blockwise parallel decoding beside greedy decoding and beam search: prints RESULT {json}.

  python benchmarks/blockwise.py --output_dir=run_heads --source=test.en --reference=test.de

Of all sentences: whether outputs are those of greedy decoding, tokens and steps, and with
--reference BLEU. Then times of one sentence after the other (the first --sentences) and of batches,
all ways of decoding in turns, so that what else the machine does meets all of them: medians of the
clock, and least processor times. `speed` is greedy decoding's time over its own.
"""

import argparse
import json
import os
import pathlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def main() -> None:
    """Measure, and print a line for each way of decoding."""
    flags = _flags()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    from t2t_lite.decode import translator

    tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    ways: dict[str, dict[str, Any]] = {"greedy": {"beam_size": 1}}
    for k in flags.parallel_heads:
        ways[f"blocks of {k}"] = {"beam_size": 1, "parallel_heads": k}
    most: dict[str, Any] = {"beam_size": 1, "parallel_heads": flags.parallel_heads[-1]}
    for top in flags.accept_top:
        ways[f"top {top}"] = {**most, "accept_top": top}
    for distance in flags.accept_distance:
        ways[f"within {distance}"] = {**most, "accept_distance": distance}
    if not flags.no_beam:
        ways["beam 4"] = {"beam_size": 4}
    models = {
        name: translator.Translator.from_output_dir(
            flags.output_dir, flags.checkpoint_path, precision=flags.precision, **way
        )
        for name, way in ways.items()
    }
    lines = flags.source.read_text("utf-8").splitlines()
    results: dict[str, dict[str, Any]] = {name: {"decoding": name} for name in models}
    greedy = None
    for name, model in models.items():
        outputs = model.translate(lines)
        if greedy is None:
            greedy = outputs
        results[name] |= {
            "equal": sum(one.ids == other.ids for one, other in zip(outputs, greedy)),
            "of": len(lines),
            "tokens": sum(len(one.ids) for one in outputs),
        }
        if model.options.parallel_heads:
            results[name]["tokens_per_step"] = round(model.tokens_per_step(lines), 3)
        if flags.reference:
            references = flags.reference.read_text("utf-8").splitlines()
            texts = [one.text for one in outputs]
            for score_name, value in model.task.scores(texts, references).items():
                results[name][score_name] = round(value, 2)
    print(f"DECODED {json.dumps(list(results.values()))}", flush=True)
    some = lines[: flags.sentences]
    add_times(
        results,
        "one",
        one_by_one(models, some),
        rounds=flags.rounds,
        per=len(some),
    )
    batch = lines[: flags.batch]
    add_times(
        results,
        "batch",
        {name: lambda model=model: model.translate(batch) for name, model in models.items()},
        rounds=flags.rounds,
        per=len(batch),
    )
    for result in results.values():
        print(f"RESULT {json.dumps(result)}", flush=True)


def one_by_one(models: Mapping[str, Any], lines: Sequence[str]) -> dict[str, Callable[[], Any]]:
    """Return by each model's name what translates the lines alone, one after the other."""
    return {
        name: lambda model=model: [model.translate([line]) for line in lines]
        for name, model in models.items()
    }


def add_times(
    results: dict[str, dict[str, Any]],
    kind: str,
    functions: dict[str, Callable[[], Any]],
    *,
    rounds: int,
    per: int,
) -> None:
    """Add to the results the milliseconds a sentence of functions that take `per` sentences."""
    wall: dict[str, list[float]] = {name: [] for name in functions}
    cpu: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            start, start_cpu = time.perf_counter(), time.process_time()
            function()
            if number:  # the first round warms up
                wall[name].append((time.perf_counter() - start) * 1e3 / per)
                cpu[name].append((time.process_time() - start_cpu) * 1e3 / per)
    for name, result in results.items():
        result[f"{kind}_ms"] = round(statistics.median(wall[name]), 3)
        result[f"{kind}_cpu_ms"] = round(min(cpu[name]), 3)
        result[f"{kind}_speed"] = round(_ratio(wall["greedy"], wall[name]), 2)
        result[f"{kind}_cpu_speed"] = round(min(cpu["greedy"]) / min(cpu[name]), 2)


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios, round by round."""
    return statistics.median(one / other for one, other in zip(ours, theirs))


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", required=True, help="of a training of parallel heads")
    parser.add_argument("--checkpoint_path")
    parser.add_argument("--source", type=pathlib.Path, required=True, help="sentences, one a line")
    parser.add_argument("--reference", type=pathlib.Path, help="for BLEU")

    def numbers(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
        return lambda text: [kind(part) for part in text.split(",") if part]

    parser.add_argument("--parallel_heads", type=numbers(int), default=[4], help="e.g. 2,3,4")
    parser.add_argument("--accept_top", type=numbers(int), default=[], help="e.g. 2,3")
    parser.add_argument("--accept_distance", type=numbers(float), default=[], help="e.g. 0.5,1")
    parser.add_argument("--no_beam", action="store_true", help="no beam search")
    parser.add_argument("--sentences", type=int, default=100, help="timed one by one")
    parser.add_argument("--batch", type=int, default=128, help="sentences timed as a batch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="float32")
    return parser.parse_args()


if __name__ == "__main__":
    main()
