"""Send an export many requests: none may be lost or answered wrongly, and memory must stay flat.

  python scripts/soak.py [--export_dir=export] [--requests=20000] [--half=client|graph]

The first half goes through the client, by gRPC and then by REST, to the tests' fake of TensorFlow
Serving, which has fewer threads than the client has requests in flight. The second half goes
through a Session, which loads an export as TensorFlow Serving does, in batches of all sizes and
with all signatures. Texts are short, long, blank or not UTF-8, in a random order.
The right answer to a text is the one that it gets alone.

Without --export_dir it exports a tiny model with random weights. Prints a line for each thousand
requests and exits with status 1 if anything is wrong. Both halves take some ten minutes on two
cores.
"""

import argparse
import importlib
import pathlib
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests"))
_REPORTED = 1_000
_SCORE = 1e-4  # sums in float32 in another order
_GROWTH = 100  # MB that memory may grow by after a tenth of the requests
_WORDS = ["a", "the", "two", "dogs", "runs", "in", "park", "house", "sleeps", "\u2603", "zebra"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the halves; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--export_dir", type=pathlib.Path, help="a folder of versions")
    parser.add_argument("--requests", type=int, default=20_000, help="of each half")
    parser.add_argument("--half", choices=["client", "graph"], help="default: both")
    parser.add_argument("--seed", type=int, default=1, help="of texts and their order")
    flags = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="t2t-lite-soak-") as folder:
        export_dir = flags.export_dir or _tiny_export(pathlib.Path(folder))
        texts = list(_texts(random.Random(flags.seed)))
        order = random.Random(flags.seed).choices(range(len(texts)), k=flags.requests)
        problems = []
        if flags.half != "graph":
            problems += through_client(export_dir, texts, order)
        if flags.half != "client":
            problems += through_graph(export_dir, texts, order)
    for problem in problems[:20]:
        print(f"soak: {problem}", file=sys.stderr)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


def through_client(
    export_dir: pathlib.Path, texts: Sequence[str], order: Sequence[int]
) -> list[str]:
    """Send the texts of `order` through the client; return what is wrong."""
    from t2t_lite.serving import client, exported

    fake_serving = importlib.import_module("fake_serving")

    alone = exported.load(export_dir)
    expected = [alone.translate([text])[0] for text in texts]
    problems, total = [], 0
    with fake_serving.Server(export_dir, "soak", max_threads=6) as server:
        half = len(order) // 2
        for rest, part in ((False, order[:half]), (True, order[half:])):
            address = f"127.0.0.1:{server.rest_port if rest else server.port}"
            with client.Client(address, "soak", rest=rest, in_flight=16) as translator:
                answers = translator.stream(texts[number] for number in part)
                for number, answer in zip(part, answers, strict=True):
                    total += 1
                    problems += _difference(texts[number], answer, expected[number])
                    _report("client", total)
    return problems


def through_graph(
    export_dir: pathlib.Path, texts: Sequence[str], order: Sequence[int]
) -> list[str]:
    """Send the texts of `order` to all signatures in batches; return what is wrong."""
    from t2t_lite.serving import exported, protocol

    model = exported.load(export_dir)
    assert isinstance(model, exported.Translator)  # not of LiteRT
    names = sorted(model.record["signatures"])
    rows = np.array([protocol.as_bytes(text) for text in texts], object)
    ids = model._session.run("tokenize", {"inputs": rows})["ids"]

    def run(name: str, places: Sequence[int]) -> dict[str, np.ndarray]:
        columns = {key: rows[places] for key in model._session.specs[name]}
        if name == "from_ids":
            columns = {"ids": ids[places]}
        return model._session.run(name, columns)

    alone = {name: [run(name, [place]) for place in range(len(texts))] for name in names}
    problems, sent, first, draw = [], 0, 0.0, random.Random(0)
    while sent < len(order):
        places, name = order[sent : sent + draw.choice([1, 1, 1, 2, 8, 32])], draw.choice(names)
        outputs = run(name, places)
        for row, place in enumerate(places):
            for key, wanted in alone[name][place].items():
                if not _is_close(outputs[key][row], wanted[0]):
                    problems.append(f"{name} of {rows[place][:50]!r}: {key} {outputs[key][row]!r}")
            sent += 1
            _report("graph", sent)
        if not first and sent > len(order) // 10:
            first = _memory()
    if _memory() - first > _GROWTH:
        problems.append(f"memory grew from {first:.0f} to {_memory():.0f} MB")
    return problems


def _texts(draw: random.Random) -> Iterator[str]:
    """Yield what clients send."""
    yield from ("", " \t", "\0", "x" * 20_000, "\u2603" * 300, "\ud800 a dog")
    for _ in range(300):
        yield " ".join(draw.choices(_WORDS, k=draw.choice([1, 2, 3, 5, 8, 13, 40])))


def _tiny_export(folder: pathlib.Path) -> pathlib.Path:
    from t2t_lite.serving import export

    tiny_run = importlib.import_module("tiny_run")

    export.export(tiny_run.write(folder / "run"), folder / "export", max_source_length=100)
    return folder / "export"


def _difference(text: str, answer: Any, expected: Any) -> list[str]:
    is_same = answer.text == expected.text and abs(answer.score - expected.score) < _SCORE
    return [] if is_same else [f"{text[:50]!r} has the output {answer.text!r}"]


def _is_close(value: Any, wanted: Any) -> bool:
    if np.asarray(wanted).dtype.kind == "f":
        return np.allclose(value, wanted, atol=_SCORE, rtol=_SCORE)
    return np.array_equal(value, wanted)


def _report(half: str, count: int) -> None:
    if count % _REPORTED == 0:
        print(f"{half}: {count:,} requests, {_memory():.0f} MB", flush=True)


def _memory() -> float:
    """Return the megabytes that this process holds."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


if __name__ == "__main__":
    sys.exit(main())
