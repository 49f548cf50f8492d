"""How long the page of t2t-lite-explore takes for a text, all of its views: prints RESULT {json}.

  python benchmarks/explore.py --output_dir=run --source=test.en [--words=12]

Each text is new to the server. Milliseconds by the clock: of each of the server's answers
(attention: all kinds and layers), of all of them, and, where Chromium is installed, from the
address to the drawn view in a browser, one view after the other.
"""

import argparse
import importlib
import json
import os
import pathlib
import statistics
import sys
import threading
import time
import urllib.parse
import urllib.request
from typing import Any


def main() -> None:
    """Time it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--source", required=True, help="a file of texts")
    parser.add_argument("--words", type=int, default=12)
    parser.add_argument("--texts", type=int, default=20)
    flags = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from t2t_lite.decode import translator
    from t2t_lite.explore import explorer, server

    lines = pathlib.Path(flags.source).read_text("utf-8").splitlines()
    texts = [line for line in lines if len(line.split()) == flags.words][: 2 * flags.texts]
    model = translator.Translator.from_output_dir(flags.output_dir, return_beams=4)
    answers = explorer.Explorer(model)
    answers.warm_up()
    made = server.make(answers, host="127.0.0.1", port=0)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{made.port}/"
    layers = answers.about()["layers"]
    times = [_asked(address, text, layers) for text in texts[: flags.texts]]
    result: dict[str, Any] = {"words": flags.words, "texts": len(times)}
    for name in times[0]:
        result |= _summary(name, [each[name] for each in times])
    drawn = _drawn(address, texts[flags.texts :])
    if drawn:
        result |= _summary("browser", drawn)
    print("RESULT", json.dumps(result))
    made.shutdown()


def _asked(address: str, text: str, layers: dict[str, int]) -> dict[str, float]:
    """Return milliseconds of each of the answers that the views need."""
    times = {}

    def ask(path: str, **body) -> None:
        data = json.dumps({"text": text, **body}).encode()
        request = urllib.request.Request(
            f"{address}api/{path}", data, {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(request).read()

    def timed(name: str, function) -> None:
        start = time.perf_counter()
        function()
        times[name] = 1e3 * (time.perf_counter() - start)

    def attention() -> None:
        for kind in ("encoder", "cross", "decoder"):
            for layer in range(layers["encoder" if kind == "encoder" else "decoder"]):
                ask("attention", kind=kind, layer=layer)

    timed("translation", lambda: ask("translation"))
    timed("attention", attention)
    timed("search", lambda: ask("search"))
    return {**times, "all": sum(times.values())}


def _drawn(address: str, texts: list[str]) -> list[float]:
    """Return milliseconds until a browser has drawn all views of a text, one after the other."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))
    chromium = importlib.import_module("chromium")  # how the tests open one

    views = ("translation", "attention", "search")
    script = (
        "const [address, views, done] = arguments; const start = performance.now();"
        "const view = document.getElementById('view');"
        "let place = -1;"
        "const next = () => { place++;"
        "  if (place === views.length) { done(performance.now() - start); return; }"
        "  location.hash = address + '&view=' + views[place]; };"
        "new MutationObserver((_, self) => {"
        "  if (place === views.length - 1) self.disconnect(); next(); })"
        ".observe(view, { attributes: true, attributeFilter: ['data-ready'] }); next();"
    )
    try:
        with chromium.opened() as chrome:
            chrome.get(address)
            time.sleep(1)
            return [
                chrome.execute_async_script(script, f"#text={urllib.parse.quote(text)}", views)
                for text in texts
            ]
    except BaseException as error:  # pytest's skip, which is no Exception
        print(f"no browser: {error}", file=sys.stderr)
        return []


def _summary(name: str, times: list[float]) -> dict[str, float]:
    return {
        f"{name}_ms_p50": round(statistics.median(times), 1),
        f"{name}_ms_max": round(max(times), 1),
    }


if __name__ == "__main__":
    main()
