"""What it costs to search for trees only: constrained against free decoding, in turns.

  python benchmarks/parse.py --output_dir=run --checkpoint_path=run/averaged --split=test

Prints for each kind of search the F1 over sentences of up to 40 words and over all, how many of its
outputs were no trees, and the median seconds; then the ratio of the medians.
"""

import argparse
import statistics
import time

from t2t_lite import registry


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--checkpoint_path")
    parser.add_argument("--split", default="test")
    parser.add_argument("--sentences", type=int, default=None, help="from the split's start")
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    _measure(flags)


def _measure(flags: argparse.Namespace) -> None:
    from t2t_lite.data import manifest
    from t2t_lite.decode import devices, translator
    from t2t_lite.run import output_dir
    from t2t_lite.tasks import parsing

    cores = devices.for_batches()
    run = output_dir.read(flags.output_dir).run
    text = manifest.problem_text(run.data_dir, registry.problem(run.problem), flags.split)
    sources, references = text.sources[: flags.sentences], text.references[: flags.sentences]
    parsers = {
        name: translator.Translator.from_output_dir(
            flags.output_dir, flags.checkpoint_path, devices=cores, constrained=constrained
        )
        for name, constrained in (("constrained", True), ("free", False))
    }
    seconds: dict[str, list[float]] = {name: [] for name in parsers}
    for model in parsers.values():
        model.translate(sources[:2])  # traces the search
    for number in range(flags.rounds):
        for name, model in parsers.items():
            start = time.perf_counter()
            found = model.translate(sources)
            seconds[name].append(time.perf_counter() - start)
            if number == 0:
                score = parsing.score([parse.text for parse in found], references)
                malformed = sum(parse.repairs > 0 for parse in found)
                print(
                    f"{name:12} F1 {score.up_to_cutoff.f1:.2f} up to {score.cutoff_length} words, "
                    f"{score.all.f1:.2f} on all; {malformed:,} of {len(found):,} malformed",
                    flush=True,
                )
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name:12} {median:8.1f} s  {len(sources) / median:6.1f} sentences/s")
    print(f"constrained / free: {medians['constrained'] / medians['free']:.2f} x")


if __name__ == "__main__":
    main()
