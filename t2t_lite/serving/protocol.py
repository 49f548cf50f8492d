"""The part of TensorFlow Serving's protocol that is needed, without TensorFlow.

The messages have the field numbers of model.proto, predict.proto and prediction_log.proto in
tensorflow_serving/apis, and of tensor.proto and tensor_shape.proto in tensorflow/core/framework, so
they are the same on the wire. The official stubs import all of TensorFlow, which takes seconds.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from t2t_lite import errors, messages

SERVICE = "tensorflow.serving.PredictionService"
PREDICT = f"/{SERVICE}/Predict"
# An export's score in n-best places that no hypothesis fills: JSON knows no infinity.
NO_SCORE = -1e9

_CLASSES = messages.classes(
    {
        "Dim": ["int64 size = 1"],
        "TensorShape": ["repeated Dim dim = 2"],
        "Tensor": [
            "int32 dtype = 1",
            "TensorShape tensor_shape = 2",
            "bytes tensor_content = 4",
            "repeated float float_val = 5",
            "repeated int32 int_val = 7",
            "repeated bytes string_val = 8",
            "repeated bool bool_val = 11",
        ],
        "Entry": ["string key = 1", "Tensor value = 2"],
        "Int64Value": ["int64 value = 1"],
        "ModelSpec": [
            "string name = 1",
            "Int64Value version = 2",
            "string signature_name = 3",
            "string version_label = 4",
        ],
        "PredictRequest": ["ModelSpec model_spec = 1", "repeated Entry inputs = 2"],
        "PredictResponse": ["repeated Entry outputs = 1", "ModelSpec model_spec = 2"],
        "PredictLog": ["PredictRequest request = 1"],
        "PredictionLog": ["PredictLog predict_log = 6"],
    }
)
PredictRequest = _CLASSES["PredictRequest"]
PredictResponse = _CLASSES["PredictResponse"]
PredictionLog = _CLASSES["PredictionLog"]

_FLOAT, _INT32, _STRING, _BOOL = 1, 3, 7, 10  # of tensorflow.DataType
_VALUES = {_FLOAT: "float_val", _INT32: "int_val", _STRING: "string_val", _BOOL: "bool_val"}
_FORMATS = {_FLOAT: "<f", _INT32: "<i", _BOOL: "<?"}
_ZEROS = {_FLOAT: 0.0, _INT32: 0, _STRING: b"", _BOOL: False}
_TYPES = {_FLOAT: "float32", _INT32: "int32", _STRING: "string", _BOOL: "bool"}
_NUMBERS = {name: number for number, name in _TYPES.items()}
# A shape may claim more elements than its message has: nobody means so many.
_LARGEST = 1 << 24


class Refused(errors.UserError):
    """A request that gets an error: its gRPC status and what it says."""

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status


class Tensor(NamedTuple):
    """A tensor's elements in a row; `dtype` is float32, int32, string or bool."""

    dtype: str
    shape: tuple[int, ...]
    elements: list


def request(
    name: str,
    inputs: Mapping[str, Sequence],
    *,
    signature_name: str = "serving_default",
    version: int | None = None,
    version_label: str | None = None,
) -> Any:
    """Return a PredictRequest; an input is texts [B] or rows of ids [B, S]."""
    message = PredictRequest()
    message.model_spec.name = name
    message.model_spec.signature_name = signature_name
    if version is not None:
        message.model_spec.version.value = version
    if version_label is not None:
        message.model_spec.version_label = version_label
    for key, values in inputs.items():
        _fill(message.inputs.add(key=key).value, _tensor(values))
    return message


def response(request: Any, version: int, tensors: Mapping[str, Tensor]) -> Any:
    """Return the PredictResponse to a request that a version of the model has answered."""
    message = PredictResponse()
    message.model_spec.name = request.model_spec.name
    message.model_spec.signature_name = request.model_spec.signature_name or "serving_default"
    message.model_spec.version.value = version
    for key, tensor in tensors.items():
        _fill(message.outputs.add(key=key).value, tensor)
    return message


def inputs(request: Any) -> dict[str, Tensor]:
    """Return a PredictRequest's tensors by name; raise Refused where one cannot be read."""
    return {entry.key: _read(entry.value, entry.key) for entry in request.inputs}


def outputs(response: Any) -> dict[str, list]:
    """Return a PredictResponse's tensors by name, each a list, or a list of lists if [B, N]."""
    return {entry.key: _nested(_read(entry.value, entry.key)) for entry in response.outputs}


def as_bytes(text: str | bytes) -> bytes:
    """Return text as UTF-8; a lone surrogate becomes bytes that the server reads as U+FFFD."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def _tensor(values: Sequence) -> Tensor:
    """Return texts [B] or rows of ids [B, S] as a Tensor."""
    if values and isinstance(values[0], Sequence) and not isinstance(values[0], str | bytes):
        shape = (len(values), len(values[0]))
        return Tensor("int32", shape, [token for row in values for token in row])
    return Tensor("string", (len(values),), list(map(as_bytes, values)))


def _fill(message: Any, tensor: Tensor) -> None:
    message.dtype = _NUMBERS[tensor.dtype]
    for size in tensor.shape:
        message.tensor_shape.dim.add(size=size)
    getattr(message, _VALUES[message.dtype]).extend(tensor.elements)


def _read(message: Any, name: str) -> Tensor:
    """Return a message's tensor, whose repetitions of the last element may be left out."""
    shape = tuple(dim.size for dim in message.tensor_shape.dim)
    count = math.prod(shape)
    refused = Refused("INVALID_ARGUMENT", f"tensor parsing error: {name}")
    if message.dtype not in _VALUES or not all(0 <= n <= _LARGEST for n in (*shape, count)):
        raise refused
    if message.tensor_content and message.dtype in _FORMATS:
        try:
            pieces = list(struct.iter_unpack(_FORMATS[message.dtype], message.tensor_content))
        except struct.error as error:
            raise refused from error
        elements = [element for (element,) in pieces]
    else:
        elements = list(getattr(message, _VALUES[message.dtype]))
    last = elements[-1] if elements else _ZEROS[message.dtype]
    elements = elements[:count] + [last] * (count - len(elements))
    return Tensor(_TYPES[message.dtype], shape, elements)


def _nested(tensor: Tensor) -> list:
    if len(tensor.shape) < 2:
        return tensor.elements
    rows, width = tensor.shape[:2]
    return [tensor.elements[row * width : (row + 1) * width] for row in range(rows)]
