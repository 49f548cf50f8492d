"""Reasons to drop a training pair: each has a flag and a count in the manifest."""

import dataclasses

from t2t_lite import fields

# A longer text, some 25,000 tokens, is never encoded: no model learns from it, and a text of 24
# million characters would take minutes and gigabytes.
MAX_CHARACTERS = 100_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cleaning:
    """The rules; dev and test are never cleaned.

    >>> Cleaning(max_length_ratio=2).reason("a", "b b b b", 1, 4)
    'length_ratio'
    """

    drop_empty: bool = fields.option(
        True, "Drop training pairs with an empty side. Dev and test are never cleaned."
    )
    max_length: int = fields.option(
        0,
        "Drop training pairs with more subwords than this on either side, EOS left out. 0: no "
        "limit.",
        at_least=0,
    )
    max_length_ratio: float = fields.option(
        0.0,
        "Drop training pairs where one side has more than this many times as many subwords as the "
        "other. 0: no limit.",
        at_least=0,
    )
    drop_duplicates: bool = fields.option(False, "Drop repeated training pairs; the first is kept.")

    def __post_init__(self) -> None:
        fields.check(self)

    def reason(self, inputs: str, targets: str, num_inputs: int, num_targets: int) -> str:
        """Return why a pair of num_inputs and num_targets subwords is dropped, "" if it stays."""
        if self.drop_empty and not (inputs.strip() and targets.strip()):
            return "empty"
        longer, shorter = max(num_inputs, num_targets), min(num_inputs, num_targets)
        if self.max_length and longer > self.max_length:
            return "too_long"
        if self.max_length_ratio and longer > self.max_length_ratio * shorter:
            return "length_ratio"
        return ""


def is_overlong(inputs: str, targets: str) -> bool:
    """Return whether a pair is dropped by every set of rules, before it is encoded."""
    return max(len(inputs), len(targets)) > MAX_CHARACTERS
