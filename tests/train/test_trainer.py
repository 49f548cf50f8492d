"""Training as a user runs it: it learns, resumes exactly, stops politely, refuses a mixture."""

import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import types
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
import tiny_training

from t2t_lite import errors, registry
from t2t_lite.data import buckets, data_dir, manifest, shards
from t2t_lite.run import checkpoint, output_dir
from t2t_lite.train import devices, evaluator, results, step
from t2t_lite.train import trainer as trainers


def _start(arguments: list[str]) -> subprocess.Popen:
    command = tiny_training.command(arguments)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _weights(output: pathlib.Path) -> dict:
    return checkpoint.read_weights(checkpoint.resolve(output))


def _steps(output: pathlib.Path) -> list[int]:
    return [step for step, _ in checkpoint.list_checkpoints(output)]


def _same_weights(one: pathlib.Path, other: pathlib.Path) -> None:
    ours, theirs = _weights(one), _weights(other)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def test_a_killed_run_ends_with_the_same_bits(tiny_data, tmp_path):
    flags = ("--train_steps=40", "--save_checkpoints_steps=5", "--eval_frequency=20")
    flags += ("--hparams=max_buckets=2",)
    assert tiny_training.train(tiny_data, tmp_path / "whole", *flags) == 0
    broken = tmp_path / "broken"
    arguments = tiny_training.arguments(tiny_data, broken, *flags)
    for reached in (5, 20):
        with _start(arguments) as process:
            tiny_training.wait_for(broken / f"ckpt-{reached}.index", process)
            time.sleep(random.Random(reached).random() * 0.3)
            process.kill()
    assert not (broken / "ckpt-40.index").exists(), "killed too late to prove anything"
    with _start(arguments) as process:
        output, _ = process.communicate()
    assert process.returncode == 0, output
    assert "WARNING" not in output  # TensorFlow's, of parts of a checkpoint that nobody asked for
    _same_weights(broken, tmp_path / "whole")


def test_a_run_of_an_earlier_version_finds_its_place(tiny_data, trained, tmp_path, monkeypatch):
    flags = ["--save_checkpoints_steps=4", "--eval_frequency=6"]
    monkeypatch.setattr(checkpoint, "_POSITION", "data")
    assert tiny_training.train(tiny_data, tmp_path, *flags, "--train_steps=8") == 0
    monkeypatch.undo()
    assert tiny_training.train(tiny_data, tmp_path, *flags, "--train_steps=12") == 0
    _same_weights(tmp_path, trained)


def test_an_evaluation_that_was_killed_is_done_again(tiny_data, tmp_path, monkeypatch, capsys):
    flags = ("--train_steps=4", "--save_checkpoints_steps=2", "--eval_frequency=4")

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(evaluator.Evaluator, "evaluate", die)
        assert tiny_training.train(tiny_data, tmp_path, *flags) == 130
    assert tiny_training.train(tiny_data, tmp_path, *flags) == 0
    assert "(best so far)" in capsys.readouterr().err
    assert checkpoint.resolve(tmp_path / "best").endswith("ckpt-4")


def test_a_signal_saves_the_step_under_way_and_the_same_command_goes_on(
    tiny_data, tmp_path, monkeypatch, capsys
):
    update, done = trainers.Training.update, 0

    def update_and_signal(self, step, report, **more):
        update(self, step, report, **more)
        if step == done + 2:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(trainers.Training, "update", update_and_signal)
    flags = ["--train_steps=99", "--save_checkpoints_steps=99"]  # none but the signal's is due
    signals = (signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)
    for number, status in signals:
        assert tiny_training.train(tiny_data, tmp_path, *flags) == status
        printed = capsys.readouterr()
        assert f"stopped by {number.name}" in printed.out
        assert f"from step {done} to 99" in printed.err or not done
        done += 2
        assert _steps(tmp_path)[-1] == done


def test_who_reads_the_progress_may_leave(tiny_data, tmp_path):
    flags = ["--train_steps=100000", "--eval_frequency=100000", "--save_checkpoints_steps=100000"]
    process = _start(tiny_training.arguments(tiny_data, tmp_path, *flags))
    assert process.stdout
    while ": compiled for batches" not in (line := process.stdout.readline()):
        assert line  # "" is the end
    process.stdout.close()  # as `tee` does at Ctrl-C
    assert process.wait(timeout=60) == 141
    assert len(_steps(tmp_path)) == 1


def test_an_interruption_changes_neither_the_last_checkpoints_nor_the_best(
    tiny_data, tmp_path, monkeypatch
):
    flags = ("--train_steps=5", "--save_checkpoints_steps=2", "--eval_frequency=3")
    flags += ("--keep_checkpoint_max=3",)

    def stop(_, step, *__):
        return "SIGTERM" if step == 3 else None

    with monkeypatch.context() as patch:
        patch.setattr(trainers.Training, "_stopped_by", stop)
        assert tiny_training.train(tiny_data, tmp_path, *flags) == 143
    assert _steps(tmp_path) == [2, 3]
    assert checkpoint.resolve(tmp_path / "best").endswith("ckpt-3")
    assert tiny_training.train(tiny_data, tmp_path, *flags) == 0
    assert _steps(tmp_path) == [2, 4, 5]
    # The end of a training stays when it is made longer.
    longer = (*flags, "--keep_checkpoint_max=9", "--train_steps=6")
    assert tiny_training.train(tiny_data, tmp_path, *longer) == 0
    assert _steps(tmp_path) == [2, 4, 5, 6]


@pytest.fixture
def no_training(monkeypatch):
    """Let the trainer stop where all is prepared and written: at its first step."""

    def fail(*_, **__):
        raise errors.UserError("as if the power had failed")

    with monkeypatch.context() as patch:
        patch.setattr(trainers.Training, "update", fail)
        yield patch


def test_an_output_dir_is_self_contained(trained):
    names = {path.name for path in trained.iterdir()}
    assert {"hparams.json", "run.json", "best", "eval"} <= names
    run = json.loads((trained / "run.json").read_text())
    assert run["problem"] == "parallel_text"
    assert (trained / run["vocabulary"]).exists()
    assert _steps(trained) == [4, 8, 12]
    assert any(name.startswith("events.out.tfevents") for name in names)
    assert not [name for name in names if "temp" in name or "tmp" in name]


def test_a_start_that_failed_locks_nothing(tiny_data, tmp_path, no_training):
    """It fails when all is written but a checkpoint; then other settings are taken."""
    settings = ["--hparams=d_ff=40", "--hparams=d_ff=48,dropout=0.2", "--train_steps=2"]
    assert tiny_training.train(tiny_data, tmp_path, *settings) == 1
    hparams = json.loads((tmp_path / "hparams.json").read_text())
    assert [hparams[name] for name in ("d_model", "d_ff", "dropout")] == [16, 48, 0.2]
    no_training.undo()
    settings = ["--train_steps=2", "--hparams=d_ff=40", "--random_seed=5"]
    assert tiny_training.train(tiny_data, tmp_path, *settings) == 0
    assert json.loads((tmp_path / "hparams.json").read_text())["d_ff"] == 40
    assert json.loads((tmp_path / "run.json").read_text())["random_seed"] == 5


def test_the_best_stays_where_later_scores_are_of_another_kind(tiny_data, tmp_path, capsys):
    assert tiny_training.train(tiny_data, tmp_path, "--train_steps=2", "--eval_sentences=4") == 0
    before = (tmp_path / "best" / "best.json").read_bytes()
    assert tiny_training.train(tiny_data, tmp_path, "--train_steps=4") == 0
    report = capsys.readouterr().err
    assert "best was chosen by another measure (score BLEU -> loss, sentences 4 -> none" in report
    assert (tmp_path / "best" / "best.json").read_bytes() == before
    patience = ["--train_steps=6", "--early_stopping_patience=1"]
    assert tiny_training.train(tiny_data, tmp_path, *patience) == 1
    assert "--early_stopping_patience compares dev scores" in capsys.readouterr().err


def test_an_empty_dev_split_has_no_best(tiny_data, tmp_path, capsys):
    data = shutil.copytree(tiny_data, tmp_path / "data")
    made = data_dir.read(data, registry.problem("parallel_text"))
    made.splits["dev"].update(pairs=0, lengths=[], shards=[], text=[])
    made.save()
    run = tmp_path / "run"
    assert tiny_training.train(data, run, "--train_steps=2") == 0
    report = capsys.readouterr()
    assert "the dev split is empty: nothing is evaluated" in report.err
    assert "best" not in report.out
    assert not (run / "best").exists()
    patience = ["--train_steps=3", "--early_stopping_patience=1"]
    assert tiny_training.train(data, run, *patience) == 1


def test_data_made_anew_while_it_trains_stop_it_before_they_are_saved(
    tiny_data, tmp_path, capsys, monkeypatch
):
    data, run = shutil.copytree(tiny_data, tmp_path / "data"), tmp_path / "run"
    update = trainers.Training.update

    def update_and_overwrite(self, step, results, **more):
        update(self, step, results, **more)
        made = data_dir.read(data, registry.problem("parallel_text"))
        if step == 2:  # the same bytes, written again
            made.save()
        if step == 4:
            made.splits["train"]["shards"][0]["sha256"] = "other"
            made.save()

    monkeypatch.setattr(trainers.Training, "update", update_and_overwrite)
    flags = ["--train_steps=9", "--save_checkpoints_steps=1"]
    assert tiny_training.train(data, run, *flags) == 1
    assert "were made anew while the training was at work, step 4 is" in capsys.readouterr().err
    assert _steps(run) == [1, 2, 3]


def test_a_shard_that_goes_while_it_trains_is_named(tiny_data, tmp_path, capsys, monkeypatch):
    data = shutil.copytree(tiny_data, tmp_path / "data")
    resume = trainers.Training._resume

    def resume_and_remove(self, stack):
        for path in data.glob("*-train-*"):
            path.unlink()
        return resume(self, stack)

    monkeypatch.setattr(trainers.Training, "_resume", resume_and_remove)
    assert tiny_training.train(data, tmp_path / "run", "--train_steps=9") == 1
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "lacks" in x]
    assert "parallel_text-train-00000-of-00001" in line


def test_a_second_trainer_in_the_output_dir_is_refused(tiny_data, trained, capsys):
    with output_dir.only_one(trained):
        assert tiny_training.train(tiny_data, trained, "--train_steps=13") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"another process is at work in {trained} (process " in line


def test_a_training_reads_the_manifest_and_chooses_buckets_once(tiny_data, tmp_path, monkeypatch):
    counted = [mock.Mock(wraps=function) for function in (manifest.read, buckets.choose)]
    monkeypatch.setattr(manifest, "read", counted[0])
    monkeypatch.setattr(buckets, "choose", counted[1])
    flags = ["--train_steps=3", "--eval_frequency=1", "--eval_sentences=2"]
    assert tiny_training.train(tiny_data, tmp_path / "run", *flags) == 0
    assert [function.call_count for function in counted] == [1, 1]


def test_a_deterministic_run_goes_on_from_one_that_is_not_and_ends_the_same(tiny_data, tmp_path):
    for name, steps in (("plain", 4), ("continued", 2)):
        assert tiny_training.train(tiny_data, tmp_path / name, f"--train_steps={steps}") == 0
    flags = ["--train_steps=4", "--deterministic"]  # for all of a process
    with _start(tiny_training.arguments(tiny_data, tmp_path / "continued", *flags)) as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    _same_weights(tmp_path / "continued", tmp_path / "plain")


def test_pairs_that_are_too_long_are_counted(tiny_data, tmp_path, capsys, no_training):
    flags = ["--train_steps=1", "--hparams=max_length=12"]
    assert tiny_training.train(tiny_data, tmp_path, *flags) == 1
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.endswith("left out")]
    paths = data_dir.read(tiny_data, registry.problem("parallel_text")).shards("train")
    longest = [max(map(len, pair.values())) for pair in shards.read_examples(paths)]
    assert line.startswith(f"{sum(length > 12 for length in longest)} training pairs")


@pytest.mark.parametrize("hardware", ["float32", "bfloat16"])
def test_bfloat16_that_the_hardware_lacks_is_said(
    tiny_data, tmp_path, capsys, no_training, hardware
):
    no_training.setattr(devices, "precision", {"auto": hardware, "bfloat16": "bfloat16"}.get)
    assert tiny_training.train(tiny_data, tmp_path, "--precision=bfloat16") == 1
    said = "this hardware has no bfloat16" in capsys.readouterr().err
    assert said == (hardware == "float32")


@pytest.mark.parametrize("steps", [3, 12, 22])
def test_a_profile_is_of_ten_steps_or_of_a_shorter_call(tiny_data, tmp_path, monkeypatch, steps):
    profiled, calls = [], []
    update = trainers.Training.update
    monkeypatch.setattr(
        trainers.Training, "update", lambda *args, **_: (profiled.append(args[1]), update(*args))
    )
    profiler = "tensorflow.profiler.experimental"
    monkeypatch.setattr(f"{profiler}.start", lambda _: (calls.append("start"), profiled.clear()))
    monkeypatch.setattr(f"{profiler}.stop", lambda: calls.append(list(profiled)))
    flags = ["--profile", f"--train_steps={steps}", "--eval_frequency=100"]
    assert tiny_training.train(tiny_data, tmp_path, *flags) == 0
    end = min(steps, 20)
    assert calls == ["start", list(range(max(end - 10, 0) + 1, end + 1))]


def test_early_stopping(tiny_data, tmp_path, capsys):
    # A rate of nearly nothing: the dev score never gets better than at the first evaluation.
    flags = ["--train_steps=50", "--eval_frequency=2", "--hparams=learning_rate_scale=1e-12"]
    # The same command changes nothing more; with more patience it goes on.
    for patience, last in ((2, 6), (2, 6), (3, 8)):
        flags.append(f"--early_stopping_patience={patience}")
        assert tiny_training.train(tiny_data, tmp_path, *flags) == 0
        assert "stopped by patience" in capsys.readouterr().out
        assert _steps(tmp_path)[-1] == last
    shutil.rmtree(tmp_path / "best")  # the best is to be chosen anew
    assert tiny_training.train(tiny_data, tmp_path, *flags) == 0
    assert _steps(tmp_path)[-1] > 8


def test_an_infinite_loss_stops_with_the_batch_and_keeps_the_weights(tiny_data, tmp_path, capsys):
    flags = ["--train_steps=30", "--save_checkpoints_steps=1", "--eval_frequency=100"]
    flags.append("--hparams=learning_rate_scale=1e30")
    assert tiny_training.train(tiny_data, tmp_path, *flags) == 1
    error = capsys.readouterr().err
    assert "gradient norm" in error
    assert "not-finite-" in error
    (batch,) = tmp_path.glob("not-finite-*.txt")
    assert "\t" in batch.read_text("utf-8")
    assert _steps(tmp_path) == list(range(1, int(batch.stem.removeprefix("not-finite-"))))
    assert all(np.isfinite(value).all() for value in _weights(tmp_path).values())


def test_results_that_are_looked_at_late_change_nothing(tiny_data, tmp_path, monkeypatch, capsys):
    """As on a GPU, which need not wait for the host: not where steps are left out, and not where
    these are one too many."""
    flags = ["--train_steps=25", "--save_checkpoints_steps=100", "--max_skipped_steps=24"]
    flags.append("--hparams=learning_rate_scale=1e30")
    reports = []
    for together in (1, 10):
        monkeypatch.setattr(devices, "steps_between_fetches", lambda: together)  # noqa: B023
        run = tmp_path / str(together)
        assert tiny_training.train(tiny_data, run, *flags) == 0
        captured = capsys.readouterr()
        skipped = re.findall(r"step (\d+): loss (.*), gradient norm (\S+);", captured.err)
        assert re.search(rf"\n{len(skipped)} steps with a NaN or infinite gradient", captured.out)
        batches = {path.name: path.read_bytes() for path in run.glob("not-finite-*.txt")}
        assert len(batches) == len(skipped) > 10
        reports.append((skipped, batches))
    assert reports[0] == reports[1]
    _same_weights(tmp_path / "1", tmp_path / "10")
    few = tmp_path / "few"
    assert tiny_training.train(tiny_data, few, *flags, "--max_skipped_steps=3") == 1
    expected = {f"not-finite-{step}.txt" for step, *_ in skipped[:4]}
    assert {path.name for path in few.glob("not-finite-*.txt")} == expected
    assert not _steps(few)


def test_workers_that_read_at_different_times_stop_with_the_same_step(monkeypatch):
    monkeypatch.setattr(devices, "steps_between_fetches", lambda: 10)
    batch = {side: tf.ones([1, 1], tf.int32) for side in ("inputs", "targets")}
    ends = []
    for reads_early in (False, True):
        report = types.SimpleNamespace(step=lambda *_, **__: None)
        made = results.Results(None, report)  # pyright: ignore[reportArgumentType]
        for number in range(1, 41):
            result = step.StepResult(tf.constant([1.0, 1.0, 1.0, number == 13]))
            made.add(results.Update(number, batch, 1e-3, result, 0.1))
            if reads_early and number % 7 == 0:  # as at an evaluation, which only the chief makes
                made.read()
            if made.stop_at(number):
                ends.append(number)
                break
    assert ends == [30, 30]


def test_with_xla_all_shapes_are_compiled_before_the_first_step(tiny_data, tmp_path, capsys):
    flags = ["--xla=on", "--train_steps=2", "--hparams=max_buckets=2", "--eval_frequency=100"]
    assert tiny_training.train(tiny_data, tmp_path, *flags) == 0
    lines = re.findall(
        r"compiled for batches of .* in .* s, (\d of 2 shapes)", capsys.readouterr().err
    )
    assert lines == ["1 of 2 shapes", "2 of 2 shapes"]


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
    train = shlex.join(tiny_training.command(tiny_training.arguments(tiny_data, output, *flags)))
    script = f"{mount} && {train}; echo status $?; ls {output}; "
    script += f"mount -o remount,size=64m none {output} && {train}; echo status $?; ls {output}"
    done = subprocess.run([*in_namespace, script], capture_output=True, text=True, check=False)
    before, after = done.stdout.split("status")[1:]
    names = before.split()
    assert names[0] == "1"
    assert "ckpt-2.index" in names
    assert not any("temp" in name for name in names)
    (line,) = [line for line in done.stderr.splitlines() if "cannot write" in line]
    assert f"cannot write the checkpoint of step 4 to {output}: No space left on device; " in line
    assert "earlier checkpoints are intact: free space and start the same command again" in line
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
    flags = ["--train_steps=2", "--hparams=d_ff=800000"]
    _, *arguments = tiny_training.arguments(tiny_data, tmp_path / "run", *flags)
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "out of memory" in line]
    assert re.search(r"at step 1 with a batch of \d+ x \d+ .*lower max_tokens_per_device", line)
