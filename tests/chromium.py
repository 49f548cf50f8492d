"""Chromium without a window, where it is installed: what the page's tests open it in."""

import contextlib
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def opened(*, width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Any]:
    """Yield a driver of Chromium; skip the test where there is none."""
    driver = shutil.which("chromedriver")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not (driver and browser):
        pytest.skip("needs Chromium: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome import service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        chrome = webdriver.Chrome(options=options, service=service.Service(driver))
        try:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            yield chrome
        finally:
            chrome.quit()


def errors(chrome: Any) -> list[str]:
    """Return what the console has said since the last call."""
    return [entry["message"] for entry in chrome.get_log("browser")]


def screenshot(chrome: Any, folder: pathlib.Path, name: str) -> None:
    """Save what is to be seen, for a person to look at."""
    chrome.save_screenshot(str(folder / f"{name}.png"))
