"""Learn a shortlist from a problem's training shards (see docs/decode.md).

  python scripts/make_shortlist.py --problem=multi30k_ende --data_dir=data --output=shortlist.txt

The --frequent most frequent target pieces may always come. Beside these each source piece has the
--targets likeliest that it may become (IBM model 1, learnt by EM), and itself where both sides
share a vocabulary. The format is CTranslate2's vocabulary map. Of the dev split it tells which
share of the target tokens is listed for its sentence, and how many ids a sentence has.

A million pairs are enough: of more, every second, third ... is read. Memory is bounded too: of the
pairs of a source and a target piece that are seen together only the most frequent stay.

Shapes: P pairs of sentences, L links of a source token to a target token, C pairs of pieces.
"""

import argparse
import array
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from t2t_lite import errors, registry
from t2t_lite.data import manifest, shards
from t2t_lite.decode import shortlist
from t2t_lite.text import any_vocabulary, text_files
from t2t_lite.text import vocabulary as vocabularies

EOS = vocabularies.EOS_ID
_LINKS = 4_000_000  # of a chunk
_MOST = 30_000_000  # C at most, about 1 GB in all
_MOST_PAIRS = 1_000_000


class Bitext(NamedTuple):
    """Ids of both sides, one sentence after the other, and where each begins [P + 1].

    Sources end in EOS, to which every target may be linked: it stands for no source token at all.
    Targets have none.
    """

    sources: np.ndarray
    source_starts: np.ndarray
    targets: np.ndarray
    target_starts: np.ndarray

    @property
    def num_pairs(self) -> int:
        """P."""
        return len(self.source_starts) - 1


class Lexicon(NamedTuple):
    """What sources become: probabilities [C] of a target given a source.

    `keys` [C], in ascending order, are source * num_targets + target.
    """

    keys: np.ndarray
    probabilities: np.ndarray
    num_targets: int


class Links(NamedTuple):
    """The links of some sentences: a key of each [L], and which of their target tokens it is of."""

    keys: np.ndarray
    tokens: np.ndarray
    num_tokens: int


def main() -> int:
    """Learn, write, and tell what the dev split says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--output", required=True, help="the shortlist")
    parser.add_argument("--frequent", type=int, default=2000, help="pieces that may always come")
    parser.add_argument("--targets", type=int, default=10, help="of a source piece, at most")
    parser.add_argument("--iterations", type=int, default=4, help="of EM")
    parser.add_argument("--t2t_usr_dir", help="a folder of your own problems")
    flags = parser.parse_args()
    if flags.frequent < 0 or not 0 < flags.targets < shortlist.LONGEST:
        parser.error(f"expected --frequent >= 0 and 0 < --targets < {shortlist.LONGEST}")
    try:
        registry.load("t2t_lite.problems")
        if flags.t2t_usr_dir:
            registry.load_user_dir(flags.t2t_usr_dir)
        problem = registry.problem(flags.problem)
        data = manifest.load(flags.data_dir, problem)
        vocabulary = any_vocabulary.load(data.vocabulary_path)
        step = -(-data.pairs("train") // _MOST_PAIRS)
        train = bitext(data.shards("train"), is_reversed=problem.is_reversed, step=step)
        learnt = learn(train, vocabulary.targets.size, iterations=flags.iterations)
        always = frequent(train.targets, vocabulary.targets, flags.frequent)
        listed = rows(
            learnt,
            vocabulary.size,
            np.concatenate([always, vocabulary.targets.special_ids]),
            most=flags.targets,
            shares_pieces=vocabulary.targets is vocabulary,
        )
        write(flags.output, vocabulary, listed, always)
        dev = bitext(data.shards("dev"), is_reversed=problem.is_reversed)
    except (errors.UserError, OSError) as error:
        print(f"make_shortlist: {error}", file=sys.stderr)
        return 1
    if not len(dev.targets):
        print("dev has no pairs to say how many of their tokens are listed")
        return 0
    share, size = coverage(dev, listed, always)
    print(f"dev: {100 * share:.2f} % of the target tokens are listed, {size:.0f} ids a sentence")
    return 0


def bitext(paths: Sequence, *, is_reversed: bool, step: int = 1) -> Bitext:
    """Read every step-th pair of shards."""
    names = ("targets", "inputs") if is_reversed else ("inputs", "targets")
    ids, starts = [array.array("i") for _ in names], [array.array("q", [0]) for _ in names]
    for number, example in enumerate(shards.read_examples(paths)):
        if number % step:
            continue
        source, target = (example[name] for name in names)
        for side, tokens in enumerate((source, [token for token in target if token != EOS])):
            ids[side].extend(tokens)
            starts[side].append(len(ids[side]))
    (sources, targets), (source_starts, target_starts) = (
        [np.frombuffer(side, dtype) for side in sides]
        for sides, dtype in ((ids, np.int32), (starts, np.int64))
    )
    return Bitext(sources, source_starts, targets, target_starts)


def learn(pairs: Bitext, num_targets: int, *, iterations: int, most: int = _MOST) -> Lexicon:
    """Return IBM model 1 after some iterations of EM from uniform probabilities.

    Of the pairs of pieces that are seen together `most` stay, the most frequent.
    """
    keys = _keys(pairs, num_targets, most)
    probabilities = np.ones(len(keys))
    for _ in range(iterations):
        counts = np.zeros(len(keys))
        for links in _links(pairs, num_targets):
            places = np.searchsorted(keys, links.keys).clip(max=len(keys) - 1)
            weights = np.where(keys[places] == links.keys, probabilities[places], 0.0)
            totals = np.bincount(links.tokens, weights, links.num_tokens)
            np.add.at(counts, places, weights / np.maximum(totals, 1e-30)[links.tokens])
        sources = keys // num_targets
        sums = np.bincount(sources, counts)
        probabilities = counts / np.maximum(sums, 1e-30)[sources]
    return Lexicon(keys, probabilities, num_targets)


def rows(
    lexicon: Lexicon,
    num_sources: int,
    left_out: np.ndarray,
    *,
    most: int,
    shares_pieces: bool,
) -> list[np.ndarray]:
    """Return the likeliest targets of each source, but those that may always or never come, which
    are left out; and a piece itself if they are shared."""
    sources, targets = np.divmod(lexicon.keys, lexicon.num_targets)
    order = np.lexsort((-lexicon.probabilities, sources))
    order = order[~np.isin(targets, left_out)[order]]
    starts = np.searchsorted(sources[order], np.arange(num_sources + 1))
    targets = targets[order]
    found = [targets[a : min(a + most, b)] for a, b in itertools.pairwise(starts)]
    if shares_pieces:
        found = [
            np.append(ids, token) if token not in ids and token not in left_out else ids
            for token, ids in enumerate(found)
        ]
    return found


def frequent(
    targets: np.ndarray, vocabulary: any_vocabulary.AnyVocabulary, count: int
) -> np.ndarray:
    """Return what may always come: the most frequent tokens, and those that no line can name."""
    counts = np.bincount(targets, minlength=vocabulary.size)
    counts[list(vocabulary.special_ids)] = 0
    most = np.argsort(-counts, kind="stable")[: min(count, np.count_nonzero(counts))]
    return np.concatenate([most, np.setdiff1d(shortlist.unwritable(vocabulary), most)]).astype(int)


def write(
    path: str,
    vocabulary: any_vocabulary.AnyVocabulary,
    listed: list[np.ndarray],
    always: np.ndarray,
) -> None:
    """Write the file."""

    def joined(ids: np.ndarray) -> str:
        pieces = map(vocabulary.targets.piece, ids.tolist())
        return " ".join(filter(shortlist.is_writable, pieces))

    def lines() -> Iterator[str]:
        yield f"\t{joined(always)}"
        for source, ids in enumerate(listed):
            piece = vocabulary.piece(source)
            is_named = source not in vocabulary.special_ids and shortlist.is_writable(piece)
            if is_named and (own := joined(ids)):
                yield f"{piece}\t{own}"

    text_files.write_lines(path, lines())


def coverage(pairs: Bitext, listed: list[np.ndarray], always: np.ndarray) -> tuple[float, float]:
    """Return the share of target tokens that are listed, and the mean number of ids listed."""
    hits, sizes = 0, []
    for number in range(pairs.num_pairs):
        source = slice(*pairs.source_starts[number : number + 2])
        target = slice(*pairs.target_starts[number : number + 2])
        ids = np.unique(np.concatenate([always, *(listed[s] for s in pairs.sources[source][:-1])]))
        hits += np.isin(pairs.targets[target], ids).sum()
        sizes.append(len(ids))
    return hits / len(pairs.targets), float(np.mean(sizes))


def _keys(pairs: Bitext, num_targets: int, most: int) -> np.ndarray:
    """Return the keys of the pieces that are seen together, of the most frequent if they are more
    than `most`."""
    keys, counts = np.zeros([0], np.int64), np.zeros([0], np.int64)
    for links in _links(pairs, num_targets):
        new_keys, new_counts = np.unique(links.keys, return_counts=True)
        keys, places = np.unique(np.concatenate([keys, new_keys]), return_inverse=True)
        counts = np.bincount(places, np.concatenate([counts, new_counts]))
        if len(keys) > most:
            kept = np.sort(np.argpartition(-counts, most)[:most])
            keys, counts = keys[kept], counts[kept]
    return keys


def _links(pairs: Bitext, num_targets: int) -> Iterator[Links]:
    """Yield every link of every pair, chunk by chunk.

    Sources 5, EOS and targets 7, 8 of a vocabulary of 10 --> keys 57, 58, 17, 18, tokens 0, 1, 0, 1
    """
    source_lengths, target_lengths = np.diff(pairs.source_starts), np.diff(pairs.target_starts)
    chunks = np.cumsum(source_lengths * target_lengths) // _LINKS
    for number in np.unique(chunks):
        first, end = np.searchsorted(chunks, (number, number + 1))
        source = slice(pairs.source_starts[first], pairs.source_starts[end])
        target = slice(pairs.target_starts[first], pairs.target_starts[end])
        sources, targets = pairs.sources[source].astype(np.int64), pairs.targets[target]
        # Each source token is linked to all target tokens of its sentence, from its first one on.
        counts = np.repeat(target_lengths[first:end], source_lengths[first:end])
        starts = pairs.target_starts[first:end] - target.start
        starts = np.repeat(starts, source_lengths[first:end])
        tokens = np.arange(counts.sum()) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        keys = np.repeat(sources * num_targets, counts) + targets[tokens]
        yield Links(keys, tokens, len(targets))


if __name__ == "__main__":
    sys.exit(main())
