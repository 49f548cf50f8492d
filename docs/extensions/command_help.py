"""Directives that show what the commands say, taken from the commands themselves.

`commands` is what each command answers to --help, in a section of its own; `registry` is what
--registry_help lists, problems or hparams_sets. Each command, flag and name has an address, such as
commands.html#t2t-lite-datagen-raw_dir and sets.html#toy_ende.

    ```{commands}
    ```

    ```{registry} problems
    ```
"""

import configparser
import importlib
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from t2t_lite import registry
from t2t_lite.bin import command

_SETTINGS = pathlib.Path(__file__).parents[2] / "setup.cfg"


class Commands(Directive):
    """Shows the help of each command."""

    def run(self) -> list[nodes.Node]:
        return [self._section(*pair) for pair in modules().items()]

    def _section(self, name: str, module: str) -> nodes.section:
        section = nodes.section("", nodes.title(name, name), *_help(name, module), names=[name])
        self.state.document.note_explicit_target(section)
        return section


class Registry(Directive):
    """Shows the names of problems or hyperparameter sets, with a line about each."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        summaries = getattr(registry, self.arguments[0])()
        entries = nodes.definition_list()
        for name, summary in summaries.items():
            if name.removesuffix("_rev") in summaries and name.endswith("_rev"):
                continue
            entries += _entry(name, name, [_paragraph(summary)])
        return [entries]


def _help(name: str, module: str) -> list[nodes.Node]:
    """Return a command's introduction, and the list of its flags."""
    imported = importlib.import_module(module)
    text = command.help_text(imported.FLAGS, doc=imported.__doc__, name=name)
    introduction, _, flags = text.partition("\n\nFlags:\n")
    entries = nodes.definition_list(classes=["flags"])
    for entry in re.split(r"^  --", flags, flags=re.MULTILINE)[1:]:
        flag, *lines = entry.rstrip().split("\n")
        entries += _entry(f"--{flag}", f"{name}-{flag}", _description(lines))
    return [nodes.literal_block(introduction, introduction, language="text"), entries]


def _entry(name: str, address: str, description: Sequence[nodes.Node]) -> nodes.Node:
    """Return an entry of a list whose name, in the font of code, links to the entry itself."""
    link = nodes.reference("", "", nodes.literal(name, name), refid=address, internal=True)
    term = nodes.term("", "", link, ids=[address])
    return nodes.definition_list_item("", term, nodes.definition("", *description))


def _description(lines: Sequence[str]) -> list[nodes.Node]:
    """Return a flag's help: its text, and as it stands the table that may follow."""
    lines = [line.removeprefix(" " * 6) for line in lines]
    text = [line for line in lines if not line.startswith(" ")]
    table = "\n".join(line for line in lines if line.startswith(" "))
    made: list[nodes.Node] = [_paragraph(" ".join(text))]
    if table:
        made.append(nodes.literal_block(table, table, language="text"))
    return made


def _paragraph(text: str) -> nodes.Node:
    """Return a paragraph in which `code` and --flags are in the font of code."""
    paragraph = nodes.paragraph(text, "")
    for place, part in enumerate(re.split(r"`([^`]+)`|(?<![\w-])(--\w+(?:=\S*\w)?)", text)):
        if part:
            paragraph += nodes.literal(part, part) if place % 3 else nodes.Text(part)
    return paragraph


def modules() -> dict[str, str]:
    """Return {"t2t-lite-datagen": "t2t_lite.bin.datagen", ...} of all commands."""
    settings = configparser.ConfigParser()
    settings.read(_SETTINGS)
    lines = settings["options.entry_points"]["console_scripts"].split("\n")
    pairs = (line.split(" = ") for line in lines if line)
    return {name: function.partition(":")[0] for name, function in pairs}


def setup(app: Any) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("commands", Commands)
    app.add_directive("registry", Registry)
    return {"parallel_read_safe": True}
