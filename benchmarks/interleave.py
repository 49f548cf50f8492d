"""Run several benchmarks by turns and compare their medians: on a noisy machine nothing else is fair.

Each command prints lines RESULT {json} (decode.py and train_step.py do); the first one is what the
others are divided by.

  python benchmarks/interleave.py --rounds=5 "python benchmarks/decode.py" "peer/python bench.py"
"""

import argparse
import json
import statistics
import subprocess
import sys


def main() -> None:
    """Run the commands and print a table of medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--task", default="", help="only results whose task begins so")
    parser.add_argument("commands", nargs="+")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, list[float]]] = {}
    for turn in range(arguments.rounds):
        for command in arguments.commands:
            for result in _results(command):
                if result["task"].startswith(arguments.task):
                    row = figures.setdefault(result["peer"], {"tok_s": [], "tok_per_cpu_s": []})
                    for name, values in row.items():
                        values.append(result[name])
        print(f"round {turn + 1} of {arguments.rounds} done", file=sys.stderr)
    first = next(iter(figures.values()))
    print(f"{'':32} {'tokens/s':>9} {'ratio':>6} {'per CPU-s':>10} {'ratio':>6}")
    for peer, row in figures.items():
        print(
            f"{peer:32}"
            f" {statistics.median(row['tok_s']):9,.0f} {_ratio(first, row, 'tok_s'):6.2f}"
            f" {statistics.median(row['tok_per_cpu_s']):10,.0f}"
            f" {_ratio(first, row, 'tok_per_cpu_s'):6.2f}"
        )


def _results(command: str) -> list[dict]:
    output = subprocess.run(command, shell=True, capture_output=True, text=True)
    lines = [line for line in output.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        sys.exit(f"{command} printed no RESULT line:\n{output.stderr[-2000:]}")
    return [json.loads(line.removeprefix("RESULT ")) for line in lines]


def _ratio(first: dict[str, list[float]], row: dict[str, list[float]], name: str) -> float:
    """Return how many times faster the first is than this row."""
    return statistics.median(first[name]) / statistics.median(row[name])


if __name__ == "__main__":
    main()
