"""How fast and how small an export serves, through the loopback server and our own client.

    python benchmarks/serving.py --export_dir=export --source=test.en
    python benchmarks/serving.py --export_dir=export --source=test.en --output_dir=run   # + decoder
    python benchmarks/serving.py --export_dir=export --source=test.en --soak=20000

Prints a line a figure, each with the machine's load average, because latency on a busy machine says
little. The server is a process of its own. `--output_dir` compares the export's throughput in one
large batch with t2t-lite-decoder's on the same sentences, in turns. `--soak` sends so many requests
of mixed and hostile texts and compares every answer with the one given alone.
"""

import argparse
import contextlib
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures

from t2t_lite.serving import client
from t2t_lite.text import text_files

NAME = "benchmark"
HOSTILE = [
    "",
    " \t\u2003 ",
    "\x00",
    "a\x00b",
    "☃𝔘ж漢" * 5,
    "\ufeffA dog.",
    "a\u2028b\x0cc\rd",
    "\u2581",
    "x" * 2000,
]
VERY_LONG = "A dog runs. " * 8334  # 100,000 characters


class Server:
    """A loopback server in a process of its own."""

    def __init__(self, process: subprocess.Popen, ready: str):
        match = re.search(r"gRPC port (\d+), REST port (\d+); ready after ([\d.]+) s", ready)
        assert match, ready
        self.process = process
        self.port, self.rest_port = int(match[1]), int(match[2])
        self.seconds = float(match[3])

    def connect(self, *, rest: bool = False, timeout: float = 600.0, **changes) -> client.Client:
        """Return a client."""
        port = self.rest_port if rest else self.port
        return client.Client(f"127.0.0.1:{port}", NAME, rest=rest, timeout=timeout, **changes)

    def memory(self) -> float:
        """Return the resident memory in MB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(match[1]) / 1024 if match else float("nan")


@contextlib.contextmanager
def serving(flags: argparse.Namespace, *changes: str) -> Iterator[Server]:
    """Start a server and wait until it is ready."""
    command = [sys.executable, "-m", "t2t_lite.bin.loopback_server", f"--servable_name={NAME}"]
    command += [f"--export_dir={flags.export_dir}", "--port=0", "--rest_port=0"]
    command += [f"--tensorflow_intra_op_parallelism={flags.intra_op_threads}", *changes]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout
    try:
        ready = next((line for line in process.stdout if line.startswith("serving")), "")
        yield Server(process, ready)
    finally:
        process.terminate()
        process.wait(30)


def report(figure: str, value: str) -> None:
    """Print a figure."""
    print(f"{figure:52} {value:>34}   load {os.getloadavg()[0]:.1f}", flush=True)


def percentiles(seconds: list[float]) -> str:
    """Return the 50th and 99th percentile in ms."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return f"p50 {statistics.median(ordered) * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms"


def timed(call, *arguments) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


def latencies(flags: argparse.Namespace, texts: list[str]) -> None:
    """Report start, first request, latency alone, and throughput with many clients."""
    of_twelve = [text for text in texts if len(text.split()) == 12] or texts
    size = sum(p.stat().st_size for p in pathlib.Path(flags.export_dir).rglob("*") if p.is_file())
    report("size of the export", f"{size / 1e6:.1f} MB")
    for warm_up in (False, True):
        with serving(flags, f"--warm_up={warm_up}") as server:
            how = "with warm-up" if warm_up else "without warm-up"
            report(f"start of the server {how}", f"{server.seconds:.1f} s")
            with server.connect() as one:
                report(
                    f"first request {how}", f"{timed(one.translate, of_twelve[:1]) * 1e3:.0f} ms"
                )
            if warm_up:
                report("memory after the start", f"{server.memory():.0f} MB")
                _single(server, of_twelve, flags.requests)
    for num_threads in flags.num_threads:
        with serving(flags, f"--num_threads={num_threads}") as server:
            for num_clients in (1, 8, 32):
                _throughput(server, texts, flags.requests, num_clients, num_threads)
            report("memory after all this", f"{server.memory():.0f} MB")


def _single(server: Server, texts: list[str], count: int) -> None:
    for rest in (False, True):
        with server.connect(rest=rest) as one:
            one.translate(texts[:1])
            seconds = [timed(one.translate, [texts[i % len(texts)]]) for i in range(count)]
        kind = "REST" if rest else "gRPC"
        report(f"one sentence of 12 words, {kind}", percentiles(seconds))


def _throughput(
    server: Server, texts: list[str], count: int, num_clients: int, num_threads: int
) -> None:
    """Let each client send one sentence after the other."""
    work = iter([texts[i % len(texts)] for i in range(max(count, 8 * num_clients))])
    seconds: list[float] = []
    lock = threading.Lock()

    def run() -> None:
        with server.connect() as one:
            while True:
                with lock:
                    text = next(work, None)
                if text is None:
                    return
                seconds.append(timed(one.translate, [text]))

    start = time.perf_counter()
    with futures.ThreadPoolExecutor(num_clients) as threads:
        for done in [threads.submit(run) for _ in range(num_clients)]:
            done.result()
    speed = len(seconds) / (time.perf_counter() - start)
    report(
        f"{num_clients} clients, {num_threads} server threads: {speed:.1f} sentences/s",
        percentiles(seconds),
    )


def throughput_of_decoder(flags: argparse.Namespace, texts: list[str]) -> None:
    """Compare one large batch through the export with the Translator, in turns."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    from t2t_lite.decode import translator
    from t2t_lite.serving import export

    path = pathlib.Path(flags.export_dir)
    path /= str(export.versions(path)[-1])
    exported = tf.saved_model.load(str(path))
    signature = exported.signatures["serving_default"]
    options = {**export.recorded(path)["options"], "precision": flags.precision}
    model = translator.Translator.from_output_dir(
        flags.output_dir, flags.checkpoint_path, **options
    )
    inputs = tf.constant(texts)
    speeds: dict[str, list[float]] = {"export": [], "decoder": []}
    outputs = [text.decode() for text in signature(inputs=inputs)["outputs"].numpy()]
    found = [translation.text for translation in model.translate(texts)]
    same = sum(a == b for a, b in zip(outputs, found))
    report("same outputs as the decoder", f"{same} of {len(texts)}")
    for _ in range(flags.rounds):
        speeds["export"].append(len(texts) / timed(lambda: signature(inputs=inputs)))
        speeds["decoder"].append(len(texts) / timed(model.translate, texts))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    for name, value in medians.items():
        report(f"{len(texts)} sentences at once: {name}", f"{value:.1f} sentences/s")
    report("export / decoder", f"{medians['export'] / medians['decoder']:.2f}")
    if flags.reference:
        from t2t_lite.evaluate import bleu

        references = list(text_files.read_lines(flags.reference))[: len(texts)]
        for name, lines in (("export", outputs), ("decoder", found)):
            score = bleu.scores(lines, references)[0]
            report(f"{score.name} of the {name}", f"{score.value:.2f}")


def soak(flags: argparse.Namespace, texts: list[str]) -> int:
    """Send many mixed requests; return how many answers differ from those given alone."""
    chosen = random.Random(flags.soak)
    pool = [*texts[:200], *HOSTILE, VERY_LONG]
    weights = [1.0] * (len(pool) - 1) + [0.02]
    with serving(flags, "--num_threads=2") as server:
        with server.connect() as one:
            alone = {text: one.translate([text])[0] for text in pool}
        failures, memory = 0, []

        def ask(batch: list[str]) -> int:
            answers = shared.translate(batch)
            return sum(
                answer.outputs != alone[text].outputs
                or answer.truncated != alone[text].truncated
                or abs(answer.scores[0] - alone[text].scores[0]) > 1e-3
                for text, answer in zip(batch, answers)
            )

        batches = [
            chosen.choices(pool, weights, k=chosen.choice([1, 1, 1, 2, 5]))
            for _ in range(flags.soak)
        ]
        with server.connect() as shared, futures.ThreadPoolExecutor(16) as threads:
            for number, wrong in enumerate(threads.map(ask, batches), start=1):
                failures += wrong
                if number % 1000 == 0:
                    memory.append(server.memory())
                    report(f"{number:,} requests, {failures} wrong", f"{memory[-1]:.0f} MB")
    return failures


def main() -> None:
    """Run what the flags ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--export_dir", required=True)
    parser.add_argument("--source", required=True, help="sentences, one a line")
    parser.add_argument("--output_dir", help="the run that was exported")
    parser.add_argument("--checkpoint_path")
    parser.add_argument("--precision", default="float32", help="of the decoder")
    parser.add_argument("--reference", help="for BLEU of both")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--num_threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--intra_op_threads", type=int, default=1, help="of the server; 0: all")
    parser.add_argument("--soak", type=int, default=0)
    flags = parser.parse_args()
    texts = list(text_files.read_lines(flags.source))
    if flags.soak:
        sys.exit(soak(flags, texts) > 0)
    latencies(flags, texts)
    if flags.output_dir:
        throughput_of_decoder(flags, texts)


if __name__ == "__main__":
    main()
