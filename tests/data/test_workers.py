"""Processes that share work: every task is done once, and one that dies is told of."""

import os

import pytest

from t2t_lite import errors
from t2t_lite.data import workers


def _touch(folder, name):
    (folder / name).touch()


def _die(*task):
    os._exit(1)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_every_task_is_done_and_few_wait(tmp_path, num_workers):
    taken = []

    def tasks():
        for number in range(9):
            taken.append(number)
            yield tmp_path, str(number)

    for finished in workers.run(_touch, tasks(), num_workers=num_workers):
        assert len(taken) <= finished + num_workers + 1
    assert finished == 9
    assert sorted(path.name for path in tmp_path.iterdir()) == [str(n) for n in range(9)]


def test_a_worker_that_dies_is_told():
    with pytest.raises(errors.UserError, match="a worker process died"):
        list(workers.run(_die, [()] * 3, num_workers=2))
