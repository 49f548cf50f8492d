"""The part of TensorFlow Serving's protocol that is needed, without TensorFlow.

The messages have the field numbers of model.proto, predict.proto and prediction_log.proto in
tensorflow_serving/apis, and of tensor.proto and tensor_shape.proto in tensorflow/core/framework, so
they are the same on the wire. The official stubs import all of TensorFlow, which takes seconds.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from t2t_lite import errors, messages

PREDICT = "/tensorflow.serving.PredictionService/Predict"

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
_MAX_VALUES = 1 << 24  # of a tensor; what claims more is no answer to texts
_FORMATS = {_FLOAT: "<f", _INT32: "<i", _BOOL: "<?"}


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
        _fill(message.inputs.add(key=key).value, values)
    return message


def outputs(response: Any) -> dict[str, list]:
    """Return a PredictResponse's tensors by name, each a list, or a list of lists if [B, N]."""
    return {entry.key: _values(entry.value) for entry in response.outputs}


def as_bytes(text: str | bytes) -> bytes:
    """Return text as UTF-8; a lone surrogate becomes bytes that the server reads as U+FFFD."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def _fill(tensor: Any, values: Sequence) -> None:
    tensor.tensor_shape.dim.add(size=len(values))
    if values and isinstance(values[0], Sequence) and not isinstance(values[0], str | bytes):
        tensor.dtype = _INT32
        tensor.tensor_shape.dim.add(size=len(values[0]))
        tensor.int_val.extend(token for row in values for token in row)
    else:
        tensor.dtype = _STRING
        tensor.string_val.extend(map(as_bytes, values))


def _values(tensor: Any) -> list:
    if tensor.dtype not in _VALUES:
        raise errors.UserError(f"a tensor of type {tensor.dtype} is not known here")
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    if len(sizes) > 2 or not all(0 <= size <= _MAX_VALUES for size in (*sizes, math.prod(sizes))):
        raise errors.UserError(f"a tensor of shape {sizes[:4]} is not known here")
    if tensor.tensor_content:
        try:
            flat = [v for (v,) in struct.iter_unpack(_FORMATS[tensor.dtype], tensor.tensor_content)]
        except (KeyError, struct.error) as error:
            raise errors.UserError(f"a tensor's content does not fit its type: {error}") from error
    else:
        flat = list(getattr(tensor, _VALUES[tensor.dtype]))
    # A TensorProto may leave out repetitions of its last value.
    flat += flat[-1:] * (math.prod(sizes) - len(flat))
    if len(flat) != math.prod(sizes):
        raise errors.UserError(f"a tensor of shape {sizes} has {len(flat)} values")
    if len(sizes) < 2:
        return flat
    width = sizes[1]
    return [flat[row * width : (row + 1) * width] for row in range(sizes[0])]
