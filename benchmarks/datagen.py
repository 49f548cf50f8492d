"""How long t2t-lite-datagen takes, and how much memory, on a corpus of natural lengths.

    python benchmarks/datagen.py --pairs=4500000 --num_workers=2

draws the pairs with replacement from the real corpora in --corpora (half of them longer sentences
of news and software help, about 28 words a side; half everyday sentences and captions, about 8),
appends to each side its number, so that no two are equal, writes plain text, and generates from it
in a process of its own. Prints the time of each stage, processor time and the peak of memory over
all processes, the start of a hash of all that was made, and the floor: the time that SentencePiece
alone needs to encode the same text on as many cores. With --beam_pipeline_options it is Apache Beam
that makes the data:

    python benchmarks/datagen.py --pairs=4500000 \\
      --beam_pipeline_options=direct_running_mode=multi_processing,direct_num_workers=2
"""

import argparse
import hashlib
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time

from t2t_lite import machine
from t2t_lite.text import text_files

LONG = [
    *(f"newstest/newstest20{year}.en-{{}}" for year in (12, 13, 14)),
    "libreoffice_help/train.en-{}",
]
SHORT = ["tatoeba/train.en-{}", "multi30k/train"]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    default = os.environ.get("T2T_LITE_DATA", "../shared/data")
    parser.add_argument("--corpora", default=default, type=pathlib.Path)
    parser.add_argument("--pairs", default=500_000, type=int)
    parser.add_argument("--num_workers", default=machine.cores(), type=int)
    parser.add_argument("--vocab_size", default=37_000, type=int)
    parser.add_argument("--language", default="de", choices=["de", "fr"])
    parser.add_argument("--tmp_dir", default=None, help="needs about 1.5 KiB a pair")
    parser.add_argument("--beam_pipeline_options", default=None)
    parser.add_argument("--profile", action="store_true", help="profile one process instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.tmp_dir) as folder:
        _measure(options, pathlib.Path(folder))


def _measure(options: argparse.Namespace, folder: pathlib.Path) -> None:
    words = write_corpus(options, folder / "raw")
    command = [
        *(sys.executable, "-m", "t2t_lite.bin.datagen", "--problem=parallel_text"),
        *(f"--raw_dir={folder / 'raw'}", f"--data_dir={folder / 'data'}"),
        *(f"--vocab_size={options.vocab_size}", f"--num_workers={options.num_workers}"),
    ]
    if options.beam_pipeline_options is not None:
        command.append(f"--beam_pipeline_options={options.beam_pipeline_options}")
    if options.profile:
        command[1:2] = ["-m", "cProfile", "-s", "tottime", "-m"]
        subprocess.run([part.replace("workers=2", "workers=1") for part in command], check=True)
        return
    start = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    memory = _Memory(process.pid)
    stages = [("start", start)]
    assert process.stderr
    for line in process.stderr:
        stages.append((line.strip(), time.perf_counter()))
    if process.wait():
        sys.exit(f"datagen failed: {stages[-1][0]}")
    end = time.perf_counter()
    peak = memory.stop()
    for (stage, begin), (_, after) in zip(stages, [*stages[1:], ("end", end)]):
        print(f"{stage:20} {after - begin:8.1f} s")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, floor = end - start, _floor(options, folder)
    size = sum(path.stat().st_size for path in (folder / "data").iterdir())
    print(
        f"RESULT datagen pairs={options.pairs} workers={options.num_workers} "
        f"words_a_side={words} seconds={seconds:.1f} "
        f"microseconds_a_pair={1e6 * seconds / options.pairs:.1f} "
        f"cpu_seconds={used.ru_utime + used.ru_stime:.1f} sha256={_hash(folder / 'data')} "
        f"peak_mib={peak / 2**20:.0f} data_mib={size / 2**20:.0f} sentencepiece_floor={floor:.1f}"
    )


def _hash(folder: pathlib.Path) -> str:
    """Return the start of a hash over the names and contents of a folder's files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(f"{path.name} {text_files.sha256(path)}".encode())
    return digest.hexdigest()[:16]


def write_corpus(options: argparse.Namespace, folder: pathlib.Path) -> str:
    """Write train and dev, and return the mean number of words a side in each half."""

    def pairs(stem: str) -> list[tuple[str, str]]:
        paths = [
            options.corpora / f"{stem.format(options.language)}.{side}.gz"
            for side in ("en", options.language)
        ]
        return list(text_files.read_pairs(*paths))

    rng = random.Random(0)
    pools = [[pair for stem in stems for pair in pairs(stem)] for stems in (LONG, SHORT)]
    pools[0] = [pair for pair in pools[0] if pair[0].count(" ") >= 14]
    folder.mkdir()
    words = [0, 0]
    with open(folder / "train.source", "w") as source, open(folder / "train.target", "w") as target:
        for number in range(options.pairs):
            one = rng.choice(pools[number % 2])
            source.write(f"{one[0]} {number}\n")
            target.write(f"{one[1]} {number}\n")
            words[number % 2] += one[0].count(" ") + one[1].count(" ") + 4
    for side, lines in zip(("source", "target"), zip(*pools[0][:3000])):
        text_files.write_lines(folder / f"dev.{side}", lines)
    return "and".join(f"{count / options.pairs:.1f}" for count in words)


def _floor(options: argparse.Namespace, folder: pathlib.Path) -> float:
    """Return the seconds that SentencePiece's own threads would need to encode all the text."""
    import itertools

    import sentencepiece

    (model,) = (folder / "data").glob("vocab.*.model")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    seconds = count = 0.0
    for side in ("source", "target"):
        with open(folder / "raw" / f"train.{side}") as file:
            lines = list(itertools.islice(file, 100_000))
        start = time.perf_counter()
        processor.Encode(lines, num_threads=options.num_workers)
        seconds += time.perf_counter() - start
        count += len(lines)
    return seconds / count * 2 * options.pairs


class _Memory(threading.Thread):
    """Watches the resident memory of a process and all its descendants; the peak of the sum."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self._pid, self._peak, self._running = pid, 0, True
        self.start()

    def run(self) -> None:
        while self._running:
            self._peak = max(self._peak, sum(map(_resident, _family(self._pid))))
            time.sleep(0.2)

    def stop(self) -> int:
        self._running = False
        self.join()
        return self._peak


def _family(pid: int) -> list[int]:
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(one for child in children for one in _family(int(child)))]


def _resident(pid: int) -> int:
    try:
        pages = pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
