"""Two worker processes on this machine: the same result as one, and both go on after a loss."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from t2t_lite.run import checkpoint

pytestmark = pytest.mark.integration


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _start(data: pathlib.Path, output: pathlib.Path, *, steps: int, workers: int) -> list:
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(workers)]
    arguments = [
        "--problem=parallel_text",
        f"--data_dir={data}",
        f"--output_dir={output}",
        "--hparams_set=transformer_toy",
        "--hparams=d_model=16,d_ff=32,num_heads=2,d_k=8,d_v=8,num_encoder_layers=1,"
        "num_decoder_layers=1,batch_tokens=512,max_buckets=1,warmup_steps=10,dropout=0",
        "--precision=float32",
        "--save_checkpoints_steps=5",
        "--eval_sentences=0",
        f"--train_steps={steps}",
    ]
    processes = []
    for index in range(workers):
        environment = dict(os.environ)
        if workers > 1:
            cluster = {"worker": addresses}
            task = {"type": "worker", "index": index}
            environment["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
        code = "import sys; from t2t_lite.bin import trainer; sys.exit(trainer.main(sys.argv))"
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return processes


def _finish(processes: list) -> None:
    outputs = [process.communicate(timeout=180)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs


def test_two_workers_equal_one_and_survive_a_loss(tiny_data, tmp_path):
    _finish(_start(tiny_data, tmp_path / "one", steps=20, workers=1))
    two = tmp_path / "two"
    processes = _start(tiny_data, two, steps=100_000, workers=2)
    deadline = time.monotonic() + 120
    while not (two / "ckpt-10.index").exists():
        assert time.monotonic() < deadline
        assert all(process.poll() is None for process in processes), processes[0].communicate()
        time.sleep(0.05)
    processes[1].send_signal(signal.SIGKILL)
    processes[1].wait()
    time.sleep(1)
    processes[0].kill()  # as an operator would; it waits for its peer, or has noticed the loss
    processes[0].wait()
    # What was reached beyond step 10 is thrown away so that the end is at step 20.
    for step, prefix in checkpoint.list_checkpoints(two):
        if step > 10:
            for path in two.glob(f"{pathlib.Path(prefix).name}.*"):
                path.unlink()
    _finish(_start(tiny_data, two, steps=20, workers=2))
    ours = checkpoint.read_weights(checkpoint.resolve(two))
    theirs = checkpoint.read_weights(checkpoint.resolve(tmp_path / "one"))
    assert checkpoint.resolve(two).endswith("ckpt-20")
    for name, value in ours.items():
        np.testing.assert_allclose(value, theirs[name], atol=1e-5, err_msg=name)
