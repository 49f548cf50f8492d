"""Training as a user runs it: it learns, resumes exactly, stops politely, refuses a mixture."""

import json
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.bin import trainer
from t2t_lite.data import manifest
from t2t_lite.run import checkpoint
from t2t_lite.train import evaluator

pytestmark = pytest.mark.integration

TINY = (
    "d_model=16,d_ff=32,num_heads=2,d_k=8,d_v=8,num_encoder_layers=1,num_decoder_layers=1,"
    "batch_tokens=512,max_buckets=2,warmup_steps=10"
)


def _arguments(data: pathlib.Path, output: pathlib.Path, *more: str) -> list[str]:
    return [
        "t2t-lite-trainer",
        "--problem=parallel_text",
        f"--data_dir={data}",
        f"--output_dir={output}",
        "--hparams_set=transformer_toy",
        f"--hparams={TINY}",
        "--precision=float32",
        "--eval_sentences=4",
        *more,
    ]


def _start(arguments: list[str]) -> subprocess.Popen:
    code = "import sys; from t2t_lite.bin import trainer; sys.exit(trainer.main(sys.argv))"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _wait_for(path: pathlib.Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.stdout and process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _weights(output: pathlib.Path) -> dict:
    return checkpoint.read_weights(checkpoint.resolve(output))


def test_a_killed_run_ends_with_the_same_bits(tiny_data, tmp_path):
    flags = ("--train_steps=40", "--save_checkpoints_steps=5", "--eval_frequency=20")
    assert trainer.main(_arguments(tiny_data, tmp_path / "whole", *flags)) == 0
    broken = tmp_path / "broken"
    arguments = _arguments(tiny_data, broken, *flags)
    for reached in (5, 20):
        process = _start(arguments)
        _wait_for(broken / f"ckpt-{reached}.index", process)
        time.sleep(random.Random(reached).random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (broken / "ckpt-40.index").exists(), "killed too late to prove anything"
    assert trainer.main(arguments) == 0
    ours, theirs = _weights(broken), _weights(tmp_path / "whole")
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def test_an_evaluation_that_was_killed_is_done_again(tiny_data, tmp_path, monkeypatch, capsys):
    flags = ("--train_steps=4", "--save_checkpoints_steps=2", "--eval_frequency=4")
    arguments = _arguments(tiny_data, tmp_path, *flags)

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(evaluator.Evaluator, "evaluate", die)
        assert trainer.main(arguments) == 130
    assert trainer.main(arguments) == 0
    assert "(best so far)" in capsys.readouterr().err
    assert checkpoint.resolve(tmp_path / "best").endswith("ckpt-4")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_saves_the_step_under_way_and_the_same_command_goes_on(
    tiny_data, tmp_path, capsys, number, status
):
    flags = ["--train_steps=100000", "--eval_frequency=100000"]
    # None but the signal's own checkpoint is due.
    arguments = _arguments(tiny_data, tmp_path, *flags, "--save_checkpoints_steps=100000")
    process = _start(arguments)
    assert process.stdout
    start = []
    while not start or ": compiled for batches" not in start[-1]:
        start.append(process.stdout.readline())
        assert start[-1], start  # "" is the end
    time.sleep(0.5)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == status, output
    (steps,) = re.findall(rf"([\d,]+) steps in .*\n.*stopped by {number.name}", output)
    last = int(steps.replace(",", ""))
    assert [step for step, _ in checkpoint.list_checkpoints(tmp_path)] == [last]
    assert trainer.main([*arguments, f"--train_steps={last + 1}"]) == 0
    assert f"from step {last} to {last + 1}" in capsys.readouterr().err


@pytest.fixture(scope="module")
def trained(tiny_data, tmp_path_factory):
    output = tmp_path_factory.mktemp("trained")
    flags = ("--train_steps=12", "--save_checkpoints_steps=4", "--eval_frequency=6")
    assert trainer.main(_arguments(tiny_data, output, *flags)) == 0
    return output


def test_an_output_dir_is_self_contained(trained):
    names = {path.name for path in trained.iterdir()}
    assert {"hparams.json", "run.json", "best", "checkpoint", "eval"} <= names
    run = json.loads((trained / "run.json").read_text())
    assert run["problem"] == "parallel_text"
    assert (trained / run["vocabulary"]).exists()
    assert [step for step, _ in checkpoint.list_checkpoints(trained)] == [4, 8, 12]
    assert any(name.startswith("events.out.tfevents") for name in names)
    assert not [name for name in names if "temp" in name or "tmp" in name]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (["--hparams=d_ff=64"], "d_ff 32 -> 64"),
        (["--random_seed=9"], "random_seed 1 -> 9"),
        (["--precision=bfloat16"], "precision float32 -> bfloat16"),
    ],
)
def test_other_settings_are_refused(tiny_data, trained, capsys, change, expected):
    if change[0].startswith("--hparams"):
        change = [f"--hparams={TINY},d_ff=64"]
    before = (trained / "hparams.json").read_bytes(), (trained / "run.json").read_bytes()
    assert trainer.main([*_arguments(tiny_data, trained, "--train_steps=12"), *change]) == 1
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
    assert before == ((trained / "hparams.json").read_bytes(), (trained / "run.json").read_bytes())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("--problem=parallel_tex", "did you mean parallel_text"),
        ("--hparams_set=transformer_bas", "did you mean transformer_base"),
        ("--hparams=droput=0.1", "did you mean dropout"),
        ("--hparams=dropout=much", "dropout is a number"),
        ("--hparams=guided_alignment=1", "guided_alignment is for parsing problems"),
        ("--data_dir=nowhere", "nowhere"),
        ("--problem=toy_enfr", "toy_enfr"),
        ("--strategy=multi_worker", "TF_CONFIG"),
        ("--train_step=3", "train_step"),
        ("--train_steps=many", "train_steps"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(tiny_data, tmp_path, capsys, change, expected):
    output = tmp_path / "new"
    status = trainer.main([*_arguments(tiny_data, output), change])
    error = capsys.readouterr().err
    assert status in (1, 2)
    assert expected in error
    assert error.count("\n") == 1, error
    assert not output.exists()


def test_warm_start_lists_what_fits_and_what_does_not(tiny_data, trained, tmp_path, capsys):
    flags = ["--train_steps=1", f"--warm_start_from={trained}", f"--hparams={TINY},d_ff=64"]
    assert trainer.main([*_arguments(tiny_data, tmp_path), *flags]) == 0
    error = capsys.readouterr().err
    assert "warm start: 20 of 26 weights" in error
    assert "keep their random start: decoder_0/feed_forward/bias_1" in error


def test_pairs_that_are_too_long_are_counted(tiny_data, tmp_path, capsys):
    flags = ["--train_steps=1", f"--hparams={TINY},max_length=12"]
    assert trainer.main([*_arguments(tiny_data, tmp_path), *flags]) == 0
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.endswith("left out")]
    problem = registry.problem("parallel_text")
    longest = []
    for path in manifest.load(tiny_data, problem).shards("train"):
        for record in tf.data.TFRecordDataset(str(path)):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            longest.append(max(len(features[key].int64_list.value) for key in features))
    assert line.startswith(f"{sum(length > 12 for length in longest)} training pairs")


def test_early_stopping(tiny_data, tmp_path, capsys):
    # A rate of nearly nothing: the dev score never gets better than at the first evaluation.
    flags = ["--train_steps=50", "--eval_frequency=2", "--early_stopping_patience=2"]
    flags += [f"--hparams={TINY},learning_rate_scale=1e-12"]
    assert trainer.main([*_arguments(tiny_data, tmp_path), *flags]) == 0
    assert "stopped by patience" in capsys.readouterr().out
    assert checkpoint.list_checkpoints(tmp_path)[-1][0] == 6


def test_an_infinite_loss_stops_with_the_batch_and_keeps_the_weights(tiny_data, tmp_path, capsys):
    flags = ["--train_steps=30", "--save_checkpoints_steps=1", "--eval_frequency=100"]
    flags += [f"--hparams={TINY},learning_rate_scale=1e30"]
    assert trainer.main([*_arguments(tiny_data, tmp_path), *flags]) == 1
    error = capsys.readouterr().err
    assert "gradient norm" in error
    assert "not-finite-" in error
    (batch,) = tmp_path.glob("not-finite-*.txt")
    assert "\t" in batch.read_text("utf-8")
    step = int(batch.stem.removeprefix("not-finite-"))
    assert [found for found, _ in checkpoint.list_checkpoints(tmp_path)] == list(range(1, step))
    assert all(np.isfinite(value).all() for value in _weights(tmp_path).values())


def test_a_full_disk_stops_with_one_line_and_loses_nothing(tiny_data, tmp_path):
    """On a small file system of its own; then, with room, the same command goes on."""
    output = tmp_path / "small"
    output.mkdir()
    in_namespace = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    mount = f"mount -t tmpfs -o size=6m none {output}"
    try:
        subprocess.run([*in_namespace, mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system lets no user mount a file system")
    flags = ["--train_steps=8", "--save_checkpoints_steps=2"]
    code = "import sys; from t2t_lite.bin import trainer; sys.exit(trainer.main(sys.argv))"
    train = shlex.join([sys.executable, "-c", code, *_arguments(tiny_data, output, *flags)[1:]])
    script = f"{mount} && {train}; echo status $?; ls {output}; "
    script += f"mount -o remount,size=64m none {output} && {train}; echo status $?; ls {output}"
    done = subprocess.run([*in_namespace, script], capture_output=True, text=True, check=False)
    before, after = done.stdout.split("status")[1:]
    names = before.split()
    assert names[0] == "1"
    assert "ckpt-2.index" in names
    assert not any("temp" in name for name in names)
    lines = [line for line in done.stderr.splitlines() if "cannot write" in line]
    assert [line.partition(": ")[2] for line in lines] == [
        f"cannot write the checkpoint of step 4 to {output}: No space left on device; "
        "earlier checkpoints are intact: free space and start the same command again"
    ]
    assert "from step 2 to 8" in done.stderr
    assert after.split()[0] == "0"
    assert "ckpt-8.index" in after.split()


def test_out_of_memory_names_the_batch_and_what_to_lower(tiny_data, tmp_path):
    """With 3 GB of address space more than TensorFlow takes to start."""
    code = (
        "import resource, sys\n"
        "from t2t_lite.bin import trainer\n"
        "from t2t_lite.train import trainer as _\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "limit = pages * resource.getpagesize() + 3 * 10**9\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "sys.exit(trainer.main(sys.argv))"
    )
    flags = ["--train_steps=2", f"--hparams={TINY.replace('d_ff=32', 'd_ff=800000')}"]
    arguments = [sys.executable, "-c", code, *_arguments(tiny_data, tmp_path / "run", *flags)[1:]]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "out of memory" in line]
    assert len(lines) == 1
    assert re.search(r"at step 1 with a batch of \d+ x \d+ .*lower max_tokens_per_device", lines[0])
