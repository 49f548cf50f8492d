"""What looks wrong in a corpus though data can be made of it, in sentences for the user."""

import bisect
import itertools
import re
from collections.abc import Mapping, Sequence

import numpy as np

from t2t_lite.data import problem as problems
from t2t_lite.data import spill, survey

_MAX_PAIRS = 2_000  # of each file, by whose words its sides are told
_MIN_WORDS = 20  # that tell
_MANY_DUPLICATES = 0.05
_MAX_DIGESTS = 1 << 22  # of a larger corpus a part, chosen by content, is looked at
_QUOTED = re.compile(r'".*"".*"')


def of_sides(surveyed: survey.Survey, dev: Sequence[problems.Sample]) -> list[str]:
    """Return remarks on files whose sides are equal, or the other way round than those of dev."""
    words = [{word for one in dev for word in one[side].split()} for side in ("inputs", "targets")]
    only = words[0] - words[1], words[1] - words[0]
    pairs = sorted(surveyed.sample)
    numbers = [number for number, *_ in pairs]
    remarks = []
    for name, first, count in surveyed.in_order():
        start, end = bisect.bisect_left(numbers, first), bisect.bisect_left(numbers, first + count)
        texts = [
            texts for _, _, *texts in itertools.islice(pairs, start, min(end, start + _MAX_PAIRS))
        ]
        counts = [
            [sum(word in known for pair in texts for word in pair[side].split()) for known in only]
            for side in (0, 1)
        ]
        straight, crossed = counts[0][0] + counts[1][1], counts[0][1] + counts[1][0]
        if crossed >= _MIN_WORDS and crossed > 2 * straight:
            remarks.append(
                f"the sides of {name} look swapped: of {straight + crossed:,} words that dev has "
                f"on one side only, {crossed:,} are on the other side here"
            )
        equal = sum(inputs == targets for inputs, targets in texts)
        if 2 * equal > len(texts):
            remarks.append(f"{name}: both sides are equal in {equal:,} of {len(texts):,} pairs")
        quoted = sum(bool(_QUOTED.fullmatch(text)) for pair in texts for text in pair)
        if quoted:
            remarks.append(
                f"{name}: {quoted:,} of {2 * len(texts):,} texts have quotes as CSV does "
                '("He said, ""yes"""): if it is CSV, call it .csv'
            )
    return remarks


def of_pairs(
    job: spill.Job, held_out: Mapping[str, Sequence[tuple[bytes, bytes]]], pairs: int
) -> list[str]:
    """Return remarks on training pairs that are there several times, or in another split too.

    `held_out` has the records of the other splits' pairs, as they are and with sides swapped.
    """
    digests = {
        split: np.array(
            [[spill.digest(record)[0] for record in both] for both in records], np.uint64
        )
        for split, records in held_out.items()
    }
    found = {split: np.zeros(of_split.shape, bool) for split, of_split in digests.items()}
    every = np.uint64(max(pairs // _MAX_DIGESTS, 1))
    kept = []
    for chunk in range(job.num_chunks):
        of_chunk = spill.chunk_digests(job, chunk)
        kept.append(of_chunk[of_chunk % every == 0])
        for split, of_split in digests.items():
            found[split] |= np.isin(of_split, of_chunk)
    remarks = [
        f"{number:,} of {len(where):,} {split} pairs are also training pairs{how}"
        for split, where in found.items()
        for how, side in (("", 0), (" with their sides swapped", 1))
        if (number := int((where[:, side] & (side == 0 or ~where[:, 0])).sum()))
    ]
    looked_at = np.concatenate(kept)
    duplicates = len(looked_at) - len(np.unique(looked_at))
    if duplicates > _MANY_DUPLICATES * len(looked_at) and not job.cleaning.drop_duplicates:
        remarks.append(
            f"{duplicates * int(every):,} of {pairs:,} training pairs occurred before: "
            "--drop_duplicates drops them"
        )
    return remarks
