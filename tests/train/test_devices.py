"""What to train on: who is the chief, what TF_CONFIG may be, which GPUs take bfloat16."""

import json
import types

import pytest
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.train import cluster, devices

WORKERS = {"worker": ["a:1", "b:1"]}
WITH_CHIEF = {"chief": ["c:1"], "worker": ["a:1", "b:1"]}


@pytest.mark.parametrize(
    ("cluster", "kind", "index", "expected"),
    [
        (WORKERS, "worker", 0, True),
        (WORKERS, "worker", 1, False),
        (WITH_CHIEF, "chief", 0, True),
        (WITH_CHIEF, "worker", 0, False),
        (WITH_CHIEF, "worker", 1, False),
    ],
)
def test_one_process_is_the_chief_by_tensorflows_rule(cluster, kind, index, expected):
    spec = tf.train.ClusterSpec(cluster)
    resolver = types.SimpleNamespace(task_type=kind, task_id=index, cluster_spec=lambda: spec)
    strategy = types.SimpleNamespace(cluster_resolver=resolver)
    assert devices.is_chief(strategy) == expected  # pyright: ignore[reportArgumentType]
    count = devices.num_workers(strategy)  # pyright: ignore[reportArgumentType]
    assert count == (3 if cluster is WITH_CHIEF else 2)


@pytest.mark.parametrize("text", ["", "{}", '{"cluster": {}}', '{"cluster": {}, "task": {}}'])
def test_no_cluster_is_one_process_and_it_is_the_chief(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    alone = devices.strategy("auto")
    assert devices.is_chief(alone)
    assert devices.num_workers(alone) == 1
    with pytest.raises(errors.UserError, match="multi_worker needs TF_CONFIG"):
        devices.strategy("multi_worker")


def test_what_kubeflows_training_operator_writes_is_a_cluster(monkeypatch):
    monkeypatch.setenv(
        "TF_CONFIG",
        '{"cluster":{"worker":["t2t-lite-worker-0.default.svc:2222","t2t-lite-worker-1.default.svc'
        ':2222"]},"task":{"type":"worker","index":1},"environment":"cloud"}',
    )
    found = cluster.read()
    assert found is not None
    assert found.others == {"worker 0": "t2t-lite-worker-0.default.svc:2222"}


def _tf_config(cluster, kind, index):
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize(
    "given",
    [
        *("x", "[1]", json.dumps({"cluster": WORKERS})),
        _tf_config(WORKERS, "worker", 2),
        _tf_config(WORKERS, "worker", "0"),
        _tf_config(WORKERS, "evaluator", 0),
        _tf_config({**WITH_CHIEF, "ps": ["d:1"]}, "chief", 0),
        _tf_config({"worker": ["a"]}, "worker", 0),
        _tf_config(["a:1"], "worker", 0),
    ],
)
def test_a_wrong_tf_config_is_one_line(monkeypatch, given):
    monkeypatch.setenv("TF_CONFIG", given)
    with pytest.raises(errors.UserError, match=r"^TF_CONFIG is \{.*; got "):
        devices.strategy("auto")


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [([(9, 0), (8, 0)], "bfloat16"), ([(9, 0), (7, 5)], "float32"), ([None], "float32")],
)
def test_bfloat16_is_for_gpus_that_multiply_it(monkeypatch, capabilities, expected):
    details = [{} if one is None else {"compute_capability": one} for one in capabilities]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: details)
    monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda one: one)
    assert devices.precision("auto") == expected
    remarks = [*devices.remarks()]
    assert bool(remarks) == (capabilities[0] == (9, 0))  # the wheel has kernels up to 8.9
    assert devices.precision("bfloat16") == "bfloat16"
