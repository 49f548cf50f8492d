"""The site: it builds, loads nothing from elsewhere, and no page is wider than a window."""

import configparser
import pathlib
import re
import subprocess
import sys
import tomllib

import chromium
import documents
import pytest

_CFG = configparser.ConfigParser()
_CFG.read(documents.ROOT / "setup.cfg")
_PYPROJECT = tomllib.loads((documents.ROOT / "pyproject.toml").read_text("utf-8"))
# Elements that stick out of the text's column without a box that scrolls, and, if the argument is
# true, tables that have to scroll.
_TOO_WIDE = """
const { right } = document.querySelector(".content").getBoundingClientRect();
const scrolls = (node) => !node.matches(".content")
  && (getComputedStyle(node).overflowX !== "visible" || scrolls(node.parentElement));
const found = [...document.querySelectorAll(".content *:not(svg *)")].filter((node) => {
  const box = node.getBoundingClientRect();
  return box.width > 1 && box.right > right + 1 && !scrolls(node.parentElement);
});
if (arguments[0]) {
  const tables = [...document.querySelectorAll(".table-wrapper")];
  found.push(...tables.filter((node) => node.scrollWidth > node.clientWidth + 1));
}
if (document.documentElement.scrollWidth > innerWidth) found.push(document.body);
return found.map((node) => `${node.tagName}: ${node.textContent.slice(0, 60)}`);
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> pathlib.Path:
    """Return the folder of the built site; a warning is an error."""
    for module in ("sphinx", "sphinx_copybutton"):
        pytest.importorskip(module, reason="needs the site's tools: pip install -e .[docs]")
    folder = tmp_path_factory.mktemp("site")
    flags = ["-n", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees")]
    folders = [str(documents.ROOT / "docs"), str(folder / "site")]
    made = subprocess.run(
        [sys.executable, "-m", "sphinx", *flags, *folders], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return folder / "site"


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_elsewhere(site):
    repository = _PYPROJECT["tool"]["t2t-lite"]["repository"]
    for page in documents.PAGES[1:]:
        text = (site / f"{page.stem}.html").read_text("utf-8")
        loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]+)"', text)
        assert not loaded, f"{page.stem}.html loads {loaded}"
        assert ("Edit this page" in text) == bool(repository)
        assert f"t2t-lite {_CFG['metadata']['version']}</" in text
    names = re.findall(
        r'class="sig-name descname">.*?"pre">(\w+)<', (site / "api.html").read_text()
    )
    assert names[0] == "Translator"


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_no_page_is_wider_than_the_window(site, width):
    with chromium.opened(width=width) as chrome:
        for page in sorted(site.rglob("*.html")):
            chrome.get(page.as_uri())
            too_wide = chrome.execute_script(_TOO_WIDE, width >= 1280)
            assert not too_wide, f"{page.name}: {too_wide[:5]}"


@pytest.mark.slow
def test_copying_leaves_out_prompts(site):
    with chromium.opened() as chrome:
        from selenium.webdriver import ActionChains

        chrome.get((site / "index.html").as_uri())
        chrome.execute_script(
            "document.querySelector('pre').textContent = '$ one\\ntwo\\n$ three';"
            "addEventListener('copy', () => { window.copied = getSelection().toString(); });"
        )
        buttons = chrome.find_elements("css selector", "button.copybtn")
        assert len(buttons) == len(chrome.find_elements("tag name", "pre"))
        ActionChains(chrome).move_to_element(buttons[0]).click().perform()
        assert chrome.execute_script("return window.copied") == "one\nthree"
