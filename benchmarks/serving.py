"""How fast and how small an export serves, through the loopback server and our own client.

    python benchmarks/serving.py --export_dir=export --source=test.en
    python benchmarks/serving.py --export_dir=export --source=test.en --output_dir=run   # + decoder
    python benchmarks/serving.py --export_dir=export --source=test.en --soak=20000
    python benchmarks/serving.py --export_dir=export --source=test.en \
      --peer="other/bin/python benchmarks/ctranslate2_server.py --ctranslate2=ct2_model"

Prints a line a figure, each with the machine's load average, because latency on a busy machine says
little. The server is a process of its own. `--output_dir` compares the export's throughput in one
large batch with t2t-lite-decoder's on the same sentences, in turns. `--peer` starts another server
and sends both, in turns, the same sentences from 1, 8 and 32 clients. `--soak` sends so many
requests from 32 clients by gRPC and REST: texts, hostile ones and one of 10 MB among them, n-best,
ids of any width, and malformed requests that must be refused; every answer is compared with the one
given alone, while clients are killed in the middle of theirs.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import random
import re
import shlex
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures

import ctranslate2_server
import grpc

from t2t_lite import errors
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
HUGE = "A dog runs. " * 833_400  # 10 MB
NUM_CLIENTS = 32
Ask = Callable[[str], object]  # sends a sentence and waits for its translation
SCORE = 1e-3


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
    speed, seconds = _from_clients(lambda: _asking(server), texts, count, num_clients)
    report(
        f"{num_clients} clients, {num_threads} server threads: {speed:.1f} sentences/s",
        percentiles(seconds),
    )


@contextlib.contextmanager
def _asking(server: Server) -> Iterator[Ask]:
    with server.connect() as one:
        yield lambda text: one.translate([text])


def _from_clients(
    connect: Callable[[], contextlib.AbstractContextManager[Ask]],
    texts: list[str],
    count: int,
    num_clients: int,
) -> tuple[float, list[float]]:
    """Let each client send one sentence after the other; return the sentences a second and the
    seconds of each."""
    work = iter([texts[i % len(texts)] for i in range(max(count, 8 * num_clients))])
    seconds: list[float] = []
    lock = threading.Lock()

    def run() -> None:
        with connect() as ask:
            while True:
                with lock:
                    text = next(work, None)
                if text is None:
                    return
                seconds.append(timed(ask, text))

    start = time.perf_counter()
    with futures.ThreadPoolExecutor(num_clients) as threads:
        for done in [threads.submit(run) for _ in range(num_clients)]:
            done.result()
    return len(seconds) / (time.perf_counter() - start), seconds


def against_a_peer(flags: argparse.Namespace, texts: list[str]) -> None:
    """Report both servers' sentences a second with 1, 8 and 32 clients, and their ratio."""
    with (
        serving(flags, f"--num_threads={flags.num_threads[-1]}") as ours,
        _peer(flags.peer) as port,
    ):

        @contextlib.contextmanager
        def asking_the_peer() -> Iterator[Ask]:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                translate = channel.unary_unary(ctranslate2_server.METHOD)
                yield lambda text: translate(text.encode())

        both = {"t2t-lite": lambda: _asking(ours), "the peer": asking_the_peer}
        for connect in both.values():
            _from_clients(connect, texts, 64, 8)  # warms up
        for num_clients in (1, 8, 32):
            speeds: dict[str, list[float]] = {name: [] for name in both}
            for _ in range(flags.rounds):
                for name, connect in both.items():
                    speed, seconds = _from_clients(connect, texts, flags.requests, num_clients)
                    speeds[name].append(speed)
                    report(
                        f"{num_clients} clients, {name}: {speed:.1f} sentences/s",
                        percentiles(seconds),
                    )
            medians = [statistics.median(speeds[name]) for name in both]
            report(f"{num_clients} clients, ratio of medians", f"{medians[0] / medians[1]:.2f}")


@contextlib.contextmanager
def _peer(command: str) -> Iterator[str]:
    """Start another server; yield its port."""
    process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        ready = process.stdout.readline()
        if not ready.startswith("serving on port "):
            sys.exit(f"the peer did not start: {command}")
        yield ready.split()[-1]
    finally:
        process.terminate()
        process.wait(30)


def throughput_of_decoder(flags: argparse.Namespace, texts: list[str]) -> None:
    """Compare one large batch through the export with the Translator, in turns."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    from t2t_lite.decode import translator
    from t2t_lite.serving import export, exported

    path = pathlib.Path(flags.export_dir)
    path /= str(export.versions(path)[-1])
    loaded = tf.saved_model.load(str(path))
    signature = loaded.signatures["serving_default"]
    options = {**exported.recorded(path)["options"], "precision": flags.precision}
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


class Soak:
    """Requests of all kinds, and whether their answers are right: those given alone."""

    def __init__(self, server: Server, texts: list[str]):
        self._server = server
        self._texts = texts
        self._pool = [*texts, *HOSTILE, VERY_LONG, HUGE]
        self._weights = [1.0] * (len(self._pool) - 2) + [0.02, 0.02]
        # By REST and by signature: a connection that all threads share.
        self._clients = {
            (rest, name): server.connect(rest=rest, signature_name=name, in_flight=NUM_CLIENTS)
            for rest in (False, True)
            for name in ("serving_default", "nbest", "from_ids", "score", "tokenize")
        }
        self._alone = {
            (name, text): self._ask(name, {"inputs": [text]})
            for name in ("serving_default", "nbest")
            for text in (self._pool if name == "serving_default" else texts[:20])
        }
        tokens = (self._ask("tokenize", {"inputs": [text]})["ids"][0] for text in texts)
        self._ids = [[token for token in row if token] for row in tokens]  # each ends in EOS
        self.kinds: dict[Callable[[random.Random], bool], float] = {
            self.some_texts: 10,
            self.an_nbest: 1,
            self.some_ids: 4,
            self.ids_without_end: 1,
            self.a_malformed_score: 1,
            self.a_malformed_body: 1,
        }

    def request(self, chosen: random.Random) -> bool:
        """Send a request of some kind; return whether its answer is right."""
        (kind,) = chosen.choices(list(self.kinds), list(self.kinds.values()))
        return kind(chosen)

    def some_texts(self, chosen: random.Random) -> bool:
        """Ask for one to five texts."""
        texts = chosen.choices(self._pool, self._weights, k=chosen.choice([1, 1, 1, 2, 5]))
        found = self._ask("serving_default", {"inputs": texts}, rest=chosen.random() < 0.3)
        return all(
            _same(found, place, self._alone["serving_default", text])
            for place, text in enumerate(texts)
        )

    def an_nbest(self, chosen: random.Random) -> bool:
        """Ask for all outputs of a text."""
        text = chosen.choice(self._texts[:20])
        found = self._ask("nbest", {"inputs": [text]}, rest=chosen.random() < 0.3)
        return _same(found, 0, self._alone["nbest", text])

    def some_ids(self, chosen: random.Random) -> bool:
        """Ask for rows of ids of a width of their own, by what follows EOS."""
        places = [chosen.randrange(len(self._ids)) for _ in range(chosen.choice([1, 1, 2]))]
        width = max(len(self._ids[place]) for place in places) + chosen.randrange(4)
        rows = [self._ids[place] for place in places]
        rows = [row + [chosen.choice([0, 1, 5])] * (width - len(row)) for row in rows]
        found = self._ask("from_ids", {"ids": rows})
        return all(
            abs(found["scores"][i] - self._alone_of(place)["scores"][0]) < SCORE
            and found["truncated"][i] == self._alone_of(place)["truncated"][0]
            for i, place in enumerate(places)
        )

    def ids_without_end(self, chosen: random.Random) -> bool:
        """Ask for ids that do not end: no output, and truncated."""
        found = self._ask("from_ids", {"ids": [[5] * chosen.randint(1, 40)]})
        return found["truncated"] == [True] and not any(found["ids"][0])

    def a_malformed_score(self, chosen: random.Random) -> bool:
        """Ask with more targets than inputs; that is refused."""
        inputs = {"inputs": ["a"], "targets": ["b", "c"]}
        try:
            self._ask("score", inputs, rest=chosen.random() < 0.3)
        except errors.UserError as error:
            return "equal 0th-dimension size" in str(error)
        return False

    def a_malformed_body(self, chosen: random.Random) -> bool:
        """Ask by REST as nobody should; that is refused."""
        body = chosen.choice(
            [{"instances": "A dog runs."}, {"instances": []}, {"inputs": [5]}, [], {"ids": [[1]]}]
        )
        url = f"http://127.0.0.1:{self._server.rest_port}/v1/models/{NAME}:predict"
        try:
            urllib.request.urlopen(url, json.dumps(body).encode(), timeout=600)
        except urllib.error.HTTPError as error:
            return error.code == 400 and "error" in json.loads(error.read())
        return False

    def _alone_of(self, place: int) -> dict[str, list]:
        return self._alone["serving_default", self._texts[place]]

    def _ask(self, name: str, inputs: dict[str, list], *, rest: bool = False) -> dict[str, list]:
        return self._clients[rest, name].predict(inputs)

    def close(self) -> None:
        """Close the connections."""
        for one in self._clients.values():
            one.__exit__(None, None, None)


def _same(found: dict[str, list], place: int, alone: dict[str, list]) -> bool:
    """Return whether an item of an answer is what the text gets alone, scores within SCORE."""
    for name, values in found.items():
        value, expected = values[place], alone[name][0]
        if name == "scores":
            pairs = zip(_list(value), _list(expected))
            if any(abs(a - b) > SCORE for a, b in pairs):
                return False
        elif value != expected:
            return False
    return True


def _list(value: float | Sequence[float]) -> Sequence[float]:
    return value if isinstance(value, Sequence) else [value]


@contextlib.contextmanager
def killed_clients(server: Server) -> Iterator[None]:
    """Start a client every few seconds, and kill it in the middle of its requests."""
    code = (
        "import sys; from t2t_lite.serving import client;"
        f"one = client.Client('127.0.0.1:' + sys.argv[1], {NAME!r}, rest=len(sys.argv) > 2);"
        "[*one.stream(['A dog runs in the park. ' * 9] * 10_000)]"
    )
    stopped = threading.Event()

    def run() -> None:
        for rest in itertools.cycle([False, True]):
            port = str(server.rest_port if rest else server.port)
            command = [sys.executable, "-c", code, port, *(["rest"] if rest else [])]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            stopped.wait(3)
            process.kill()
            process.wait()
            if stopped.wait(10):
                return

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def soak(flags: argparse.Namespace, texts: list[str]) -> int:
    """Send many mixed requests; return how many answers are wrong."""
    numbers = iter(range(flags.soak))
    wrong, done, lock = 0, 0, threading.Lock()
    with serving(flags, "--num_threads=2") as server:
        mixed = Soak(server, texts[:200])

        def run(seed: int) -> None:
            nonlocal wrong, done
            chosen = random.Random(seed)
            while True:
                with lock:
                    if next(numbers, None) is None:
                        return
                right = mixed.request(chosen)
                with lock:
                    wrong, done = wrong + (not right), done + 1
                    if done % 1000 == 0:
                        report(f"{done:,} requests, {wrong} wrong", f"{server.memory():.0f} MB")

        with killed_clients(server), futures.ThreadPoolExecutor(NUM_CLIENTS) as threads:
            for finished in [threads.submit(run, seed) for seed in range(NUM_CLIENTS)]:
                finished.result()
        mixed.close()
    return wrong


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
    parser.add_argument("--peer", help="a command that serves as ctranslate2_server does")
    parser.add_argument("--soak", type=int, default=0)
    flags = parser.parse_args()
    texts = list(text_files.read_lines(flags.source))
    if flags.peer:
        against_a_peer(flags, texts)
        return
    if flags.soak:
        sys.exit(soak(flags, texts) > 0)
    latencies(flags, texts)
    if flags.output_dir:
        throughput_of_decoder(flags, texts)


if __name__ == "__main__":
    main()
