"""What a server answers, as the client reads it."""

import struct
from unittest import mock

from fuzz import inputs
from google.protobuf import message
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite import errors
from t2t_lite.serving import client, protocol


def _response(*tensors):
    response = protocol.PredictResponse()
    for key, dtype, sizes, values in tensors:
        tensor = response.outputs.add(key=key).value
        tensor.dtype = dtype
        for size in sizes:
            tensor.tensor_shape.dim.add(size=size)
        tensor.tensor_content = values.pop("tensor_content", b"")
        for name, content in values.items():
            getattr(tensor, name).extend(content)
    return response.SerializeToString()


_SCORES = struct.pack("<2f", -1.0, -2.0)
_RESPONSES = [
    _response(
        ("outputs", 7, [2], {"string_val": [b"Ein Hund", b"\xff"]}),
        ("scores", 1, [2], {"tensor_content": _SCORES}),
        ("truncated", 10, [2], {"bool_val": [False]}),
    ),
    _response(("outputs", 7, [1, 2], {"string_val": [b"a"]}), ("scores", 1, [1, 2], {})),
    _response(("outputs", 7, [1], {"tensor_content": b"abc"})),
    _response(("outputs", 1, [1], {"tensor_content": b"abc"})),
    _response(("ids", 3, [2, 2], {"int_val": [1, 2, 3]})),
    *(
        _response(("outputs", 7, sizes, {"string_val": [b"a"]}), ("scores", 1, sizes, {}))
        for sizes in ([-1], [1 << 40], [1 << 40, 0], [3, -1], [1 << 62, 1 << 62], [2, 2, 2], [])
    ),
]


@given(inputs.damaged(_RESPONSES))
def test_a_response_is_read_or_refused(data):
    response = protocol.PredictResponse()
    with inputs.answered():
        try:
            response.MergeFromString(data)
        except message.DecodeError as error:  # then gRPC itself refuses it
            raise errors.UserError(str(error)) from error
        protocol.outputs(response)


_ANSWERS = [
    {
        "outputs": {
            "outputs": ["Ein Hund"],
            "scores": [-1.0],
            "finished": [True],
            "truncated": [False],
        }
    },
    {
        "outputs": {
            "outputs": [["a", "b"]],
            "scores": [[-1.0, -2.0]],
            "finished": [[True, False]],
            "truncated": [False],
        }
    },
    {"error": "Servable not found for request: Latest(ende)"},
]


@given(
    st.sampled_from([200, 200, 200, 400, 404, 500]),
    st.sampled_from(_ANSWERS).flatmap(inputs.damaged_json),
)
def test_a_rest_answer_is_read_or_refused(status, body):
    answer = status, body.decode("utf-8", "replace")
    translator = client.Client("127.0.0.1:1", "ende", rest=True, retries=0)
    post = mock.patch.object(client.Rest, "_post", return_value=answer)
    with post, translator, inputs.answered():
        (one,) = translator.translate(["A dog runs."])
        assert isinstance(one.text, str)
        assert all(isinstance(h.score, float | int) for h in one.hypotheses)
