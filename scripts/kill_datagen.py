"""Kill t2t-lite-datagen at random moments, under load; its data must equal an undisturbed run's.

  python scripts/kill_datagen.py [--rounds=20] [--kills=5] [--load=4] [--seed=1]

A round kills the same command with SIGKILL so many times, each at a moment of the time that an
undisturbed one takes, and then lets it finish. In data_dir there must be then the same files with
the same bytes, and nothing else. `--load` processes keep the cores busy meanwhile. It prints a line
for each round and exits with status 1 if anything differs.
"""

import argparse
import contextlib
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

_PAIRS = 12_000  # two shards


def main() -> None:
    """Run the rounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--kills", type=int, default=5, help="of each round")
    parser.add_argument("--load", type=int, default=4, help="busy processes beside it")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder, _load(arguments.load):
        work = pathlib.Path(folder)
        _write_corpus(work / "raw")
        start = time.monotonic()
        subprocess.run(_command(work, "undisturbed"), check=True, stdout=subprocess.DEVNULL)
        whole = time.monotonic() - start
        expected = _contents(work / "undisturbed")
        print(f"undisturbed: {whole:.1f} s, {len(expected)} files", flush=True)
        differing = 0
        for number in range(1, arguments.rounds + 1):
            moments = [rng.uniform(0, whole) for _ in range(arguments.kills)]
            name = f"round-{number}"
            killed = sum(_killed(_command(work, name), moment) for moment in moments)
            subprocess.run(_command(work, name), check=True, stdout=subprocess.DEVNULL)
            made = _contents(work / name)
            different = sorted(
                file
                for file in made.keys() | expected.keys()
                if made.get(file) != expected.get(file)
            )
            differing += bool(different)
            verdict = f"DIFFERENT: {', '.join(different)}" if different else "equal"
            shown = ", ".join(f"{moment:.1f}" for moment in moments)
            print(f"round {number}: {killed} killed at {shown} s, {verdict}", flush=True)
    if differing:
        raise SystemExit(f"{differing} of {arguments.rounds} rounds differ")


def _command(work: pathlib.Path, name: str) -> list[str]:
    flags = ["--problem=parallel_text", f"--raw_dir={work / 'raw'}", f"--data_dir={work / name}"]
    module = [sys.executable, "-m", "t2t_lite.bin.datagen"]
    return [*module, *flags, "--vocab_size=600", "--num_workers=2"]


def _killed(command: list[str], moment: float) -> bool:
    """Start a command and kill it after so many seconds; return whether it was still at work."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment)
        return False
    process.kill()
    process.wait()
    return True


def _contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder; of the folders only that they are there."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


def _write_corpus(folder: pathlib.Path) -> None:
    folder.mkdir()
    rng = random.Random(0)
    words = ["the", "dog", "cat", "house", "sees", "runs", "green", "small", "and", "of", "never"]
    for split, size in (("train", _PAIRS), ("dev", 30)):
        lines = [f"{' '.join(rng.choices(words, k=rng.randint(1, 30)))} {i}" for i in range(size)]
        for side, text in (("source", lines), ("target", [line[::-1] for line in lines])):
            (folder / f"{split}.{side}").write_text("\n".join(text) + "\n")


@contextlib.contextmanager
def _load(number: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
