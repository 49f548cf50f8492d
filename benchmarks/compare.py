"""Run benchmark commands in turns and print ratios of medians.

  python benchmarks/compare.py "python benchmarks/train_step.py" \
    "other/bin/python benchmarks/train_step_opennmt_tf.py"

Each command prints `RESULT {json}` lines with "peer", "task" and "tok_s". On a shared machine only
what ran interleaved can be compared: every round runs each command once, and the figure of a
peer is the median over rounds. Ratios are to the last command's first result of the same task.
"""

import argparse
import json
import shlex
import statistics
import subprocess
from collections import defaultdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    flags = parser.parse_args()
    speeds: dict[tuple[str, str], list[float]] = defaultdict(list)
    per_cpu: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(flags.rounds):
        for command in flags.commands:
            for result in _results(command):
                key = result["task"], result["peer"]
                speeds[key].append(result["tok_s"])
                per_cpu[key].append(result["tok_per_cpu_s"])
                print(f"round {number + 1}: {key} {result['tok_s']:,} tokens/s", flush=True)
    for task in sorted({task for task, _ in speeds}):
        peers = [peer for other, peer in speeds if other == task]
        base, base_cpu = (statistics.median(t[task, peers[-1]]) for t in (speeds, per_cpu))
        for peer in peers:
            speed, cpu = (statistics.median(table[task, peer]) for table in (speeds, per_cpu))
            print(
                f"{task:14} {peer:40} {speed:8,.0f} tokens/s  {speed / base:5.2f} x   "
                f"{cpu:8,.0f} tokens/CPU-s  {cpu / base_cpu:5.2f} x"
            )


def _results(command: str) -> list[dict]:
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not lines:
        raise SystemExit(f"{command} failed:\n{done.stderr[-2000:]}")
    return [json.loads(line.removeprefix("RESULT ")) for line in lines]


if __name__ == "__main__":
    main()
