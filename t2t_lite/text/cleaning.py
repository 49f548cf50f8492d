"""Which training pairs are dropped, and why: each reason has a flag and a count in the manifest."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cleaning:
    """The rules; dev and test are never cleaned.

    >>> Cleaning(max_length_ratio=2).reason("a", "b b b b", 1, 4)
    'length_ratio'
    """

    # a side without a visible character
    drop_empty: bool = True
    # subwords of the longer side, 0 for any
    max_length: int = 0
    # subwords of the longer side for each of the shorter one, 0 for any
    max_length_ratio: float = 0.0
    # all but the first of exactly equal pairs
    drop_duplicates: bool = False

    def reason(self, inputs: str, targets: str, num_inputs: int, num_targets: int) -> str:
        """Return why a pair of so many subwords goes, "" if it stays."""
        if self.drop_empty and not (inputs.strip() and targets.strip()):
            return "empty"
        longer, shorter = max(num_inputs, num_targets), min(num_inputs, num_targets)
        if self.max_length and longer > self.max_length:
            return "too_long"
        if self.max_length_ratio and longer > self.max_length_ratio * shorter:
            return "length_ratio"
        return ""
