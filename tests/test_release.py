"""A release: its versions, its Pythons, the workflows that test, build and publish it."""

import configparser
import re
import tomllib

import documents
import pytest

from scripts import description

_CFG = configparser.ConfigParser()
_CFG.read(documents.ROOT / "setup.cfg")
_RUNTIME = tomllib.loads((documents.ROOT / "runtime" / "pyproject.toml").read_text("utf-8"))
_WORKFLOWS = sorted((documents.ROOT / ".github" / "workflows").glob("*.yml"))


def _workflow(name: str) -> dict:
    yaml = pytest.importorskip("yaml", reason="needs the site's tools: pip install -e .[docs]")
    return yaml.safe_load((documents.ROOT / ".github" / "workflows" / name).read_text("utf-8"))


def test_the_distributions_and_the_citation_have_one_version():
    version = _CFG["metadata"]["version"]
    assert _RUNTIME["project"]["version"] == version
    assert f"\nversion: {version}\n" in (documents.ROOT / "CITATION.cff").read_text("utf-8")


def test_every_python_that_is_named_is_tested():
    tested = _workflow("ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python-version"]
    for classifiers in (
        _CFG["metadata"]["classifiers"].split("\n"),
        _RUNTIME["project"]["classifiers"],
    ):
        named = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
        assert named == tested
    assert _CFG["options"]["python_requires"] == f">={tested[0]}"


@pytest.mark.parametrize("path", _WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_valid_and_pins_what_it_uses(path):
    workflow = _workflow(path.name)
    text = path.read_text("utf-8")
    assert not re.search(r"\b[\w-]+\.(org|com|io|net)\b", text)
    for job in workflow["jobs"].values():
        uses = [job.get("uses"), *(step.get("uses") for step in job.get("steps", []))]
        for name in filter(None, uses):
            assert re.fullmatch(r"[\w./-]+@(release/)?v\d+|\./\.github/workflows/ci\.yml", name)
        for step in job.get("steps", []):
            for script in re.findall(r"\S+\.(?:sh|py)\b|\.ci/run", step.get("run", "")):
                assert (documents.ROOT / script).exists(), script


def test_the_description_of_a_release_has_no_relative_links():
    text = "![A page](docs/a.png) [All\nfigures](docs/b.md#c) [T2T](https://x) [d](../README.md)"
    assert description.absolute(text, "") == " All\nfigures [T2T](https://x) d"
    assert description.absolute(text, "https://h/r", "runtime") == (
        "![A page](https://h/r/raw/main/runtime/docs/a.png) "
        "[All\nfigures](https://h/r/blob/main/runtime/docs/b.md#c) [T2T](https://x) "
        "[d](https://h/r/blob/main/README.md)"
    )
    for name in ("README.md", "runtime/README.md"):
        made = description.absolute((documents.ROOT / name).read_text("utf-8"), "")
        assert not re.search(r"\]\((?!https://)", made)
