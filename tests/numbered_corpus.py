"""Generated raw text whose every line has a number, so that no two pairs are equal."""

import gzip
import pathlib
import random

from t2t_lite.data import generate as generation

WORDS = ["the", "dog", "cat", "house", "sees", "runs", "green", "small", "and", "of", "never"]


def pairs(count, seed=0):
    """Yield pairs of a line and its words in reverse order."""
    rng = random.Random(seed)
    for i in range(count):
        words = rng.choices(WORDS, k=rng.randint(1, 12))
        yield f"{' '.join(words)} {i}", f"{' '.join(reversed(words))} {i}"


def write(folder, count, *, extra=()):
    """Write `count` training pairs and the `extra` ones, dev and test, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, size, seed in (("train", count, 1), ("dev", 30, 2), ("test", 20, 3)):
        lines_of_both = zip(*pairs(size, seed), *(extra if split == "train" else ()))
        for side, lines in zip(("source", "target"), lines_of_both):
            content = "".join(line + "\n" for line in lines).encode()
            (folder / f"{split}.{side}.gz").write_bytes(gzip.compress(content, mtime=0))
    return folder


def generate(problem, raw_dir, data_dir, **options):
    """Generate with a small vocabulary in several chunks and return the manifest."""
    options = {"vocab_size": 400, "num_workers": 1, "chunk_pairs": 1_500, **options}
    return generation.generate(problem, raw_dir=raw_dir, data_dir=data_dir, **options)


def contents(folder):
    """Return the bytes of a folder's files by name."""
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
