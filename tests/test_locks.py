"""Locks: one process has one, and what a dead one leaves holds nobody back."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading

import pytest

from t2t_lite import errors, locks


def test_the_second_is_told_who_is_at_work(tmp_path):
    path = tmp_path / "data" / "lock"
    with locks.only_one(path, keep_folder=False):
        for _ in range(2):
            with (
                pytest.raises(errors.UserError, match=rf"data \(process {os.getpid()} on .*; wait"),
                locks.only_one(path, keep_folder=False),
            ):
                pass
    assert not path.parent.exists()


def test_a_killed_holder_holds_nobody_back(tmp_path):
    path = tmp_path / "lock"
    code = (
        "import pathlib, sys, time; from t2t_lite import locks\n"
        "with locks.only_one(pathlib.Path(sys.argv[1])): print(flush=True), time.sleep(60)"
    )
    command = [sys.executable, "-c", code, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(errors.UserError, match=f"process {holder.pid}"), locks.only_one(path):
            pass
        holder.send_signal(signal.SIGKILL)
    assert path.exists()
    with locks.only_one(path):
        assert f"process {os.getpid()} " in path.read_text()
    assert not path.exists()


def test_who_is_about_to_leave_is_waited_for(tmp_path):
    left = threading.Event()

    def hold():
        with locks.only_one(tmp_path / "lock"):
            left.wait(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    while not (tmp_path / "lock").exists():
        pass
    with locks.only_one(tmp_path / "lock"):
        pass
    thread.join()


def test_where_there_are_no_locks_nobody_is_kept_out(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locks.only_one(tmp_path / "lock"), locks.only_one(tmp_path / "lock"):
        assert str(os.getpid()) in (tmp_path / "lock").read_text()


def test_who_waits_goes_on_when_the_other_is_done(tmp_path):
    path, order = tmp_path / "lock", []

    def wait():
        with locks.only_one(path, wait=True):
            order.append("second")

    with locks.only_one(path):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
