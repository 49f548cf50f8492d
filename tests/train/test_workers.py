"""Two processes on this machine: the same result as one, and all do the same or none goes on."""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import numpy as np
import pytest
import tiny_training

from t2t_lite.run import checkpoint, output_dir


@pytest.fixture
def start(tiny_data, tmp_path):
    """Return a function that starts the trainer as tasks of one cluster; all end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *tasks, **options: _start(stack, tiny_data, tmp_path, tasks, **options)


@dataclasses.dataclass
class Process:
    """A trainer whose output goes to a file: nothing waits for a reader."""

    process: subprocess.Popen
    log: pathlib.Path
    cluster: dict[str, list[str]]

    @property
    def output(self) -> str:
        return self.log.read_text()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _start(
    stack, data, folder, tasks, *, cluster=None, output_dirs=None, steps, more=(), only=None
) -> list[Process]:
    """Start one process for each of `tasks`, types of TF_CONFIG, or for the first `only`; no
    tasks: without a cluster."""
    flags = ["--save_checkpoints_steps=5", f"--train_steps={steps}", "--hparams=dropout=0"]
    ports = iter(_free_ports(len(tasks)))
    cluster = cluster or {
        kind: [f"127.0.0.1:{next(ports)}" for _ in range(tasks.count(kind))]
        for kind in dict.fromkeys(tasks)
    }
    processes = []
    for number in range(only or max(1, len(tasks))):
        environment = dict(os.environ)
        if tasks:
            task = {"type": tasks[number], "index": tasks[:number].count(tasks[number])}
            environment["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
        output = output_dirs[number] if output_dirs else folder / "run"
        own_flags = [*flags, *(more[number] if more else [])]
        command = tiny_training.command(tiny_training.arguments(data, output, *own_flags))
        log = folder / f"{time.monotonic_ns()}.log"
        file = stack.enter_context(log.open("w"))
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        processes.append(Process(process, log, cluster))
        stack.callback(processes[-1].end)
    return processes


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def _finish(processes: list[Process], status: int = 0) -> None:
    found = [each.process.wait(timeout=tiny_training.PATIENCE) for each in processes]
    assert found == [status] * len(processes), [process.output for process in processes]


def test_two_workers_equal_one_and_survive_a_loss(start, tmp_path):
    _finish(start(steps=24, output_dirs=[tmp_path / "one"]))
    two = tmp_path / "run"
    processes = start("worker", "worker", steps=100_000)
    tiny_training.wait_for(two / "ckpt-10.index", *(each.process for each in processes))
    processes[1].end()
    time.sleep(1)
    processes[0].end()  # as an operator would; it waits for its peer, or has noticed the loss
    # What was reached beyond step 10 is thrown away so that the end is at step 20.
    for step, prefix in checkpoint.list_checkpoints(two):
        if step > 10:
            for path in two.glob(f"{pathlib.Path(prefix).name}.*"):
                path.unlink()
    # With a chief, worker 0 writes nothing: two that write would not share the output_dir's lock.
    _finish(start("worker", "chief", steps=20))
    _finish(start(steps=24))  # one alone finds its place in the data
    ours = checkpoint.read_weights(checkpoint.resolve(two))
    theirs = checkpoint.read_weights(checkpoint.resolve(tmp_path / "one"))
    assert checkpoint.resolve(two).endswith("ckpt-24")
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_a_stop_of_one_stops_all_and_none_goes_on_without_the_chiefs_checkpoint(start, tmp_path):
    own = [tmp_path / "a", tmp_path / "b"]
    processes = start("worker", "worker", steps=100_000, output_dirs=own)
    tiny_training.wait_for(own[0] / "ckpt-5.index", *(each.process for each in processes))
    processes[1].process.send_signal(signal.SIGTERM)
    _finish(processes, 143)
    assert not own[1].exists()
    (last, _) = checkpoint.list_checkpoints(own[0])[-1]
    processes = start("worker", "worker", steps=100_000, output_dirs=own)
    _finish(processes, 1)
    for process in processes:
        (line,) = [x for x in process.output.splitlines() if "workers" in x]
        assert f": the workers must begin with the same weights, but step is {last} at the" in line


def test_workers_with_other_flags_or_without_a_chief_do_not_begin(start, tmp_path):
    processes = start("worker", "worker", steps=5, more=[[], ["--random_seed=2"]])
    _finish(processes, 1)
    for process in processes:
        assert "but random_seed is 1 at the chief and 2 at worker 1 of 2" in process.output
    assert not (tmp_path / "run").exists()
    with output_dir.only_one(tmp_path / "run"):
        processes = start("chief", "worker", steps=5)
        _finish(processes, 1)
    assert "trainer.py: another process is at work in " in processes[0].output
    assert "another worker could not begin: another process is at work" in processes[1].output


def test_a_missing_worker_is_named_and_signals_end_the_wait(start):
    """Python's own wait; in TensorFlow's, no signal does."""
    (process,) = start("worker", "worker", steps=5, only=1)
    deadline = time.monotonic() + tiny_training.PATIENCE
    while "waiting for worker 1 at 127.0.0.1:" not in process.output:
        assert process.process.poll() is None, process.output
        assert time.monotonic() < deadline
        time.sleep(0.2)
    (other,) = start("worker", steps=5, cluster=process.cluster)
    assert other.process.wait(timeout=tiny_training.PATIENCE) == 1
    assert "where it cannot listen: Address already in use" in other.output
    process.process.send_signal(signal.SIGINT)
    assert process.process.wait(timeout=tiny_training.PATIENCE) == 130
    assert process.output.endswith("interrupted\n")
