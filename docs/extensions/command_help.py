"""Directives that show what the commands say, taken from the commands themselves.

```{command-help} datagen      what it answers to --help
```

```{registry} problems         what --registry_help lists: problems or hparams_sets
```
"""

import importlib
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from t2t_lite import registry
from t2t_lite.bin import command


class CommandHelp(Directive):
    """Shows the help of the command in the module t2t_lite.bin.<argument>."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        module = importlib.import_module(f"t2t_lite.bin.{name}")
        shown = f"t2t-lite-{name.replace('_', '-')}"
        text = command.help_text(module.FLAGS, doc=module.__doc__, name=shown)
        return [nodes.literal_block(text, text, language="text")]


class Registry(Directive):
    """Shows the names of problems or hyperparameter sets, with a line about each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        summaries = getattr(registry, self.arguments[0])()
        entries = nodes.definition_list()
        for name, summary in summaries.items():
            if name.removesuffix("_rev") in summaries and name.endswith("_rev"):
                continue
            term = nodes.term("", "", nodes.literal(name, name))
            text = nodes.definition("", nodes.paragraph(summary, summary))
            entries += nodes.definition_list_item("", term, text)
        return [entries]


def setup(app: Any) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("command-help", CommandHelp)
    app.add_directive("registry", Registry)
    return {"parallel_read_safe": True}
