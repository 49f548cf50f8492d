"""Requests become batches as in TensorFlow Serving."""

import threading
from typing import Any

import numpy as np
import pytest

from t2t_lite.serving import batcher, export, protocol


def _ids(*rows):
    return {"ids": np.array(rows, np.int32)}


class _Doubled:
    """Notes the batches that run; answers twice their ids, and fails of a 13."""

    def __init__(self):
        self.batches = []

    def __call__(self, name, inputs):
        self.batches.append(inputs["ids"].tolist())
        if 13 in inputs["ids"]:
            raise ValueError("13")
        return {"doubled": inputs["ids"] * 2}


def _at_once(gathered, requests):
    """Return the answers, or errors, to requests that come at the same time."""
    answers: list[Any] = [None] * len(requests)

    def ask(place):
        try:
            answers[place] = gathered.predict("name", requests[place])["doubled"].tolist()
        except protocol.Refused as error:
            answers[place] = error

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gathered.close()
    return answers


def _batcher(run, **changes):
    settings = {"batch_timeout": 2.0, "pad_variable_length_inputs": True, **changes}
    return batcher.Batcher(run, batcher.Parameters(**settings))


def test_a_batch_is_padded_with_each_tensors_first_element():
    merged = batcher.merge([_ids([5, 6, 1], [7, 1, 0]), _ids([8, 1])], pad=True)
    assert merged["ids"].tolist() == [[5, 6, 1], [7, 1, 0], [8, 1, 8]]


def test_without_padding_widths_must_be_one():
    with pytest.raises(protocol.Refused, match="padding is turned off") as caught:
        batcher.merge([_ids([5, 6, 1]), _ids([8, 1])], pad=False)
    assert caught.value.status == "FAILED_PRECONDITION"
    same = [_ids([5, 1]), _ids([8, 1])]
    assert batcher.merge(same, pad=False)["ids"].tolist() == [[5, 1], [8, 1]]


def test_a_tensor_without_elements_cannot_be_padded():
    with pytest.raises(protocol.Refused, match="empty tensor in batch"):
        batcher.merge([_ids([5, 6, 1]), _ids([])], pad=True)
    none = {"ids": np.zeros([0, 2], np.int32)}
    assert batcher.merge([_ids([5, 6, 1]), none], pad=True)["ids"].tolist() == [[5, 6, 1]]


def test_requests_share_batches_and_get_their_own_rows():
    run = _Doubled()
    requests = [_ids([i, 1], [i, 2]) for i in range(20, 28)]
    answers = _at_once(_batcher(run, max_batch_size=6), requests)
    assert answers == [[[2 * i, 2], [2 * i, 4]] for i in range(20, 28)]
    assert max(map(len, run.batches)) == 6  # full ones do not wait
    assert len(run.batches) < 8


def test_a_failure_is_the_whole_batchs_and_no_others():
    run = _Doubled()
    answers = _at_once(_batcher(run, max_batch_size=2), [_ids([1]), _ids([13])])
    assert [error.status for error in answers] == ["INTERNAL"] * 2
    gathered = _batcher(run, batch_timeout=0.0)
    with pytest.raises(protocol.Refused):
        gathered.predict("name", _ids([13]))
    assert gathered.predict("name", _ids([4]))["doubled"].tolist() == [[8]]
    gathered.close()


def test_what_is_malformed_or_too_large_joins_no_batch():
    run = _Doubled()
    gathered = _batcher(run, max_batch_size=2)
    for inputs, says in (
        (_ids([1], [2], [3]), "Task size 3 is larger than maximum input batch size 2"),
        ({**_ids([1]), "b": np.zeros([2, 1])}, "equal 0th-dimension size"),
        ({"ids": np.array(5)}, "at least one dimension"),
    ):
        with pytest.raises(protocol.Refused, match=says) as caught:
            gathered.predict("name", inputs)
        assert caught.value.status == "INVALID_ARGUMENT"
    assert run.batches == []
    gathered.close()


def test_a_full_queue_is_unavailable():
    entered, leave = threading.Event(), threading.Event()

    def run(name, inputs):
        entered.set()
        assert leave.wait(10)
        return {"doubled": inputs["ids"] * 2}

    gathered = _batcher(run, max_batch_size=1, max_enqueued_batches=2)
    threads = [
        threading.Thread(target=gathered.predict, args=("name", _ids([i]))) for i in range(3)
    ]
    threads[0].start()
    assert entered.wait(10)
    for thread in threads[1:]:
        thread.start()
    while sum(map(len, gathered._queues.values())) < 2:
        pass
    with pytest.raises(protocol.Refused, match=r"queue .* is full") as caught:
        gathered.predict("name", _ids([9]))
    assert caught.value.status == "UNAVAILABLE"
    leave.set()
    for thread in threads:
        thread.join()
    gathered.close()


def test_a_closed_batcher_still_answers_who_came_late():
    gathered = _batcher(_Doubled())
    gathered.close()
    assert gathered.predict("name", _ids([4]))["doubled"].tolist() == [[8]]


def test_parameters_are_what_the_export_says(export_dir, tmp_path):
    read = batcher.Parameters.read(export_dir / "1")
    assert read == batcher.Parameters(
        max_batch_size=1024,
        batch_timeout=0.0,
        max_enqueued_batches=4,
        pad_variable_length_inputs=True,
    )
    assert export.BATCHING_FILE == batcher.FILE
    assert batcher.Parameters.read(tmp_path) == batcher.Parameters()
    (tmp_path / batcher.FILE).write_text("batch_timeout_micros { value: 2500 }")
    assert batcher.Parameters.read(tmp_path, max_batch_size=7) == batcher.Parameters(
        max_batch_size=7, batch_timeout=0.0025
    )
