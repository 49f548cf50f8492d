"""What Apache Beam costs: the bytes, processor time and memory beside those of the local commands.

    python benchmarks/beam.py --pairs=500000 --engines=local,fnapi,dask
    python benchmarks/beam.py --pairs=500000 --engines=local,dask --kill
    python benchmarks/beam.py --output_dir=run --decode_from_file=news.en

makes data of the corpus of benchmarks/datagen.py, or translates a file, once by each engine:

    local   two processes of t2t-lite-datagen, or one of t2t-lite-decoder
    fnapi   Apache Beam's FnApiRunner with two processes
    dask    its DaskRunner, with a scheduler and two workers that the script starts; needs
            `pip install distributed`

Prints seconds, the processor time of all processes and its ratio to the first engine's, and the
peak of memory: of all processes together, and of the largest one. The exit status is 1 where bytes
differ from the first engine's.

With --kill one of Beam's workers is killed (SIGKILL) when a third of the work is done. If that ends
the command it is given again. What the commands print is shown.
"""

import argparse
import hashlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import datagen

from t2t_lite.text import text_files

BEAM = {
    "fnapi": "runner=FnApiRunner,direct_running_mode=multi_processing,direct_num_workers=2",
    "dask": "runner=apache_beam.runners.dask.dask_runner.DaskRunner,dask_npartitions=16",
}
_POLL = 0.2  # seconds
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    default = os.environ.get("T2T_LITE_DATA", "../shared/data")
    parser.add_argument("--corpora", default=default, type=pathlib.Path)
    parser.add_argument("--engines", default="local,fnapi,dask")
    parser.add_argument("--pairs", default=100_000, type=int)
    parser.add_argument("--vocab_size", default=37_000, type=int)
    parser.add_argument("--language", default="de", choices=["de", "fr"])
    parser.add_argument("--output_dir", help="decode with this model instead of generating")
    parser.add_argument("--decode_from_file")
    parser.add_argument("--decode_hparams", default="beam_size=1,precision=float32")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--tmp_dir", default=None, help="needs about 1.5 KiB a pair and engine")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.tmp_dir) as folder:
        raw = pathlib.Path(folder) / "raw"
        if not options.output_dir:
            datagen.write_corpus(options, raw)
        first = None
        for engine in options.engines.split(","):
            work = pathlib.Path(folder) / engine
            work.mkdir()
            figures, digest = _measure(engine, options, raw, work)
            first = first or (figures["cpu_seconds"], digest)
            ratio = figures["cpu_seconds"] / first[0]
            figures = " ".join(f"{name}={value:.1f}" for name, value in figures.items())
            print(
                f"RESULT {engine} pairs={0 if options.output_dir else options.pairs} {figures} "
                f"cpu_ratio={ratio:.2f} sha256={digest[:16]} same={digest == first[1]}",
                flush=True,
            )
            if digest != first[1]:
                sys.exit(f"{engine}: other bytes than {options.engines.partition(',')[0]}")


def _measure(
    engine: str, options: argparse.Namespace, raw: pathlib.Path, work: pathlib.Path
) -> tuple[dict[str, float], str]:
    """Run an engine; return its figures and a hash of what it made."""
    watch = _Watch()
    address = f"127.0.0.1:{_free_port()}"
    cluster = _dask(address, work) if engine == "dask" else []
    start = time.perf_counter()
    try:
        command = _command(engine, options, raw, work, address)
        killed, attempts = not options.kill or engine == "local", 0
        while True:
            with open(work / "log", "a") as log:
                process = subprocess.Popen(command, stderr=log, stdout=log)
            while process.poll() is None:
                if not killed and _share_done(options, work) > 1 / 3:
                    victim = _victim(engine, process.pid)
                    killed = victim is not None
                    if victim:
                        print(f"{engine}: killed worker process {victim}", flush=True)
                        os.kill(victim, signal.SIGKILL)
                time.sleep(_POLL)
            attempts += 1
            if not process.returncode:
                break
            print(f"{engine}: {(work / 'log').read_text().strip().splitlines()[-1]}", flush=True)
            if not options.kill or attempts > 1:
                sys.exit(f"{engine} failed: {(work / 'log').read_text()[-2000:]}")
    finally:
        seconds = time.perf_counter() - start
        for one in cluster:
            one.terminate()
            one.wait()
        cpu, peak, largest = watch.stop()
    if options.kill:
        print("\n".join(f"{engine}: {line}" for line in (work / "log").read_text().splitlines()))
    return (
        {"seconds": seconds, "cpu_seconds": cpu, "peak_mib": peak, "largest_process_mib": largest},
        _digest(work),
    )


def _command(
    engine: str, options: argparse.Namespace, raw: pathlib.Path, work: pathlib.Path, address: str
) -> list[str]:
    if options.output_dir:
        command = [
            *(sys.executable, "-m", "t2t_lite.bin.decoder", f"--output_dir={options.output_dir}"),
            f"--decode_from_file={options.decode_from_file}",
            f"--decode_to_file={work / 'made.txt'}",
            f"--decode_hparams={options.decode_hparams}",
        ]
    else:
        command = [
            *(sys.executable, "-m", "t2t_lite.bin.datagen", "--problem=parallel_text"),
            *(f"--raw_dir={raw}", f"--data_dir={work / 'data'}"),
            *(f"--vocab_size={options.vocab_size}", "--num_workers=2"),
        ]
    if engine == "local":
        return command
    client = f",dask_client_address=tcp://{address}" if engine == "dask" else ""
    return [*command, f"--beam_pipeline_options={BEAM[engine]}{client}"]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _dask(address: str, work: pathlib.Path) -> list[subprocess.Popen]:
    """Start a scheduler and two workers, which start a process each."""
    host, _, port = address.partition(":")
    commands = [
        ["scheduler", f"--host={host}", f"--port={port}", "--no-dashboard"],
        *2 * [["worker", address, "--nthreads=1", "--no-dashboard", f"--local-directory={work}"]],
    ]
    log = open(work / "dask.log", "w")  # noqa: SIM115 (the processes have it)
    return [
        subprocess.Popen([sys.executable, "-m", "dask", *command], stdout=log, stderr=log)
        for command in commands
    ]


def _victim(engine: str, pid: int) -> int | None:
    """Return a process that does Beam's work, not the shell around it or Dask's nanny."""
    names = {"fnapi": b"sdk_worker_main", "dask": b"spawn_main"}
    parent = pid if engine == "fnapi" else os.getpid()
    family = ((one, _command_line(one)) for one in _family(parent))
    workers = [one for one, line in family if names[engine] in line and b"sh" not in line[:7]]
    return workers[0] if workers else None


def _share_done(options: argparse.Namespace, work: pathlib.Path) -> float:
    """Return the share of chunks, or of windows, that are done."""
    if options.output_dir:
        parts = list(work.glob("made.txt-*-of-?????"))
        return len(parts) / int(parts[0].name[-5:]) if parts else 0.0
    return len(list(work.glob("data/*.incomplete/chunk-*.json"))) / -(-options.pairs // 20_000)


def _digest(work: pathlib.Path) -> str:
    digest = hashlib.sha256()
    if (work / "data").exists():
        for path in sorted((work / "data").iterdir()):
            digest.update(f"{path.name} {text_files.sha256(path)}\n".encode())
    for path in [*sorted(work.glob("made.txt-*-of-?????")), *work.glob("made.txt")]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Watch(threading.Thread):
    """Adds up the processor time of all processes that this one starts, and theirs, and looks for
    the peaks of their memory. What one uses in the last fifth of a second of its life is missed."""

    def __init__(self):
        super().__init__(daemon=True)
        self._ticks: dict[int, int] = {}
        self._peak = self._largest = 0
        self._running = True
        self.start()

    def run(self) -> None:
        while self._running:
            sizes = [0]
            for pid in _family(os.getpid()):
                if pid != os.getpid():
                    try:
                        stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
                    except OSError:
                        continue
                    fields = stat.split()
                    self._ticks[pid] = int(fields[11]) + int(fields[12])
                    sizes.append(int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
            self._peak = max(self._peak, sum(sizes))
            self._largest = max(self._largest, *sizes)
            time.sleep(_POLL)

    def stop(self) -> tuple[float, float, float]:
        """Return the processor time in seconds, and both peaks in MiB."""
        self._running = False
        self.join()
        cpu = sum(self._ticks.values()) / _TICKS
        return cpu, self._peak / 2**20, self._largest / 2**20


def _family(pid: int) -> Iterator[int]:
    """Yield a process and all its descendants."""
    yield pid
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            pids = children.read_text().split()
        except OSError:
            continue
        for child in pids:
            yield from _family(int(child))


def _command_line(pid: int) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    main()
