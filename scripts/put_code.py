#!/usr/bin/env python3
"""Put the sources' code into the pages that show it, and write the notebook of the paper.

    scripts/put_code.py            # after a change to the code or to docs/paper.md
    scripts/put_code.py --check    # exit status 1 if something is not current

A block of a page that begins with a comment such as

    # t2t_lite/model/attention.py: MultiHeadAttention.heads, split_heads

holds what the file defines under these names. docs/notebooks/paper.ipynb is docs/paper.md with its
examples as cells and what they print as their outputs.
"""

import ast
import json
import pathlib
import re
import sys
import textwrap
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
PAPER = ROOT / "docs" / "paper.md"
NOTEBOOK = ROOT / "docs" / "notebooks" / "paper.ipynb"
_SHOWN = re.compile(
    r"^```python\n(# ([\w/]+\.py): ([\w., ]+)\n).*?^```\n", re.DOTALL | re.MULTILINE
)
_EXAMPLE = re.compile(
    r"^```python\n(?!# [\w/]+\.py: )(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


def main() -> int:
    """Write what is not current, or name it if "--check" is given."""
    pages = {page: with_code(page.read_text("utf-8")) for page in (ROOT / "docs").glob("*.md")}
    stale = [path for path, text in pages.items() if path.read_text("utf-8") != text]
    cells = notebook(pages[PAPER])
    if not NOTEBOOK.exists() or NOTEBOOK.read_text("utf-8") != cells:
        stale.append(NOTEBOOK)
    for path in stale:
        if "--check" in sys.argv:
            print(f"{path.relative_to(ROOT)} is not current: run scripts/put_code.py")
        else:
            path.write_text(cells if path == NOTEBOOK else pages[path], "utf-8")
    return 1 if stale and "--check" in sys.argv else 0


def with_code(page: str) -> str:
    """Return a page with the present code in its blocks."""

    def block(match: re.Match) -> str:
        definitions = [code(ROOT / match[2], name) for name in match[3].split(", ")]
        return "```python\n" + match[1] + "\n\n".join(definitions) + "\n```\n"

    return _SHOWN.sub(block, page)


def code(path: pathlib.Path, name: str) -> str:
    """Return the definition of "function" or "Class.method" in a file."""
    source = path.read_text("utf-8")
    node: Any = ast.parse(source)
    for part in name.split("."):
        defined = [n for n in ast.iter_child_nodes(node) if getattr(n, "name", None) == part]
        if not defined:
            raise SystemExit(f"{path.relative_to(ROOT)} does not define {name}")
        node = defined[0]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return textwrap.dedent("\n".join(source.split("\n")[first - 1 : node.end_lineno]))


def notebook(page: str) -> str:
    """Return a page as a notebook, in JSON."""
    cells, end = [], 0
    examples = list(_EXAMPLE.finditer(page))
    for number, match in enumerate(examples, 1):
        cells += [_text(page[end : match.start()]), _cell(number, match[1], match[2])]
        end = match.end()
    cells.append(_text(page[end:]))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _text(text: str) -> dict:
    text = re.sub(r"\]\((?!https?:)", "](../", text.strip())  # links from docs/notebooks
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _cell(number: int, source: str, printed: str | None) -> dict:
    output = {"name": "stdout", "output_type": "stream", "text": (printed or "").splitlines(True)}
    return {
        "cell_type": "code",
        "execution_count": number,
        "metadata": {},
        "outputs": [output] if printed else [],
        "source": source.rstrip("\n").splitlines(keepends=True),
    }


if __name__ == "__main__":
    sys.exit(main())
