"""Batches are decoded on as many cores as there are."""

import pytest

from t2t_lite import machine
from t2t_lite.decode import devices


@pytest.mark.parametrize("cores", [1, 3])
def test_each_core_decodes_a_batch(monkeypatch, cores):
    monkeypatch.setattr(machine, "cores", lambda: cores)
    monkeypatch.setattr(devices.tf.config, "list_physical_devices", lambda kind: [])
    threads = devices.tf.config.threading  # left as they are for the other tests
    for kind in ("intra", "inter"):
        monkeypatch.setattr(threads, f"set_{kind}_op_parallelism_threads", lambda count: None)
    assert devices.for_batches() == [""] * cores
