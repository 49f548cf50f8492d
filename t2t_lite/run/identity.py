"""The identity of a checkpoint's weights: the vocabulary's SHA-256 and the model's hparams.

Weights of the same shapes may be of another vocabulary, or of a model with other heads or other
places of its norms. So every checkpoint has an identity, which is compared before its weights are
used.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from t2t_lite import config
from t2t_lite.text import text_files

_SHOWN = 8  # digits of a hash


@dataclasses.dataclass(frozen=True, kw_only=True)
class Identity:
    """The vocabulary's SHA-256, and the hparams that decide what the weights compute."""

    vocabulary: str
    model: Mapping[str, Any]

    def to_text(self) -> str:
        """Return the text that a checkpoint holds."""
        return json.dumps(dataclasses.asdict(self))

    def difference(self, other: "Identity") -> str:
        """Return what differs in `other`: "num_heads 8 -> 4", or "" where nothing does."""
        changes = differences(self.model, other.model)
        if self.vocabulary != other.vocabulary:
            changes.insert(0, f"vocabulary {shown(self.vocabulary)} -> {shown(other.vocabulary)}")
        return ", ".join(changes)


def of(hparams: config.HParams, vocabulary_path: pathlib.Path) -> Identity:
    """Return the identity of a model with a vocabulary."""
    return Identity(vocabulary=text_files.sha256(vocabulary_path), model=config.model(hparams))


def from_text(text: str) -> Identity:
    """Return what `to_text` wrote."""
    return Identity(**json.loads(text))


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return what differs between two mappings: ["num_heads 8 -> 4"]."""
    names = dict.fromkeys([*old, *new])
    return [
        f"{name} {old.get(name, 'none')} -> {new.get(name, 'none')}"
        for name in names
        if old.get(name) != new.get(name)
    ]


def shown(digest: str | None) -> str:
    """Return the start of a hash, as messages show it."""
    return (digest or "none")[:_SHOWN]
