"""The code blocks of README.md and docs/*.md, and what runs them.

A block is fenced as ```bash or ```python. One that cannot run here has its reason before it:

    <!-- not run: needs Docker -->

A ```text block right after a Python one is what that prints. Blocks that begin with "# file.py:"
show the sources' code (scripts/put_code.py) and are not run. Each document runs from top to bottom
in one folder, its Python blocks in one namespace.

Commands of t2t-lite run in this process, all others in bash. The training commands get flags that
make models and trainings tiny; nothing else is changed but the two ports that the documents name.
"""

import configparser
import contextlib
import dataclasses
import importlib
import io
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TINY = (
    "d_model=16,d_ff=32,num_heads=2,d_k=8,d_v=8,num_encoder_layers=1,num_decoder_layers=1,"
    "batch_tokens=512,max_buckets=1,warmup_steps=10,extra_length=4,beam_size=2"
)
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"^```(?P<language>bash|python)\n(?P<code>(?!# [\w/]+\.py: ).*?)^```\n"
    r"(?:\n*```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
_PORTS = ("8500", "8501")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block: where it stands, its text, and why it is not run."""

    page: pathlib.Path
    line: int
    language: str
    code: str
    reason: str
    output: str  # that a Python block prints; "": it is not compared

    @property
    def place(self) -> str:
        """Return "docs/start.md:12"."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> list[str]:
        """Return the lines of a shell block, those that end in a backslash joined."""
        joined = self.code.replace("\\\n", " ")
        return [line for line in joined.splitlines() if line.strip() and line[0] != "#"]


def blocks(page: pathlib.Path) -> list[Block]:
    """Return the shell and Python blocks of a page."""
    text = page.read_text("utf-8")
    return [
        Block(page=page, line=text.count("\n", 0, match.start("code")), **match.groupdict(""))
        for match in _BLOCK.finditer(text)
    ]


class Runner:
    """Runs the blocks of one page in a folder.

    Args:
      folder: where relative paths of the page lie.
    """

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._ports = {port: str(_free_port()) for port in _PORTS}
        self._servers: list[subprocess.Popen] = []

    def __enter__(self) -> "Runner":
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(contextlib.chdir(self._folder))
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.terminate()
            server.wait()
        self._stack.close()

    def run(self, block: Block) -> None:
        """Run a block; raise AssertionError that names its place where it fails."""
        if block.language == "python":
            self._python(block)
            return
        lines = block.commands()
        if not any(map(is_own, lines)) and not block.code.rstrip().endswith("&"):
            lines = [block.code]  # loops and all
        for line in lines:
            for port, other in self._ports.items():
                line = line.replace(port, other)
            status = self._shell(line)
            assert status == 0, f"{block.place}: exit status {status}: {line}"

    def _python(self, block: Block) -> None:
        printed = io.StringIO()
        code = compile("\n" * block.line + block.code, str(block.page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, self._names)
        if block.output:
            assert printed.getvalue() == block.output, f"{block.place}: it printed otherwise"

    def _shell(self, line: str) -> int:
        if is_own(line) and not re.search(r"[|<>&;$`]", line):
            argv = _tiny(shlex.split(line))
            return _module(argv[0]).main(argv)
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | {"PATH": path}
        if line.endswith("&"):
            return self._serve(line.removesuffix("&"), environment)
        line = re.sub(r"(^|\s)scripts/", rf"\1{ROOT}/scripts/", line)
        return subprocess.run(["bash", "-c", line], env=environment, timeout=300).returncode

    def _serve(self, line: str, environment: dict[str, str]) -> int:
        """Start the fake of TensorFlow Serving for "scripts/serve.sh EXPORT_DIR NAME".

        As with the server itself, nothing here waits until it is ready: the page has to.
        """
        script, *arguments = shlex.split(line)
        assert script == "scripts/serve.sh", line
        fake = str(ROOT / "tests" / "fake_serving.py")
        argv = [sys.executable, fake, *arguments, *self._ports.values()]
        self._servers.append(subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL))
        return 0


def is_own(line: str) -> bool:
    """Return whether a line is a command of t2t-lite; the runtime's is not."""
    return line.partition(" ")[0] in modules()


def unknown_flags(line: str) -> list[str]:
    """Return the flags of one of t2t-lite's commands that the command does not have."""
    argv = shlex.split(line, comments=True)
    known = set(_module(argv[0]).FLAGS)
    given = [re.match(r"--([a-z0-9_]+)", word) for word in argv[1:]]
    names = [match[1] for match in given if match]
    return [name for name in names if not {name, name.removeprefix("no")} & known]


def modules() -> dict[str, str]:
    """Return {"t2t-lite-datagen": "t2t_lite.bin.datagen", ...} of all commands."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    lines = settings["options.entry_points"]["console_scripts"].split("\n")
    pairs = (line.split(" = ") for line in lines if line)
    return {name: function.partition(":")[0] for name, function in pairs}


def _module(name: str) -> Any:
    return importlib.import_module(modules()[name])


def _tiny(argv: Sequence[str]) -> list[str]:
    """Return a command's arguments with flags that make a training tiny."""
    if argv[0] == "t2t-lite-datagen":
        return [*argv, "--num_workers=1"]  # so that `tiny_problems` reaches what it does
    if argv[0] != "t2t-lite-trainer" or "--describe" in argv:
        return list(argv)
    kept = [word for word in argv if not word.startswith(("--hparams=", "--train_steps="))]
    given = [word.removeprefix("--hparams=") for word in argv if word.startswith("--hparams=")]
    hparams = ",".join([*given, TINY])
    more = [f"--hparams={hparams}", "--train_steps=2", "--eval_sentences=2"]
    return [*kept, *more, "--save_checkpoints_steps=1", "--strategy=one_device"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
