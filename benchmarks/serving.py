"""How fast and how small an export is, in Python and through a running TensorFlow Serving.

    python benchmarks/serving.py --export_dir=export --source=test.en
    python benchmarks/serving.py --export_dir=export --source=test.en --output_dir=run   # + decoder
    python benchmarks/serving.py --server=localhost:8500 --servable_name=ende --source=test.en

Prints one figure a line, each with the machine's load average, because latency on a busy machine
says little. `--output_dir` compares the export's throughput in one large batch with that of
t2t-lite-decoder on the same sentences, in turns. `--server` measures requests of one sentence from
1, 8 and 32 clients.
"""

import argparse
import os
import pathlib
import statistics
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any

from t2t_lite.serving import client
from t2t_lite.text import text_files


def report(figure: str, value: str) -> None:
    """Print a figure."""
    print(f"{figure:52} {value:>34}   load {os.getloadavg()[0]:.1f}", flush=True)


def percentiles(seconds: list[float]) -> str:
    """Return the 50th and 99th percentile in ms."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return f"p50 {statistics.median(ordered) * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms"


def timed(call: Callable, *arguments: object) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def of_twelve_words(texts: list[str]) -> list[str]:
    """Return the sentences of 12 words; all of them if there are none."""
    return [text for text in texts if len(text.split()) == 12] or texts


def one_by_one(
    translate: Callable[[list[str]], object], texts: list[str], count: int
) -> list[float]:
    """Return the seconds of `count` requests of one sentence each."""
    return [timed(translate, [texts[number % len(texts)]]) for number in range(count)]


def in_python(flags: argparse.Namespace, texts: list[str]) -> None:
    """Report load time, size, first request, latency and throughput, beside the decoder's."""
    from t2t_lite.serving import exported

    start = time.perf_counter()
    model = exported.load(flags.export_dir)
    report("time to load", f"{time.perf_counter() - start:.1f} s")
    size = sum(file.stat().st_size for file in model.path.rglob("*") if file.is_file())
    report("size of the export", f"{size / 1e6:.1f} MB")
    sentences = of_twelve_words(texts)
    report("first request", f"{timed(model.translate, sentences[:1]) * 1e3:.0f} ms")
    seconds = one_by_one(model.translate, sentences, flags.requests)
    report("one sentence of 12 words", percentiles(seconds))
    translators: dict[str, Any] = {"export": model}
    if flags.output_dir:
        from t2t_lite.decode import translator

        options = {**model.record["options"], "precision": flags.precision}
        translators["decoder"] = translator.Translator.from_output_dir(
            flags.output_dir, flags.checkpoint_path, **options
        )
    in_one_batch(translators, flags, texts)


def in_one_batch(translators: dict[str, Any], flags: argparse.Namespace, texts: list[str]) -> None:
    """Report each translator's sentences a second in one large batch, and BLEU."""
    outputs = {
        name: [output.text for output in model.translate(texts)]
        for name, model in translators.items()
    }
    speeds: dict[str, list[float]] = {name: [] for name in translators}
    for _ in range(flags.rounds):
        for name, model in translators.items():
            speeds[name].append(len(texts) / timed(model.translate, texts))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    for name, value in medians.items():
        report(f"{len(texts)} sentences at once: {name}", f"{value:.1f} sentences/s")
    if "decoder" in translators:
        report("export / decoder", f"{medians['export'] / medians['decoder']:.2f}")
        same = sum(map(str.__eq__, outputs["export"], outputs["decoder"]))
        report("same outputs as the decoder", f"{same} of {len(texts)}")
    if flags.reference:
        from t2t_lite.evaluate import bleu

        references = list(text_files.read_lines(flags.reference))[: len(texts)]
        for name, lines in outputs.items():
            score = bleu.scores(lines, references)[0]
            report(f"{score.name} of the {name}", f"{score.value:.2f}")


def by_server(flags: argparse.Namespace, texts: list[str]) -> None:
    """Report latency of one client and throughput of several."""
    with connect(flags) as translator:
        translator.translate(texts[:1])
        sentences = of_twelve_words(texts)
        seconds = one_by_one(translator.translate, sentences, flags.requests)
        report("one sentence of 12 words", percentiles(seconds))
    for num_clients in (1, 8, 32):
        speed, seconds = throughput(flags, texts, num_clients)
        report(f"{num_clients} clients: {speed:.1f} sentences/s", percentiles(seconds))


def connect(flags: argparse.Namespace) -> client.Client:
    """Return a client."""
    return client.Client(flags.server, flags.servable_name, rest=flags.rest, timeout=600)


def throughput(
    flags: argparse.Namespace, texts: list[str], num_clients: int
) -> tuple[float, list[float]]:
    """Return the sentences a second of all clients together, and the seconds of each request."""
    count = max(flags.requests, 8 * num_clients)
    work = iter([texts[number % len(texts)] for number in range(count)])
    seconds: list[float] = []
    lock = threading.Lock()

    def run() -> None:
        with connect(flags) as translator:
            while True:
                with lock:
                    text = next(work, None)
                if text is None:
                    return
                seconds.append(timed(translator.translate, [text]))

    start = time.perf_counter()
    with futures.ThreadPoolExecutor(num_clients) as threads:
        for done in [threads.submit(run) for _ in range(num_clients)]:
            done.result()
    return len(seconds) / (time.perf_counter() - start), seconds


def main() -> None:
    """Run what the flags ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    measured = parser.add_mutually_exclusive_group(required=True)
    measured.add_argument("--export_dir", type=pathlib.Path)
    measured.add_argument("--server", help="host:port of a running TensorFlow Serving")
    parser.add_argument("--servable_name", help="the model's name on the server")
    parser.add_argument("--rest", action="store_true", help="ask the server by REST, not gRPC")
    parser.add_argument("--source", required=True, help="sentences, one a line")
    parser.add_argument("--output_dir", help="the run that was exported")
    parser.add_argument("--checkpoint_path")
    parser.add_argument("--precision", default="float32", help="precision of the decoder")
    parser.add_argument("--reference", help="references, one a line: prints BLEU")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    texts = list(text_files.read_lines(flags.source))
    if flags.server:
        by_server(flags, texts)
    else:
        in_python(flags, texts)


if __name__ == "__main__":
    main()
