"""Rewrite links of README.md for a release's page on a package index, which has no files beside it.

  python scripts/description.py README.md runtime/README.md

Relative links become links into the repository, whose address is in pyproject.toml. While that is
empty, they become plain words and pictures are left out.
"""

import pathlib
import posixpath
import re
import sys
import tomllib

_ROOT = pathlib.Path(__file__).parents[1]
_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https://|#)([^)\s]+)\)")


def main() -> None:
    """Rewrite the files in place."""
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))
    for name in sys.argv[1:]:
        path, folder = _ROOT / name, posixpath.dirname(name)
        text = path.read_text("utf-8")
        path.write_text(absolute(text, settings["tool"]["t2t-lite"]["repository"], folder), "utf-8")


def absolute(text: str, repository: str, folder: str = "") -> str:
    """Return Markdown without relative links; `folder` is where it lies in the repository."""

    def link(match: re.Match[str]) -> str:
        mark, words, path = match.groups()
        if not repository:
            return "" if mark else words
        kind = "raw" if mark else "blob"
        path = posixpath.normpath(posixpath.join(folder, path))
        return f"{mark}[{words}]({repository}/{kind}/main/{path})"

    return _RELATIVE.sub(link, text)


if __name__ == "__main__":
    main()
