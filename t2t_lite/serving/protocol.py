"""The part of TensorFlow Serving's protocol that is needed, without TensorFlow.

The messages have the field numbers of model.proto, predict.proto and prediction_log.proto in
tensorflow_serving/apis, and of tensor.proto and tensor_shape.proto in tensorflow/core/framework, so
they are the same on the wire. The official stubs import all of TensorFlow, which takes seconds.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2

PREDICT = "/tensorflow.serving.PredictionService/Predict"

_Field = descriptor_pb2.FieldDescriptorProto
_FILE = "t2t_lite/serving.proto"
_INT64_VALUE = ".google.protobuf.Int64Value"
# message -> (field, number, type); a type is a wire type or another message's name. "*" repeats.
_MESSAGES: dict[str, list[tuple[str, int, Any]]] = {
    "Dim": [("size", 1, _Field.TYPE_INT64)],
    "TensorShape": [("*dim", 2, ".Dim")],
    "Tensor": [
        ("dtype", 1, _Field.TYPE_INT32),
        ("tensor_shape", 2, ".TensorShape"),
        ("tensor_content", 4, _Field.TYPE_BYTES),
        ("*float_val", 5, _Field.TYPE_FLOAT),
        ("*int_val", 7, _Field.TYPE_INT32),
        ("*string_val", 8, _Field.TYPE_BYTES),
        ("*bool_val", 11, _Field.TYPE_BOOL),
    ],
    # A map is on the wire a list of such entries.
    "Entry": [("key", 1, _Field.TYPE_STRING), ("value", 2, ".Tensor")],
    "ModelSpec": [
        ("name", 1, _Field.TYPE_STRING),
        ("version", 2, _INT64_VALUE),
        ("signature_name", 3, _Field.TYPE_STRING),
        ("version_label", 4, _Field.TYPE_STRING),
    ],
    "PredictRequest": [("model_spec", 1, ".ModelSpec"), ("*inputs", 2, ".Entry")],
    "PredictResponse": [("*outputs", 1, ".Entry"), ("model_spec", 2, ".ModelSpec")],
    "PredictLog": [("request", 1, ".PredictRequest")],
    "PredictionLog": [("predict_log", 6, ".PredictLog")],
}


def _build() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    wrappers = descriptor_pb2.FileDescriptorProto()
    wrappers_pb2.DESCRIPTOR.CopyToProto(wrappers)
    pool.Add(wrappers)
    file = descriptor_pb2.FileDescriptorProto(
        name=_FILE, syntax="proto3", dependency=[wrappers.name]
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            field = message.field.add(name=field_name.lstrip("*"), number=number)
            repeated = field_name.startswith("*")
            field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            if isinstance(kind, str):
                field.type, field.type_name = _Field.TYPE_MESSAGE, kind
            else:
                field.type = kind
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for name in _MESSAGES
    }


_CLASSES = _build()
PredictRequest = _CLASSES["PredictRequest"]
PredictResponse = _CLASSES["PredictResponse"]
PredictionLog = _CLASSES["PredictionLog"]

_FLOAT, _INT32, _STRING, _BOOL = 1, 3, 7, 10  # of tensorflow.DataType
_VALUES = {_FLOAT: "float_val", _INT32: "int_val", _STRING: "string_val", _BOOL: "bool_val"}
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
        raise ValueError(f"a tensor of type {tensor.dtype} is not known here")
    if tensor.tensor_content:
        flat = [v for (v,) in struct.iter_unpack(_FORMATS[tensor.dtype], tensor.tensor_content)]
    else:
        flat = list(getattr(tensor, _VALUES[tensor.dtype]))
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    total = 1
    for size in sizes:
        total *= size
    # A TensorProto may leave out repetitions of its last value.
    flat += flat[-1:] * (total - len(flat))
    if len(sizes) < 2:
        return flat
    width = sizes[1]
    return [flat[row * width : (row + 1) * width] for row in range(sizes[0])]
