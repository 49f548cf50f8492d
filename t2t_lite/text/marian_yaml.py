"""Marian's vocab.yml, which numbers pieces: "▁the": 17.

YAML's own readers do not take pieces such as yes, 1.5 or ~ for text, and refuse some characters.
"""

import re
from collections.abc import Mapping

from t2t_lite import errors

EOS, UNK = "</s>", "<unk>"
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_ESCAPES |= {"e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}


def read(text: str) -> dict[str, int]:
    """Return {piece: id} of a vocab.yml."""
    found: dict[str, int] = {}
    key = None
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if not line.strip(" "):  # other white space may be a piece
            continue
        if line.startswith("? "):  # a long key has a line of its own
            key = _unquoted(line[2:])
            continue
        before, colon, number = line.rpartition(":")
        if not colon or not number.strip().isdecimal() or (key is None) != bool(before.strip(" ")):
            raise errors.UserError(f"a vocabulary's line is not 'piece: number': {line!r:.60}")
        found[_unquoted(before) if key is None else key] = int(number)
        key = None
    return found


def ordered(ids: Mapping[str, int]) -> list[str]:
    """Return pieces by Marian's numbers; UserError where these are not 0, 1, 2, ..."""
    pieces = [piece for piece, _ in sorted(ids.items(), key=lambda item: item[1])]
    if sorted(ids.values()) != list(range(len(ids))) or not {EOS, UNK} <= ids.keys():
        raise errors.UserError(
            f"a vocabulary numbers its pieces 0, 1, 2, ..., with {EOS} and {UNK}"
        )
    return pieces


def _unquoted(key: str) -> str:
    key = key.strip(" ")
    if len(key) > 1 and key[0] == key[-1] == "'":
        return key[1:-1].replace("''", "'")
    if len(key) > 1 and key[0] == key[-1] == '"':
        return _ESCAPE.sub(_unescaped, key[1:-1])
    return key


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _ESCAPES.get(code, code)
    return chr(min(int(code[1:], 16), 0x10FFFF))
