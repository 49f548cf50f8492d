"""The page in a real browser: every view opened, clicked through, by keyboard, saved."""

import json
import os
import pathlib
import re
import time
import urllib.parse

import chromium
import hostile_texts
import pytest
import tiny_run

from t2t_lite.explore import attending, saving

pytestmark = pytest.mark.slow
TEXT = tiny_run.SENTENCES[3]
VIEWS = {
    "translation": {},
    "wall": {"view": "attention", "show": "wall"},
    "lines": {"view": "attention", "show": "lines", "kind": "encoder"},
    "matrix": {"view": "attention", "show": "matrix", "kind": "decoder"},
    "search": {"view": "search"},
}


@pytest.fixture(scope="module")
def chrome():
    with chromium.opened() as driver:
        yield driver


def _go(chrome, page, *, text=TEXT, **state):
    address = page if isinstance(page, str) else page.address
    chrome.get("about:blank")
    chrome.get(f"{address}#{urllib.parse.urlencode({'text': text, **state})}")
    return _ready(chrome)


def _ready(chrome, before=None):
    """Wait until the view is drawn, anew if `before` tells how often it had been."""
    script = "return document.getElementById('view')?.dataset.ready ?? null"

    def turn():
        number = chrome.execute_script(script)
        return None if number == before else number

    return _until(turn, "the view is drawn")


def _until(find, what):
    """Return what is found, as soon as there is something."""
    end = time.monotonic() + 60
    while not (found := find()):
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.02)
    return found


def _text(chrome):
    return chrome.find_element("id", "view").text


def _all(chrome, selector):
    return chrome.find_elements("css selector", selector)


def _keep(chrome, name):
    """Save a screenshot where $T2T_LITE_SCREENSHOTS says."""
    if folder := os.environ.get("T2T_LITE_SCREENSHOTS"):
        time.sleep(0.3)
        chromium.screenshot(chrome, pathlib.Path(folder), name)


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (390, False), (1280, True)], ids=["wide", "narrow", "dark"]
)
def test_every_view_opens_without_an_error_and_can_be_read(page, parser_page, width, dark):
    """Contrast is that of WCAG: 4.5 to 1 for texts, 3 to 1 for lines that tell something."""
    contrast = (pathlib.Path(__file__).parent / "contrast.js").read_text("utf-8")
    with chromium.opened(width=width, dark=dark) as chrome:
        seen = [(name, page, TEXT, state) for name, state in VIEWS.items()]
        # few enough columns for a matrix to have values in it
        seen.append(("small", page, "he sleeps", {"view": "attention", "show": "matrix"}))
        seen.append(("parse", parser_page, "a dog runs", {"view": "parse"}))
        for name, served, text, state in seen:
            _go(chrome, served, text=text, **state)
            assert _all(chrome, "#view > *"), name
            assert not _all(chrome, "#status.error"), name
            script = "return document.documentElement.scrollWidth <= innerWidth"
            assert chrome.execute_script(script), f"{name} is wider than the window"
            _keep(chrome, f"tiny-{name}-{width}{'-dark' if dark else ''}")
            if width < 1280:
                continue  # its colours are those of the wide page
            for summary in _all(chrome, "summary"):
                summary.click()
            time.sleep(0.2)
            found = chrome.execute_script(contrast)
            assert found["failures"] == [], name
            assert found["numTexts"] > 10
            assert found["numGraphics"] > 3
        _go(chrome, parser_page, view="parse", text="a dog runs")
        assert len(_all(chrome, "svg.tree")) == 2
        assert "F1" in _text(chrome)
        # the frame around what has the focus
        script = (
            "const node = document.querySelector('#text'); node.focus();"
            "const style = getComputedStyle(node);"
            "return [style.outlineColor, getComputedStyle(document.body).backgroundColor]"
        )
        frame, ground = map(_luminance, chrome.execute_script(script))
        assert (max(frame, ground) + 0.05) / (min(frame, ground) + 0.05) >= 3
        assert chromium.errors(chrome) == []
        _go(chrome, parser_page, text="a dog runs", target="no tree")
        assert "no tree" in chrome.find_element("id", "status").text
        assert width < 1280 or chrome.execute_script(contrast)["failures"] == []


def _luminance(color):
    """Return the relative luminance of "rgb(r, g, b)" (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def test_a_click_through(chrome, page):
    turn = _go(chrome, page)
    (expected,) = page.explorer.model.translate([TEXT])
    assert expected.text in _text(chrome)
    assert TEXT[::-1] in _text(chrome)
    assert len(_all(chrome, ".pieces small")) == len(expected.ids)
    assert len(_all(chrome, "tbody tr")) == 4
    for name in ("Attention", "Search", "Attention"):
        chrome.find_element("link text", name).click()
        turn = _ready(chrome, turn)
        assert chrome.find_element("css selector", "[aria-current]").text == name
    for value in ("encoder", "wall"):
        chrome.find_element("css selector", f".controls option[value={value}]").click()
        turn = _ready(chrome, turn)
    _until(lambda: len(_all(chrome, "canvas.drawn")) > 1, "thumbnails are drawn")
    _all(chrome, ".thumbnail")[1].click()
    turn = _ready(chrome, turn)
    assert "heads=1" in chrome.current_url
    assert len(_all(chrome, "svg.lines .query")) > 5
    _all(chrome, ".query")[2].click()
    turn = _ready(chrome, turn)
    assert "query=2" in chrome.current_url
    _all(chrome, ".heads input")[0].click()
    turn = _ready(chrome, turn)
    assert len(_all(chrome, ".heads input:checked")) == 2
    _all(chrome, ".as-table summary")[0].click()
    time.sleep(0.2)  # it is made as it opens
    values = [float(cell.text) for cell in _all(chrome, ".as-table tbody tr:nth-child(3) td")]
    expected = attending.attention(page.explorer.model, TEXT).encoder[0].mean(axis=0)[2]
    assert values == pytest.approx(expected.tolist(), abs=0.006)
    # another kind, of fewer queries it may be, has none chosen
    kind = _all(chrome, ".controls select")[0]
    kind.find_element("css selector", "option[value=cross]").click()
    turn = _ready(chrome, turn)
    assert "query" not in chrome.current_url
    assert len(_all(chrome, "svg.lines .query")) > 1
    chrome.back()
    _ready(chrome, turn)
    # the same address shows the same again
    address = chrome.current_url
    chrome.get("about:blank")
    chrome.get(address)
    _ready(chrome)
    assert len(_all(chrome, ".query.chosen")) == 1
    assert chromium.errors(chrome) == []


def test_the_page_opens_with_a_translation_and_the_layer_that_aligns(chrome, page):
    chrome.get("about:blank")
    chrome.get(page.address)
    turn = _ready(chrome)
    (expected,) = page.explorer.model.translate(tiny_run.SENTENCES[:1])
    assert chrome.find_element("id", "text").get_attribute("value") == tiny_run.SENTENCES[0]
    assert chrome.find_element("class name", "best").text == (expected.text or "(blank)")
    chrome.find_element("link text", "Attention").click()
    _ready(chrome, turn)
    layers = page.explorer.about()["layers"]["decoder"]
    title = chrome.find_element("css selector", "svg.matrix title").get_attribute("textContent")
    assert title == f"cross attention, layer {layers}, all heads"


def test_the_page_can_be_used_on_a_telephone(page):
    """By touch: targets of 24 pixels (WCAG 2.2, 2.5.8), and a tap tells what pointing does."""
    small = """const targets = "a, button, select, textarea, summary, .head, .query rect";
        return [...document.querySelectorAll(targets)]
        .filter((node) => node.checkVisibility() && !node.matches(".skip"))
        .map((node) => [node.outerHTML.slice(0, 60), node.getBoundingClientRect()])
        .filter(([, box]) => Math.min(box.width, box.height) < 24).map(([html]) => html)"""
    tap = """const { left, top, width, height } = arguments[0].getBoundingClientRect();
        return [left + width / 2, top + height / 2]"""
    with chromium.opened(width=390) as chrome:
        chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})

        def touch(selector):
            node = _all(chrome, selector)[0]
            chrome.execute_script("arguments[0].scrollIntoView({block: 'center'})", node)
            x, y = chrome.execute_script(tap, node)
            for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
                event = {"type": kind, "touchPoints": points}
                chrome.execute_cdp_cmd("Input.dispatchTouchEvent", event)

        for name, state in VIEWS.items():
            _go(chrome, page, text="he sleeps", **state)
            assert chrome.execute_script(small) == [], name
            words = chrome.find_element("tag name", "body").text.replace("special tokens", "")
            assert not re.search(r"\b(piece|token)s?\b", words, re.IGNORECASE), name
            if name == "translation":
                output = _all(chrome, ".outputs td:nth-child(2)")[0]
                assert output.rect["width"] >= 200
                touch(".pieces [tabindex]")
                _until(lambda: _all(chrome, ".aligned"), "a subword is marked")
            if name == "matrix":
                touch("svg.matrix rect")
                readout = chrome.find_element("class name", "readout")
                _until(
                    lambda text=readout: re.search(r": [01]\.\d{4}", text.text), "a weight is told"
                )


def test_by_keyboard_alone(chrome, page):
    from selenium.webdriver.common.keys import Keys

    turn = _go(chrome, page)

    def focused():
        return chrome.switch_to.active_element

    def tab_to(selector):
        for _ in range(80):
            focused().send_keys(Keys.TAB)
            if chrome.execute_script(
                "return document.activeElement.matches(arguments[0])", selector
            ):
                return
        raise AssertionError(f"{selector} is not reached by Tab")

    tab_to("#text")
    focused().send_keys(Keys.CONTROL, "a")
    focused().send_keys("two dogs run", Keys.ENTER)
    turn = _ready(chrome, turn)
    assert chrome.find_element("id", "text").get_attribute("value") == "two dogs run"
    (expected,) = page.explorer.model.translate(["two dogs run"])
    assert expected.text in _text(chrome)
    tab_to("nav a[href*='view=attention']")
    focused().send_keys(Keys.ENTER)
    turn = _ready(chrome, turn)
    tab_to(".controls label:nth-child(2) select")
    focused().send_keys("l")  # lines
    turn = _ready(chrome, turn)
    tab_to(".query")
    focused().send_keys(Keys.SPACE)
    turn = _ready(chrome, turn)
    assert focused().get_attribute("aria-pressed") == "true"
    tab_to(".as-table summary")
    focused().send_keys(Keys.ENTER)
    _until(lambda: _all(chrome, "details[open] table"), "the table opens")
    assert chromium.errors(chrome) == []


def test_hostile_texts_stay_texts(chrome, page):
    turn = _go(chrome, page)
    for name, text in hostile_texts.TEXTS.items():
        shown = ("lines", "wall", "matrix") if name == "many words" else ("lines",)
        attention = {"view": "attention", "kind": "cross"}
        for state in ({}, *({**attention, "show": show} for show in shown)):
            # as ASCII, since a driver takes no lone surrogate
            script = "location.hash = new URLSearchParams(JSON.parse(arguments[0]))"
            chrome.execute_script(script, json.dumps({"text": text, **state}))
            turn = _ready(chrome, turn)
            assert not _all(chrome, "#status.error"), name
            assert not _all(chrome, "#view img, #view script, #view svg[onload]"), name
            assert "owned" not in chrome.title, name
        script = "return document.getElementById('text').value === JSON.parse(arguments[0])"
        # a URL has no lone surrogates, a field no carriage returns
        if not re.search("[\ud800-\udfff\r]", text):
            assert chrome.execute_script(script, json.dumps(text)), name
    assert chromium.errors(chrome) == []


def test_a_saved_page_opens_from_a_disk(chrome, answers, tmp_path):
    path = tmp_path / "saved.html"
    texts = [(TEXT, None), ("a dog </script> runs", None)]
    path.write_text(saving.page(answers, texts), "utf-8")
    (expected,) = answers.model.translate([TEXT])
    for name, state in VIEWS.items():
        _go(chrome, path.as_uri(), **state)
        assert _all(chrome, "#view > *"), name
        assert not _all(chrome, "#status.error"), name
    _go(chrome, path.as_uri())
    assert expected.text in _text(chrome)
    _go(chrome, path.as_uri(), text="a dog </script> runs", view="attention", show="lines")
    assert _all(chrome, ".query")
    assert chromium.errors(chrome) == []


@pytest.mark.parametrize("show", ["lines", "matrix"])
def test_a_saved_drawing_is_for_paper(page, show):
    """Black on white, complete in itself, from a dark page too."""
    from xml.etree import ElementTree

    with chromium.opened(dark=True) as chrome:
        _go(chrome, page, text="he sleeps", view="attention", show=show)
        script = (
            "const make = URL.createObjectURL;"
            "URL.createObjectURL = (blob) => {"
            "  blob.text().then((text) => { window.saved = text; }); return make(blob); };"
        )
        chrome.execute_script(script)
        chrome.find_element("xpath", "//button[text()='Save as SVG']").click()
        text = _until(lambda: chrome.execute_script("return window.saved ?? null"), "it is saved")
        assert chromium.errors(chrome) == []
    drawing = ElementTree.fromstring(text)
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert drawing.get("color") == "#000"
    assert "var(" not in text
    fills = {node.get("fill") for node in drawing.iter() if node.tag.endswith("rect")}
    # the colour of weights on a light page, not that of the dark one
    assert fills == ({"transparent"} if show == "lines" else {"rgb(11, 79, 158)"})


def test_a_notebook_shows_attention(chrome, answers, tmp_path):
    path = tmp_path / "cell.html"
    path.write_text(attending.attention(answers.model, TEXT)._repr_html_(), "utf-8")
    chrome.get(path.as_uri())
    chrome.switch_to.frame(0)
    _ready(chrome)
    assert _all(chrome, "svg.matrix")
    chrome.switch_to.default_content()
    assert chromium.errors(chrome) == []
