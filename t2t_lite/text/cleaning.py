"""Which training pairs are dropped, and why: each reason has a flag and a count in the manifest."""

import dataclasses
from typing import Any

from t2t_lite import fields
from t2t_lite.text import languages

# A text of more characters, some 25,000 tokens, is never encoded: no model learns from it, and one
# of 24 million would take minutes and gigabytes.
MAX_CHARACTERS = 100_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cleaning:
    """The rules; dev and test are never cleaned.

    >>> Cleaning(max_length_ratio=2).reason("a", "b b b b", 1, 4)
    'length_ratio'
    """

    drop_empty: bool = fields.option(True, "Drop pairs with an empty side.")
    max_length: int = fields.option(
        0, "Drop pairs with more subwords than this on a side; 0: none.", at_least=0
    )
    max_length_ratio: float = fields.option(
        0.0, "Drop pairs with a side this many times longer than the other; 0: none.", at_least=0
    )
    drop_duplicates: bool = fields.option(False, "Drop all but the first of equal pairs.")
    languages: str | None = fields.option(
        None,
        "Drop pairs of which a side is in another language than these, source and target: en,de. "
        "Needs t2t-lite[langid].",
    )

    def __post_init__(self) -> None:
        fields.check(self)
        if self.languages is not None:
            languages.codes(self.languages)

    def reason(self, inputs: str, targets: str, num_inputs: int, num_targets: int) -> str:
        """Return why a pair of num_inputs and num_targets subwords goes, "" if it stays."""
        if self.drop_empty and not (inputs.strip() and targets.strip()):
            return "empty"
        longer, shorter = max(num_inputs, num_targets), min(num_inputs, num_targets)
        if self.max_length and longer > self.max_length:
            return "too_long"
        if self.max_length_ratio and longer > self.max_length_ratio * shorter:
            return "length_ratio"
        if self.languages is not None:
            pairs = zip((inputs, targets), languages.codes(self.languages))
            if any(languages.is_other(text, code) for text, code in pairs):
                return "language"
        return ""

    def settings(self) -> dict[str, Any]:
        """Return the rules as a manifest has them, without those that are not given."""
        return {name: x for name, x in dataclasses.asdict(self).items() if x is not None}


def is_overlong(inputs: str, targets: str) -> bool:
    """Return whether a pair goes whatever the rules are, before it is encoded."""
    return max(len(inputs), len(targets)) > MAX_CHARACTERS
