"""Our messages against the official ones."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.serving import protocol

predict_pb2 = pytest.importorskip("tensorflow_serving.apis.predict_pb2")


def test_requests_are_the_official_ones_on_the_wire():
    ours = protocol.request(
        "ende", {"inputs": ["ä dog", b"\xff\x00", "\ud800"]}, signature_name="nbest", version=7
    )
    official = predict_pb2.PredictRequest.FromString(ours.SerializeToString())
    assert official.model_spec.name == "ende"
    assert official.model_spec.signature_name == "nbest"
    assert official.model_spec.version.value == 7
    texts = tf.make_ndarray(official.inputs["inputs"]).tolist()
    assert texts == ["ä dog".encode(), b"\xff\x00", "\ufffd".encode()]


def test_labels():
    ours = protocol.request("m", {"inputs": ["a"]}, version_label="stable")
    official = predict_pb2.PredictRequest.FromString(ours.SerializeToString())
    assert official.model_spec.version_label == "stable"
    assert not official.model_spec.HasField("version")


def _outputs(official):
    return protocol.outputs(protocol.PredictResponse.FromString(official.SerializeToString()))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_official_responses_are_read(size):
    arrays = {
        "outputs": np.array([f"t{i}".encode() for i in range(size)], object),
        "scores": np.arange(size, dtype=np.float32) / 4,
        "truncated": np.arange(size) % 2 == 1,
        "ids": np.arange(size * 2, dtype=np.int32).reshape(size, 2),
        "same": np.full([size, 2], 7.0, np.float32),
    }
    official = predict_pb2.PredictResponse()
    for name, array in arrays.items():
        official.outputs[name].CopyFrom(tf.make_tensor_proto(array, shape=array.shape))
    assert _outputs(official) == {name: array.tolist() for name, array in arrays.items()}


def test_values_written_one_by_one_are_read():
    # As C++ servers write them: typed fields, repetitions of the last value left out.
    official = predict_pb2.PredictResponse()
    tensor = official.outputs["scores"]
    tensor.dtype = tf.float32.as_datatype_enum
    tensor.tensor_shape.dim.add(size=3)
    tensor.float_val.extend([0.5, -1.0])
    assert _outputs(official) == {"scores": [0.5, -1.0, -1.0]}


@pytest.mark.parametrize("sizes", [[-1], [1 << 40], [1 << 20, 1 << 20]])
def test_a_shape_that_cannot_be_is_refused(sizes):
    response = protocol.PredictResponse()
    tensor = response.outputs.add(key="outputs").value
    tensor.dtype = tf.string.as_datatype_enum
    for size in sizes:
        tensor.tensor_shape.dim.add(size=size)
    with pytest.raises(errors.UserError, match="tensor 'outputs'"):
        protocol.outputs(response)
