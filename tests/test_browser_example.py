"""The page of examples/browser translates in a browser as the runtime for Python does."""

import contextlib
import functools
import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator

import chromium
import documents
import marian_numbers
import pytest
import tiny_run

from t2t_lite.imports import imported, marian
from t2t_lite.serving import export

runtime = pytest.importorskip("t2t_lite_runtime", reason="needs pip install ./runtime")
EXAMPLE = documents.ROOT / "examples" / "browser"
TEXTS = [*tiny_run.SENTENCES, "", " \t", "Ünknown \u4e16 \U0001f600", "a red house " * 9]
LABELS = (">>deu<<", ">>zh-Hans<<")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return a copy of the page's folder, with its packages."""
    if not shutil.which("npm"):
        pytest.skip("needs npm")
    folder = tmp_path_factory.mktemp("page")
    for name in ("index.html", "package.json", "translate.js"):
        shutil.copy(EXAMPLE / name, folder)
    flags = ["--prefer-offline", "--no-audit", "--ignore-scripts", "--fetch-retries=0"]
    command = ["npm", "install", *flags, "--fetch-timeout=30000"]
    installed = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"the page's packages cannot be installed here: {installed.stderr[-200:]}")
    return folder


def _run(folder):
    return tiny_run.write(folder)


def _run_with_labels(folder):
    folder.mkdir()
    marian_numbers.write(folder, labels=LABELS)
    imported.write(marian.read(folder), folder / "run")
    return folder / "run"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "texts", "changes"),
    [
        (_run, TEXTS, {}),
        (_run_with_labels, [*TEXTS, ">>zh-Hans<< a dog"], {"target_language": "deu"}),
    ],
    ids=["own", "imported"],
)
def test_the_page_translates_as_the_runtime_does(page, tmp_path, write, texts, changes):
    run = write(tmp_path / "run")
    export.export(run, tmp_path / "lite", format="litert", max_source_length=20, **changes)
    shutil.rmtree(page / "model", ignore_errors=True)
    shutil.copytree(tmp_path / "lite" / "1", page / "model")
    expected = [found.text for found in runtime.load(tmp_path / "lite").translate(texts)]
    with _served(page) as address, chromium.opened() as chrome:
        from selenium.webdriver.support.wait import WebDriverWait

        chrome.get(address)
        text, found, status = (
            chrome.find_element("css selector", name) for name in ("textarea", "output", "[role]")
        )
        chrome.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'));",
            text,
            "\n".join(texts),
        )
        WebDriverWait(chrome, 120).until(lambda _: status.text.endswith(" ms"), status.text)
        assert found.get_property("value").split("\n") == expected


@contextlib.contextmanager
def _served(folder) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
