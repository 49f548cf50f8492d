"""Make a corpus of long documents from one of sentences, by joining consecutive ones.

  python scripts/join_sentences.py train.en train.de --raw_dir=documents --words=300,1200

Each document has a number of words, drawn from the range, of its longer side. Every 25th goes to
dev, the one before it to test, all others to train, as {train,dev,test}.{source,target} of
--problem=parallel_text. --sentences_dir takes the same splits with the sentences as they were.
Files may be compressed.
"""

import argparse
import pathlib
import random
from collections.abc import Iterable, Iterator

from t2t_lite.text import text_files

_EVERY = 25
Pair = tuple[str, str]


def documents(pairs: Iterable[Pair], words: tuple[int, int], seed: int) -> Iterator[list[Pair]]:
    """Yield the pairs of each document; what is left at the end and too short for one is left out.

    >>> list(documents([("a b", "c"), ("d", "e f"), ("g", "h")], words=(3, 3), seed=1))
    [[('a b', 'c'), ('d', 'e f')]]
    """
    draw = random.Random(seed)
    wanted, document = draw.randint(*words), []
    for pair in pairs:
        document.append(pair)
        if max(len(text.split()) for text in joined(document)) >= wanted:
            yield document
            wanted, document = draw.randint(*words), []


def joined(document: Iterable[Pair]) -> Pair:
    """Return the two sides of a document as one text each."""
    sources, targets = zip(*document)
    return " ".join(sources), " ".join(targets)


def main() -> None:
    """Read the two sides, write the six files, tell how many documents there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--raw_dir", type=pathlib.Path, required=True)
    parser.add_argument("--sentences_dir", type=pathlib.Path)
    parser.add_argument("--words", default="300,1200", help="fewest and most of a document")
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    sources, targets = (list(text_files.read_lines(path)) for path in (flags.source, flags.target))
    if len(sources) != len(targets):
        parser.error(f"expected as many lines: {len(sources)} and {len(targets)}")
    fewest, most = map(int, flags.words.split(","))
    splits: dict[str, list[list[Pair]]] = {"train": [], "dev": [], "test": []}
    for number, document in enumerate(documents(zip(sources, targets), (fewest, most), flags.seed)):
        split = {_EVERY - 1: "dev", _EVERY - 2: "test"}.get(number % _EVERY, "train")
        splits[split].append(document)
    for split, its_documents in splits.items():
        _write(flags.raw_dir, split, [joined(document) for document in its_documents])
        if flags.sentences_dir:
            _write(flags.sentences_dir, split, [pair for one in its_documents for pair in one])
        print(f"{split}: {len(its_documents)} documents")


def _write(folder: pathlib.Path, split: str, pairs: list[Pair]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for side, texts in zip(("source", "target"), zip(*pairs)):
        text_files.write_lines(folder / f"{split}.{side}", texts)


if __name__ == "__main__":
    main()
