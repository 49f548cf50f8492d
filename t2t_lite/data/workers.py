"""A pool of processes that dies with its parent and never holds more than a few tasks."""

import concurrent.futures
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator

from t2t_lite import errors


def run(
    function: Callable[..., None], tasks: Iterable[tuple], *, num_workers: int
) -> Iterator[int]:
    """Apply `function` to every task; yield the number that are finished, as they finish.

    Only a few tasks wait at a time, so memory is bounded however many there are.
    """
    if num_workers <= 1:
        for finished, task in enumerate(tasks, start=1):
            function(*task)
            yield finished
        return
    # Spawned, since a fork of a process that runs TensorFlow's threads can hang.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(num_workers, context, initializer=_follow_parent)
    tasks = iter(tasks)
    finished = 0
    try:
        waiting = {
            pool.submit(function, *task) for task in itertools.islice(tasks, num_workers + 1)
        }
        while waiting:
            done, waiting = concurrent.futures.wait(
                waiting, return_when=concurrent.futures.FIRST_COMPLETED
            )
            for future in done:
                future.result()
                finished += 1
            waiting |= {pool.submit(function, *task) for task in itertools.islice(tasks, len(done))}
            yield finished
    except concurrent.futures.process.BrokenProcessPool as error:
        raise errors.UserError(
            "a worker process died (was it killed, out of memory?): the same command goes on "
            "from here, with fewer --num_workers it needs less memory; a script of your own has to "
            'call this under if __name__ == "__main__":'
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _follow_parent() -> None:
    """Leave Ctrl-C to the parent, and end as soon as it ends, however it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
