"""A training on several hosts, namespaces of this one: bytes and seconds a step, equal weights.

  sudo python benchmarks/hosts.py --problem=toy_ende --data_dir=data --hosts=2 --rate=1gbit

trains once as one process and once as --hosts workers, each with a network of its own (Linux' `ip
netns`, and `tc` for --rate and --delay), and prints

  - the bytes that a worker sends a step, beside the 2 (n - 1) / n x 4 bytes a parameter which a
    ring needs at least;
  - the seconds a step;
  - how much the weights of both trainings, which have no dropout, differ: the largest difference,
    and the root of the mean square beside that of the weights.

With --kill the hosts train once more: the last worker is killed after step 20, and all are started
again. Their weights must have the bits of the training that nobody disturbed; if not, the exit
status is 1.

--delay needs a kernel with netem. The hosts share this machine's cores: seconds say how much the
network adds, not how fast several machines are.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

PORT = 2222
# The step from which bytes and seconds are counted: all shapes but rare ones are traced.
_FIRST = 10
_POLL = 0.02
_NOTICE = 120  # seconds that the others have to end by themselves
_CODE = "import sys; from t2t_lite.bin import trainer; sys.exit(trainer.main(sys.argv))"


def main() -> None:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problem", required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate", help="of each host's link, as tc has it: 1gbit")
    parser.add_argument("--delay", help="of each packet that leaves a host: 10ms")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--hparams", default="batch_tokens=512,max_buckets=1")
    parser.add_argument("--hparams_set", default="transformer_toy")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--one", type=pathlib.Path, help="where the one process trains: kept there")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        several = pathlib.Path(folder) / "several"
        one = flags.one or pathlib.Path(folder) / "one"
        if not (one / f"ckpt-{flags.steps}.index").exists():
            null = subprocess.DEVNULL
            _finish([subprocess.Popen(_command(flags, one), stdout=null, stderr=null)])
        names = stack.enter_context(_network(flags.hosts, flags.rate, flags.delay))
        begun = max(_FIRST, _last(several))
        workers = _start(flags, several, names)
        _wait_for(several / f"ckpt-{begun}.index", workers)
        before, start = _sent(names[-1]), time.monotonic()
        _wait_for(several / f"ckpt-{flags.steps}.index", workers)
        seconds, sent = time.monotonic() - start, _sent(names[-1]) - before
        _finish(workers)
        steps = max(flags.steps - begun, 1)
        largest, share, parameters = _compare(one, several)
        n = flags.hosts
        theory = 2 * (n - 1) / n * 4 * parameters
        print(
            f"RESULT hosts={n} rate={flags.rate} delay={flags.delay} parameters={parameters} "
            f"seconds_per_step={seconds / steps:.3f} megabytes_per_step={sent / steps / 1e6:.3f} "
            f"theory={theory / 1e6:.3f} ratio={sent / steps / max(theory, 1):.3f} "
            f"largest_difference={largest:.1e} rms_difference_of_weights={share:.1e}",
            flush=True,
        )
        if flags.kill:
            killed = pathlib.Path(folder) / "killed"
            _train_with_a_kill(flags, killed, names)
            largest, _, _ = _compare(several, killed)
            print(f"RESULT killed_and_started_again largest_difference={largest:.1e}")
            sys.exit(largest > 0)


def _train_with_a_kill(
    flags: argparse.Namespace, directory: pathlib.Path, names: Sequence[str]
) -> None:
    workers = _start(flags, directory, names)
    _wait_for(directory / "ckpt-20.index", workers)
    workers[-1].kill()
    for worker in workers[:-1]:  # they notice that it is gone, and end
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(_NOTICE)
    print(f"killed after step {_last(directory)}; the others ended: ", end="")
    print(all(worker.poll() is not None for worker in workers[:-1]))
    for worker in workers:
        worker.kill()
        worker.wait()
    _finish(_start(flags, directory, names))


def _command(flags: argparse.Namespace, directory: pathlib.Path) -> list[str]:
    return [
        *(sys.executable, "-c", _CODE),
        f"--problem={flags.problem}",
        f"--data_dir={flags.data_dir}",
        f"--output_dir={directory}",
        f"--hparams_set={flags.hparams_set}",
        f"--hparams=dropout=0,attention_dropout=0,relu_dropout=0,{flags.hparams}",
        "--precision=float32",
        "--eval_sentences=0",
        "--save_checkpoints_steps=10",
        f"--train_steps={flags.steps}",
    ]


@contextlib.contextmanager
def _network(hosts: int, rate: str | None, delay: str | None) -> Iterator[Sequence[str]]:
    """Make a namespace for each host, with eth0 at a common switch; remove all at the end."""
    switch = f"t2t{os.getpid()}"
    names = [f"{switch}-{index}" for index in range(hosts)]
    try:
        for name in (switch, *names):
            _run(f"ip netns add {name}")
            _run(f"ip -n {name} link set lo up")
        _run(f"ip -n {switch} link add br0 type bridge")
        _run(f"ip -n {switch} link set br0 up")
        for index, name in enumerate(names):
            _run(f"ip -n {switch} link add p{index} type veth peer name eth0 netns {name}")
            _run(f"ip -n {switch} link set p{index} master br0 up")
            _run(f"ip -n {name} addr add {_address(index)}/24 dev eth0")
            _run(f"ip -n {name} link set eth0 up")
            if rate:
                _run(f"tc -n {name} qdisc add dev eth0 root tbf rate {rate} burst 1mb latency 1s")
            if delay:
                parent = "parent 8001:" if rate else "root"
                _run(f"tc -n {name} qdisc add dev eth0 {parent} netem delay {delay}")
        yield names
    finally:
        for name in (*names, switch):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def _start(
    flags: argparse.Namespace, directory: pathlib.Path, names: Sequence[str]
) -> list[subprocess.Popen]:
    cluster = {"worker": [f"{_address(index)}:{PORT}" for index in range(len(names))]}
    processes = []
    for index, name in enumerate(names):
        task = {"type": "worker", "index": index}
        environment = dict(os.environ, TF_CONFIG=json.dumps({"cluster": cluster, "task": task}))
        command = ["ip", "netns", "exec", name, *_command(flags, directory)]
        with open(directory.with_name(f"{index}.log"), "w") as log:
            process = subprocess.Popen(command, env=environment, stderr=log, stdout=log)
        processes.append(process)
    return processes


def _wait_for(path: pathlib.Path, workers: Sequence[subprocess.Popen]) -> None:
    while not path.exists():
        if any(worker.poll() for worker in workers):
            logs = sorted(path.parent.parent.glob("*.log"))
            raise SystemExit("\n".join(log.read_text()[-2000:] for log in logs))
        time.sleep(_POLL)


def _finish(processes: Sequence[subprocess.Popen]) -> None:
    if any([process.wait() for process in processes]):
        raise SystemExit("a training failed")


def _last(directory: pathlib.Path) -> int:
    """Return the step of the newest checkpoint, 0 where there is none."""
    steps = [int(path.stem.rpartition("-")[2]) for path in directory.glob("ckpt-*.index")]
    return max(steps, default=0)


def _sent(name: str) -> int:
    """Return the bytes that a host has sent so far."""
    counter = "/sys/class/net/eth0/statistics/tx_bytes"
    return int(subprocess.check_output(["ip", "netns", "exec", name, "cat", counter]))


def _compare(one: pathlib.Path, several: pathlib.Path) -> tuple[float, float, int]:
    """Return how far the last weights are apart, at most and on the whole; their number."""
    import numpy as np

    from t2t_lite.run import checkpoint

    ours, theirs = (
        checkpoint.read_weights(checkpoint.resolve(folder)) for folder in (several, one)
    )
    assert ours.keys() == theirs.keys()
    ours, theirs = (
        np.concatenate([weights[name].ravel() for name in sorted(ours)])
        for weights in (ours, theirs)
    )
    difference = ours - theirs
    share = np.sqrt(np.mean(difference**2) / np.mean(theirs**2))
    return float(np.abs(difference).max()), float(share), ours.size


def _address(index: int) -> str:
    return f"10.77.0.{index + 1}"


def _run(command: str) -> None:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
