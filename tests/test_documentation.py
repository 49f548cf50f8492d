"""README and docs: every block runs or says why not, words are British."""

import pathlib
import re
import shutil
import subprocess
import sys

import documents
import pytest

from t2t_lite import registry

README_BYTES = 6_000
_SIZES = {"dev": 20, "test": 20, "train": 300}
_PAGES = {page.name: page for page in documents.PAGES}
_WITH_BLOCKS = [page.name for page in documents.PAGES if documents.blocks(page)]
# American forms of words that the documents have, or might.
_AMERICAN = re.compile(
    r"\b(behavior|center|color|favor|gray|initializ|labeled|modeled|neighbor|normaliz|organiz|realiz"
    r"|recogniz|summariz)\w*",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def small_problems():
    """Make the toy problems small, and forget afterwards what the documents have registered."""
    for package in ("t2t_lite.problems", "t2t_lite.hparams"):
        registry.load(package)  # before the copies below, for it registers itself only once
    with pytest.MonkeyPatch.context() as patch:
        for table in ("_PROBLEMS", "_HPARAMS"):
            patch.setattr(registry, table, dict(getattr(registry, table)))
        for name in ("toy_ende", "toy_parsing"):
            patch.setattr(type(registry.problem(name)), "sizes", _SIZES)
        yield


@pytest.fixture(scope="module")
def after_start(tmp_path_factory, small_problems) -> pathlib.Path:
    """Return the folder of one who has followed the page Start: data, run, export; and a corpus."""
    folder = tmp_path_factory.mktemp("start")
    _run("start.md", folder)
    with documents.Runner(folder) as runner:  # my_corpus, which README has too
        runner.run(documents.blocks(_PAGES["own_corpus.md"])[0])
    return folder


def _run(name: str, folder: pathlib.Path) -> None:
    with documents.Runner(folder) as runner:
        for block in documents.blocks(_PAGES[name]):
            if not block.reason:
                runner.run(block)


@pytest.mark.slow
@pytest.mark.parametrize("name", _WITH_BLOCKS)
def test_the_blocks_of_a_page_run(name, after_start, tmp_path):
    if name == "start.md":
        return  # `after_start` has run it
    folder = tmp_path / "folder"
    shutil.copytree(after_start, folder)
    _run(name, folder)


@pytest.mark.parametrize("name", _WITH_BLOCKS)
def test_commands_have_the_flags_that_a_page_gives_them(name):
    for block in documents.blocks(_PAGES[name]):
        for line in block.commands() if block.language == "bash" else ():
            if documents.is_own(line):
                unknown = documents.unknown_flags(line.partition("|")[0])
                assert not unknown, f"{block.place}: {unknown}"
            for script in re.findall(r"\bscripts/\w+\.(?:py|sh)", line):
                assert (documents.ROOT / script).exists(), f"{block.place}: {script}"


def test_every_command_is_in_the_table():
    text = _PAGES["commands.md"].read_text("utf-8")
    assert re.findall(r"^\| \[`([^`]+)`\]\(#\1\)", text, re.MULTILINE) == list(documents.modules())


def test_no_block_is_left_out_by_its_fence():
    """Blocks of code that no test sees: indented ones, other names of shells, no name."""
    for page in documents.PAGES:
        text = page.read_text("utf-8")
        fences = re.findall(r"^(?:```)(\S*)", text, re.MULTILINE)
        allowed = ("bash", "python", "text", "json", "yaml", "")
        others = [f for f in fences if f not in allowed and not f.startswith("{")]
        assert not others, f"{page.name}: {others}"
        assert not re.search(r"\n\n    \S*t2t-lite-", text), f"{page.name}: an indented block"


def test_pages_show_the_present_code():
    script = documents.ROOT / "scripts" / "put_code.py"
    made = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout


def test_readme_is_short():
    assert len(_PAGES["README.md"].read_bytes()) <= README_BYTES


@pytest.mark.parametrize("name", sorted(_PAGES))
def test_words_are_british(name):
    text = re.sub(r"```.*?```|`[^`]*`", "", _PAGES[name].read_text("utf-8"), flags=re.DOTALL)
    assert not _AMERICAN.search(text), f"{name}: {_AMERICAN.search(text)}"


def test_links_of_readme_lead_to_files():
    text = _PAGES["README.md"].read_text("utf-8")
    targets = re.findall(r"\]\(([^)#]+)", text)
    assert targets
    for target in targets:
        assert target.startswith("https://") or (documents.ROOT / target).exists(), target
