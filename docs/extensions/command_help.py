"""Directives that show what the commands say, taken from the commands themselves.

`command-help` is what one answers to --help, `registry` what --registry_help lists, problems or
hparams_sets:

    ```{command-help} t2t-lite-datagen
    ```

    ```{registry} problems
    ```
"""

import configparser
import importlib
import pathlib
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from t2t_lite import registry
from t2t_lite.bin import command

_SETTINGS = pathlib.Path(__file__).parents[2] / "setup.cfg"


class CommandHelp(Directive):
    """Shows the help of the command whose name is the argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        module = importlib.import_module(modules()[name])
        text = command.help_text(module.FLAGS, doc=module.__doc__, name=name)
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


def modules() -> dict[str, str]:
    """Return {"t2t-lite-datagen": "t2t_lite.bin.datagen", ...} of all commands."""
    settings = configparser.ConfigParser()
    settings.read(_SETTINGS)
    lines = settings["options.entry_points"]["console_scripts"].split("\n")
    pairs = (line.split(" = ") for line in lines if line)
    return {name: function.partition(":")[0] for name, function in pairs}


def setup(app: Any) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("command-help", CommandHelp)
    app.add_directive("registry", Registry)
    return {"parallel_read_safe": True}
