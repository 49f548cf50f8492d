"""Requests to the loopback server, by REST and by gRPC: an answer to each, and it goes on."""

import http.client
import json

import grpc
import numpy as np
import pytest
import tensorflow as tf
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite.serving import loopback, served_model

predict_pb2 = pytest.importorskip(
    "tensorflow_serving.apis.predict_pb2", reason="needs tensorflow-serving-api"
)

_PREDICT = "/tensorflow.serving.PredictionService/Predict"
_PATHS = ["/v1/models/echo:predict"] * 6 + [
    "/v1/models/echo/versions/1:predict",
    "/v1/models/echo/versions/9:predict",
    "/v1/models/echo/versions/x:predict",
    "/v1/models/echo/versions/-1:predict",
    "/v1/models/other:predict",
    "/v1/models/echo:regress",
    "/v1/models/echo/labels/stable:predict",
    "/v1/models/",
    "/v1/models/echo/versions/" + "9" * 5_000 + ":predict",
    "/%00:predict",
    "//",
]
_BODIES = [
    {"instances": ["A dog.", {"b64": "QSBkb2c="}]},
    {"inputs": {"inputs": ["A dog."]}, "signature_name": "serving_default"},
    {"inputs": ["A dog."]},
    {"inputs": {"inputs": ["a"], "targets": ["b"]}, "signature_name": "score"},
    {"instances": [{"inputs": "a", "targets": "b"}], "signature_name": "score"},
    {"inputs": {"ids": [[5, 1], [6, 1]]}, "signature_name": "from_ids"},
]


class _Echo(tf.Module):
    """Signatures as an export has them, without a model."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")])
    def translate(self, inputs):
        cut = tf.zeros_like(inputs, tf.bool)
        return {"outputs": inputs, "scores": tf.zeros_like(inputs, tf.float32), "truncated": cut}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="inputs"),
            tf.TensorSpec([None], tf.string, name="targets"),
        ]
    )
    def score(self, inputs, targets):
        return {"lengths": tf.strings.length(inputs) + tf.strings.length(targets)}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")])
    def from_ids(self, ids):
        return {"ids": ids + 1}


@pytest.fixture(scope="module")
def server(folder):
    """Return a server of `_Echo`."""
    echo = _Echo()
    signatures = {"serving_default": echo.translate, "score": echo.score, "from_ids": echo.from_ids}
    tf.saved_model.save(echo, str(folder / "export" / "1"), signatures=signatures)  # pyright: ignore
    with loopback.Server(served_model.Model(folder / "export", warm_up=False), "echo") as running:
        yield running


def _post(server, path, body, headers=None):
    """Return status and content of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, timeout=50)
    try:
        connection.request("POST", path, body, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def _check_health(server):
    answer = _post(server, _PATHS[0], b'{"inputs": ["A dog."]}')
    assert answer[0] == 200
    assert answer[1]["outputs"]["outputs"] == ["A dog."]


@given(st.sampled_from(_PATHS), st.sampled_from(_BODIES).flatmap(inputs.damaged_json))
def test_every_json_request_is_answered(server, path, body):
    with inputs.answered():
        status, content = _post(server, path, body)
        inputs.counts["refused"] += status != 200
        assert 200 <= status < 500
        assert ("error" in content) == (status != 200)


def test_the_server_is_well_after_that(server):
    _check_health(server)


@pytest.mark.parametrize("length", ["x", "-1", "", "1e3", "٣", inputs.DIGITS])
def test_a_wrong_content_length_is_answered(server, length):
    with inputs.answered():
        headers = {"Content-Length": length.encode()}
        status, content = _post(server, _PATHS[0], None, headers)
    assert status in (400, 411)
    assert "error" in content
    _check_health(server)


def _request(signature, sizes=None, **tensors):
    request = predict_pb2.PredictRequest()  # pyright: ignore[reportAttributeAccessIssue]
    request.model_spec.name = "echo"
    request.model_spec.signature_name = signature
    for name, values in tensors.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(np.array(values)))
        if sizes:
            request.inputs[name].tensor_shape.ClearField("dim")
            for size in sizes:
                request.inputs[name].tensor_shape.dim.add(size=size)
    return request.SerializeToString()


_REQUESTS = [
    _request("", inputs=["a", "b"]),
    _request("score", inputs=["a", "b"], targets=["c", "d"]),
    _request("score", inputs=["a", "b"], targets=["c"]),
    _request("from_ids", ids=np.ones([2, 2], np.int32)),
    _request("from_ids", ids=np.ones([2, 2], np.int64)),
    _request("other", inputs=["a"]),
    _request("", inputs=[1.0]),
    _request("", inputs=[]),
    *(
        _request("", sizes, inputs=["a"])
        for sizes in ([1 << 40], [-1], [1 << 62, 1 << 62], [0], [1, 1], [3])
    ),
]


@given(inputs.damaged(_REQUESTS))
def test_every_grpc_request_is_answered(server, data):
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel, inputs.answered():
        answer = channel.unary_unary(_PREDICT).future(data, timeout=50)
        refused = answer.exception() is not None
        inputs.counts["refused"] += refused
        # UNKNOWN is what gRPC says of an exception in the server
        assert answer.code().name not in ("UNKNOWN", "DEADLINE_EXCEEDED"), answer.details()
    if inputs.counts["inputs"] % 50 == 0:
        _check_health(server)
