"""The block `modules` of the API page: a line for each module, and which of its names to show.

    ```{modules}
    decode.translator   Translator
    train.schedule
    ```

Each line becomes a section with the module's docstrings; without names it shows all public ones.
"""

import re
from typing import Any

_BLOCK = re.compile(r"^```\{modules\}\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_SECTION = """### `{module}`

```{{eval-rst}}
.. automodule:: t2t_lite.{module}
   :members: {names}
```

"""


def _expanded(block: re.Match[str]) -> str:
    lines = (line.partition(" ") for line in block[1].splitlines())
    return "".join(_SECTION.format(module=m, names=names.strip()) for m, _, names in lines)


def _expand(app: Any, page: str, source: list[str]) -> None:
    source[0] = _BLOCK.sub(_expanded, source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", _expand)
    return {"parallel_read_safe": True}
