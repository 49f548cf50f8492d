"""Requests gathered into batches, by TensorFlow Serving's rules.

A request is a number of rows. Those that wait make the next batch, at most max_batch_size rows;
where their tensors have different widths, each is padded with its own first element. What a batch
fails of, all its requests fail of.
"""

import collections
import dataclasses
import pathlib
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, Self

import numpy as np

from t2t_lite.serving import protocol

FILE = "batching_params.pbtxt"
Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameters:
    """How to gather; the defaults are TensorFlow Serving's."""

    max_batch_size: int = 1000
    batch_timeout: float = 0.0  # seconds that a request waits for company while a thread is free
    max_enqueued_batches: int = 10
    pad_variable_length_inputs: bool = False

    @classmethod
    def read(cls, folder: pathlib.Path, **changes: Any) -> Self:
        """Return what a version's batching_params.pbtxt says, with `changes`."""
        path = folder / FILE
        text = path.read_text("utf-8") if path.exists() else ""
        numbers = {name: int(n) for name, n in re.findall(r"(\w+)\s*\{\s*value:\s*(\d+)", text)}
        named = {field.name for field in dataclasses.fields(cls)}
        given: dict[str, Any] = {name: n for name, n in numbers.items() if name in named}
        if "batch_timeout_micros" in numbers:
            given["batch_timeout"] = numbers["batch_timeout_micros"] / 1e6
        if re.search(r"pad_variable_length_inputs:\s*true", text):
            given["pad_variable_length_inputs"] = True
        return cls(**{**given, **changes})


class _Task:
    """One request in a queue."""

    def __init__(self, inputs: Arrays):
        self.inputs = inputs
        self.size = _num_rows(inputs)
        self.since = time.monotonic()
        self.result: futures.Future[Arrays] = futures.Future()


class Batcher:
    """Runs requests in batches, on threads that all signatures share.

    Args:
      run: (signature name, inputs) -> outputs.
      parameters: how to gather.
      num_threads: batches that run at the same time.
    """

    def __init__(
        self, run: Callable[[str, Arrays], Arrays], parameters: Parameters, *, num_threads: int = 1
    ):
        self._run = run
        self._parameters = parameters
        self._queues: dict[str, collections.deque[_Task]] = collections.defaultdict(
            collections.deque
        )
        self._changed = threading.Condition()
        self._closed = False
        for _ in range(num_threads):
            threading.Thread(target=self._work, daemon=True).start()

    def predict(self, name: str, inputs: Arrays) -> Arrays:
        """Return the outputs of a signature's inputs; wait for a batch to run.

        Raises Refused for what TensorFlow Serving refuses, and for what the batch fails of.
        """
        task = _Task(inputs)
        limit = self._parameters.max_batch_size
        if task.size > limit:
            raise protocol.Refused(
                "INVALID_ARGUMENT",
                f"Task size {task.size} is larger than maximum input batch size {limit}",
            )
        with self._changed:
            closed = self._closed
            if not closed:
                queue = self._queues[name]
                waiting = sum(other.size for other in queue)
                if waiting + task.size > limit * self._parameters.max_enqueued_batches:
                    raise protocol.Refused(
                        "UNAVAILABLE",
                        "The batch scheduling queue to which this task was submitted is full",
                    )
                queue.append(task)
                self._changed.notify()
        if closed:  # a newer version took this one's place in between
            self._answer(name, [task])
        return task.result.result()

    def close(self) -> None:
        """Let the threads end when nothing waits any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while batch := self._next():
            self._answer(*batch)

    def _next(self) -> tuple[str, list[_Task]] | None:
        """Return the next batch, of the signature that has waited longest; None at the end."""
        with self._changed:
            while True:
                waiting = [name for name, queue in self._queues.items() if queue]
                if not waiting and self._closed:
                    return None
                left = None
                if waiting:
                    name = min(waiting, key=lambda name: self._queues[name][0].since)
                    queue = self._queues[name]
                    left = queue[0].since + self._parameters.batch_timeout - time.monotonic()
                    if left <= 0 or self._closed or self._is_full(queue):
                        self._changed.notify()  # what does not fit is another thread's
                        return name, self._take(queue)
                self._changed.wait(left)

    def _is_full(self, queue: collections.deque[_Task]) -> bool:
        return sum(task.size for task in queue) >= self._parameters.max_batch_size

    def _take(self, queue: collections.deque[_Task]) -> list[_Task]:
        batch, room = [], self._parameters.max_batch_size
        while queue and queue[0].size <= room:
            room -= queue[0].size
            batch.append(queue.popleft())
        return batch

    def _answer(self, name: str, batch: list[_Task]) -> None:
        try:
            inputs = merge(
                [task.inputs for task in batch], pad=self._parameters.pad_variable_length_inputs
            )
            outputs = self._run(name, inputs)
        except Exception as error:
            refused = error
            if not isinstance(error, protocol.Refused):
                refused = protocol.Refused("INTERNAL", str(error))
            for task in batch:
                task.result.set_exception(refused)
            return
        start = 0
        for task in batch:
            rows = slice(start, start + task.size)
            task.result.set_result({key: value[rows] for key, value in outputs.items()})
            start += task.size


def merge(requests: Sequence[Arrays], *, pad: bool) -> Arrays:
    """Return the rows of several requests as one.

    [[5, 6, 1]] and [[7, 1]] become [[5, 6, 1], [7, 1, 7]].

    Raises Refused where widths differ and pad is false, or what is to be padded has no element.
    """
    return {
        name: np.concatenate(_of_one_width([inputs[name] for inputs in requests], name, pad=pad))
        for name in requests[0]
    }


def _of_one_width(arrays: list[np.ndarray], name: str, *, pad: bool) -> list[np.ndarray]:
    shape = [max(sizes) for sizes in zip(*(array.shape[1:] for array in arrays))]
    if all(list(array.shape[1:]) == shape for array in arrays):
        return arrays
    if not pad:
        raise protocol.Refused(
            "FAILED_PRECONDITION",
            f"Tensors with name '{name}' from different tasks have different shapes and padding is "
            "turned off. Set pad_variable_length_inputs to true, or ensure that all tensors with "
            "the same name have equal dimensions starting with the first dim.",
        )
    padded = []
    for array in arrays:
        wide = np.empty([len(array), *shape], array.dtype)
        if wide.size and not array.size:
            raise protocol.Refused(
                "INVALID_ARGUMENT", "Got empty tensor in batch of non-empty tensors."
            )
        if wide.size:
            wide[...] = array.flat[0]
            wide[tuple(map(slice, array.shape))] = array
        padded.append(wide)
    return padded


def _num_rows(inputs: Arrays) -> int:
    """Return the rows of a request; raise Refused where its tensors have different numbers."""
    if any(array.ndim == 0 for array in inputs.values()):
        raise protocol.Refused(
            "INVALID_ARGUMENT", "Batching Run() input tensors must have at least one dimension"
        )
    sizes = {len(array) for array in inputs.values()}
    if len(sizes) > 1:
        raise protocol.Refused(
            "INVALID_ARGUMENT", "Batching Run() input tensors must have equal 0th-dimension size"
        )
    return sizes.pop()
