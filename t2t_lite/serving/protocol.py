"""The messages of TensorFlow Serving that the client and warm-up requests need.

They have the field numbers of model.proto, predict.proto and prediction_log.proto in
tensorflow_serving/apis, and of tensor.proto and tensor_shape.proto in tensorflow/core/framework, so
they are the same on the wire. The official modules import TensorFlow, which takes seconds.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from t2t_lite import errors, messages
from t2t_lite.text import vocabulary

SERVICE = "tensorflow.serving.PredictionService"
PREDICT = f"/{SERVICE}/Predict"

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

_STRING = 7  # of tensorflow.DataType
# For each tensorflow.DataType that an export answers with: the field of its values, the format of
# one in tensor_content, and the value of one that is left out.
_TYPES: dict[int, tuple[str, str, Any]] = {
    1: ("float_val", "<f", 0.0),
    3: ("int_val", "<i", 0),
    _STRING: ("string_val", "", b""),
    10: ("bool_val", "<?", False),
}
# A shape may claim more elements than its message has. No answer has more than these.
_LARGEST = 1 << 24


def request(
    name: str,
    inputs: Mapping[str, Sequence[str | bytes]],
    *,
    signature_name: str = "serving_default",
    version: int | None = None,
    version_label: str | None = None,
) -> Any:
    """Return a PredictRequest; an input is texts [B]."""
    message = PredictRequest()
    message.model_spec.name = name
    message.model_spec.signature_name = signature_name
    if version is not None:
        message.model_spec.version.value = version
    if version_label is not None:
        message.model_spec.version_label = version_label
    for key, values in inputs.items():
        tensor = message.inputs.add(key=key).value
        tensor.dtype = _STRING
        tensor.tensor_shape.dim.add(size=len(values))
        tensor.string_val.extend(map(as_bytes, values))
    return message


def outputs(response: Any) -> dict[str, list]:
    """Return a PredictResponse's tensors by name, each a list, or a list of lists if [B, N].

    Raises UserError for a tensor that cannot be read.
    """
    return {entry.key: _read(entry.value, entry.key) for entry in response.outputs}


def as_bytes(text: str | bytes) -> bytes:
    """Return text as UTF-8, with U+FFFD for a lone surrogate, as a decoder reads it."""
    if not isinstance(text, str | bytes):
        raise TypeError(f"expected a text, got {text!r}")
    return vocabulary.without_surrogates(text).encode() if isinstance(text, str) else text


def _read(tensor: Any, name: str) -> list:
    """Return a Tensor's values; repetitions of the last one may be left out of the message."""
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    count = math.prod(shape)
    unreadable = errors.UserError(f"the server's answer has a tensor {name!r} of a broken form")
    if tensor.dtype not in _TYPES or not all(0 <= size <= _LARGEST for size in (*shape, count)):
        raise unreadable
    field, packed, absent = _TYPES[tensor.dtype]
    if tensor.tensor_content and packed:
        try:
            values = [value for (value,) in struct.iter_unpack(packed, tensor.tensor_content)]
        except struct.error as error:
            raise unreadable from error
    else:
        values = list(getattr(tensor, field))
    last = values[-1] if values else absent
    values = values[:count] + [last] * (count - len(values))
    if len(shape) < 2:
        return values
    rows, width = shape[:2]
    return [values[row * width : (row + 1) * width] for row in range(rows)]
