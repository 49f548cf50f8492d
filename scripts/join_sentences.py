"""Make a corpus of long documents from one of sentences, by joining consecutive ones.

  python scripts/join_sentences.py train.en train.de --raw_dir=documents --words=300,1200

Each document has a number of words, drawn from the range, of its longer side. Every 25th goes to
dev, the one before it to test, all others to train, as {train,dev,test}.{source,target} of
--problem=parallel_text. Files may be compressed.
"""

import argparse
import pathlib
import random
from collections.abc import Iterable, Iterator

from t2t_lite.text import text_files

_EVERY = 25


def documents(
    pairs: Iterable[tuple[str, str]], words: tuple[int, int], seed: int
) -> Iterator[tuple[str, str]]:
    """Yield pairs of documents; what is left at the end and too short for one is left out.

    >>> list(documents([("a b", "c"), ("d", "e f"), ("g", "h")], words=(3, 3), seed=1))
    [('a b d', 'c e f')]
    """
    draw = random.Random(seed)
    wanted, sources, targets = draw.randint(*words), [], []
    for source, target in pairs:
        sources += source.split()
        targets += target.split()
        if max(len(sources), len(targets)) >= wanted:
            yield " ".join(sources), " ".join(targets)
            wanted, sources, targets = draw.randint(*words), [], []


def main() -> None:
    """Read the two sides, write the six files, tell how many documents there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--raw_dir", type=pathlib.Path, required=True)
    parser.add_argument("--words", default="300,1200", help="fewest and most of a document")
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    sources, targets = (list(text_files.read_lines(path)) for path in (flags.source, flags.target))
    if len(sources) != len(targets):
        parser.error(f"expected as many lines: {len(sources)} and {len(targets)}")
    fewest, most = map(int, flags.words.split(","))
    splits: dict[str, list[tuple[str, str]]] = {"train": [], "dev": [], "test": []}
    joined = documents(zip(sources, targets), (fewest, most), flags.seed)
    for number, document in enumerate(joined, start=1):
        split = {0: "dev", _EVERY - 1: "test"}.get(number % _EVERY, "train")
        splits[split].append(document)
    flags.raw_dir.mkdir(parents=True, exist_ok=True)
    for split, its_documents in splits.items():
        for side, texts in zip(("source", "target"), zip(*its_documents)):
            text_files.write_lines(flags.raw_dir / f"{split}.{side}", texts)
        print(f"{split}: {len(its_documents)} documents")


if __name__ == "__main__":
    main()
