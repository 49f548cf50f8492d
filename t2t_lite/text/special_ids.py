"""The ids that mean the same in every vocabulary; none stands for the beginning of a sequence."""

from collections.abc import Iterable, Iterator

PAD_ID = 0
EOS_ID = 1
UNK_ID = 2  # tensor2tensor's vocabularies have none


def text_ids(ids: Iterable[int]) -> Iterator[int]:
    """Yield the ids up to EOS as Python's integers, without PAD.

    >>> list(text_ids([0, 5, 6, 0, 1, 7]))
    [5, 6]
    """
    for token in map(int, ids):
        if token == EOS_ID:
            return
        if token != PAD_ID:
            yield token
