"""Kill t2t-lite-datagen at random moments, under load; its data must equal an undisturbed run's.

  python scripts/kill_datagen.py [--rounds=20] [--kills=5] [--load=4] [--seed=1]

A round kills the same command with SIGKILL so many times, each at a random moment of the time that
an undisturbed one takes, and then lets it finish; where it was faster than the moment, it begins
anew. There must be the same files then, with the same bytes, and nothing else. Every second round
has its unfinished work in another folder (--tmp_dir). `--load` processes keep the cores busy.
It prints a line for each round and exits with status 1 if anything differs.
"""

import argparse
import contextlib
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
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
        subprocess.run(_command(work, work / "undisturbed"), check=True, stdout=subprocess.DEVNULL)
        whole = time.monotonic() - start
        expected = _contents(work / "undisturbed")
        print(f"undisturbed: {whole:.1f} s, {len(expected)} files", flush=True)
        differing = 0
        for number in range(1, arguments.rounds + 1):
            folder = work / f"round-{number}"
            moments: list[str] = []
            while len(moments) < arguments.kills:
                moment = rng.uniform(0, whole)
                if _killed(_command(work, folder), moment):
                    moments.append(f"{moment:.1f}")
                else:
                    differing += _differs(folder, expected, "not killed any more")
            subprocess.run(_command(work, folder), check=True, stdout=subprocess.DEVNULL)
            differing += _differs(folder, expected, f"killed at {', '.join(moments)} s")
    if differing:
        raise SystemExit(f"{differing} results differ")


def _differs(folder: pathlib.Path, expected: dict[str, bytes], how: str) -> bool:
    """Compare what a round has made, print the result and remove it."""
    made = _contents(folder)
    names = sorted(name for name in made | expected if made.get(name) != expected.get(name))
    print(f"{folder.name}, {how}: {', '.join(names) or 'equal'}", flush=True)
    shutil.rmtree(folder)
    return bool(names)


def _command(work: pathlib.Path, folder: pathlib.Path) -> list[str]:
    module = [sys.executable, "-m", "t2t_lite.bin.datagen", "--problem=parallel_text"]
    flags = [f"--raw_dir={work / 'raw'}", f"--data_dir={folder / 'data'}", "--vocab_size=600"]
    tmp_dir = [f"--tmp_dir={folder / 'tmp'}"] if folder.name[-1] in "02468" else []
    return [*module, *flags, *tmp_dir, "--num_workers=2"]


def _killed(command: list[str], moment: float) -> bool:
    """Start a command and kill it after so many seconds; return whether it was still at work.

    It may not have gone yet when this returns, as where `timeout -s KILL` has killed it.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment)
        return False
    process.kill()
    threading.Thread(target=process.wait).start()
    return True


def _contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder, and which folders there are but tmp."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if path != folder / "tmp"
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
