"""The page as one HTML file, with scripts, styles and data in it, for use without a server.

The scripts are ES modules. Here each becomes a function in one script. The file's content security
policy allows only this script and the page's styles, by their digests.
"""

import base64
import hashlib
import html
import json
import pathlib
import re
from typing import Any

import numpy as np

PAGE = pathlib.Path(__file__).parent / "page"
# Each module imports only from those before it.
MODULES = (
    "dom.js",
    "tokens.js",
    "weights.js",
    "source.js",
    "translation.js",
    "heads.js",
    "lines.js",
    "matrix.js",
    "attention.js",
    "search.js",
    "parse.js",
    "main.js",
)
_WEIGHT_SCALE = 65535
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w.]+)";$', re.M)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const)) (\w+)", re.M)


def document(data: dict[str, Any]) -> str:
    """Return the HTML file that shows data: {"about", "texts"}."""
    style = (PAGE / "page.css").read_text("utf-8")
    script = "const modules = {};\n" + "".join(map(_as_function, MODULES))
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    # "<" could end the element that holds the data.
    content = json.dumps(data).replace("<", "\\u003c")
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
        f'<script type="application/json" id="data">{content}</script>'
    )
    text = _read("index.html")
    text = re.sub(r'<link rel="stylesheet"[^>]*>', lambda _: head, text)
    # A module runs after the document is complete.
    module = f'<script type="module">{script}</script>'
    return re.sub(r'<script type="module"[^>]*></script>', lambda _: module, text)


def notebook(data: dict[str, Any], *, title: str) -> str:
    """Return an element for a notebook's cell that shows data as `document` does."""
    return (
        f'<iframe srcdoc="{html.escape(document(data))}" sandbox="allow-scripts allow-downloads" '
        f'title="{html.escape(title)}" style="width:100%;height:760px;border:0"></iframe>'
    )


def weight_bytes(weights: np.ndarray) -> bytes:
    """Return round(weight * 65535) of each weight in two bytes, little end first."""
    return np.rint(weights * _WEIGHT_SCALE).astype("<u2").tobytes()


def weight_text(weights: bytes) -> str:
    """Return weight_bytes as text."""
    return base64.b64encode(weights).decode("ascii")


def _as_function(name: str) -> str:
    """Return a module as a function call that stores its exports in `modules`.

    import { a } from "./dom.js";     const { a } = modules["dom.js"];
    export function b() {}            function b() {} ... return { b };
    """
    text = _read(name)
    exported = ", ".join(match[2] for match in _EXPORT.finditer(text))
    text = _EXPORT.sub(r"\1 \2", _IMPORT.sub(r'const \1 = modules["\2"];', text))
    return f'modules["{name}"] = (() => {{\n{text}return {{ {exported} }};\n}})();\n'


def _read(name: str) -> str:
    return (PAGE / name).read_text("utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
