"""Locks: one process has one, and what a dead one leaves holds nobody back."""

import errno
import fcntl
import os
import threading

import pytest

from t2t_lite import errors, locks


def test_a_lock_file_that_was_just_removed_is_no_lock(tmp_path, monkeypatch):
    path = tmp_path / "data" / "lock"
    opened = []
    locked = locks._locked

    def removed_meanwhile(path, *rest):
        opened.append(locked(path, *rest))
        if len(opened) == 1:
            path.unlink()
        return opened[-1]

    monkeypatch.setattr(locks, "_locked", removed_meanwhile)
    with locks.only_one(path, keep_folder=False):
        assert os.path.samestat(os.fstat(opened[1].fileno()), path.stat())
        with (
            pytest.raises(errors.UserError, match="another process"),
            locks.only_one(path, keep_folder=False),
        ):
            pass
    assert not path.parent.exists()


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
