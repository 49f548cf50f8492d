"""The JSON of TensorFlow Serving's REST interface, to arrays and back.

    {"instances": ["a", "b"]}                              a row each, of the only input
    {"instances": [{"inputs": "a", "targets": "b"}, ...]}  of several
    {"inputs": ["a", "b"]}                                 a column, of the only input
    {"inputs": {"inputs": ["a"], "targets": ["b"]}}        of several

Bytes that are not UTF-8 come as {"b64": "..."}. What is refused, and the words, are TensorFlow
Serving's: https://www.tensorflow.org/tfx/serving/api_rest.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from t2t_lite.serving import protocol

Arrays = dict[str, np.ndarray]
_INT32 = range(-(2**31), 2**31)
_SHOWN = 256  # characters of a value that an error quotes
_DEEPEST = 8  # lists in lists: no tensor has so many dimensions
_TYPES = {dict: "Object", list: "Array", str: "String", bool: "Bool", type(None): "Null"}


def decode(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a request's body; whatever follows it is not read."""
    if not body:
        _refuse("JSON Parse error: The document is empty")
    # Bytes that are no UTF-8 pass as they are.
    text = body.decode("utf-8", "surrogateescape").removeprefix("\ufeff").lstrip(" \t\r\n")
    try:
        request, _ = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        _refuse(f"JSON Parse error: {error.msg} at offset: {error.pos}")
    except (ValueError, RecursionError) as error:
        _refuse(f"JSON Parse error: {error}")
    if not isinstance(request, dict):
        _refuse(f"JSON Value: {_quote(request)} Is not object")
    return request


def signature_name(request: Mapping[str, Any]) -> str:
    """Return the signature that a request names, "" where it names none."""
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        _refuse(
            f"JSON Value: {_quote(request)} not formatted correctly. 'signature_name' key must be "
            "a string value."
        )
    return name


def arrays(request: Mapping[str, Any], dtypes: Mapping[str, str]) -> tuple[Arrays, bool]:
    """Return a request's inputs, and whether they come in rows.

    Args:
      request: what `decode` returns.
      dtypes: "string" or "int32" of each input of the signature.
    """
    if "instances" in request and "inputs" in request:
        _refuse(
            f"JSON Value: {_quote(request)} Not formatted correctly expecting only one of "
            "'inputs' or 'instances' keys to exist "
        )
    if "instances" in request:
        rows = request["instances"]
        if not isinstance(rows, list):
            _refuse(f"JSON Value: {_quote(request)} Expecting 'instances' to be an list/array")
        if not rows:
            _refuse(f"JSON Value: {_quote(request)} No values in 'instances' array")
        return _of_rows(rows, dtypes), True
    if "inputs" in request:
        return _of_columns(request["inputs"], dtypes), False
    _refuse("Missing 'inputs' or 'instances' key")


def answer(outputs: Arrays, *, rows: bool) -> dict[str, Any]:
    """Return the answer's JSON, in rows or columns as the request's; a lone output has no name."""
    columns = {name: _as_json(array) for name, array in outputs.items()}
    if not rows:
        return {"outputs": columns if len(columns) > 1 else next(iter(columns.values()))}
    lists = list(zip(*columns.values()))
    if len(columns) == 1:
        return {"predictions": [value for (value,) in lists]}
    return {"predictions": [dict(zip(columns, values)) for values in lists]}


def _of_columns(columns: Any, dtypes: Mapping[str, str]) -> Arrays:
    if isinstance(columns, dict) and not _is_base64(columns):
        for name in dtypes:
            if name not in columns:
                _refuse(f"Missing named input: {name} in 'inputs' object.")
        return {name: _array(columns[name], dtype) for name, dtype in dtypes.items()}
    if len(dtypes) > 1:
        _refuse(
            "inputs is a plain value/list, but expecting an object as multiple input tensors "
            "required as per tensorinfo_map"
        )
    ((name, dtype),) = dtypes.items()
    return {name: _array(columns, dtype)}


def _of_rows(rows: list, dtypes: Mapping[str, str]) -> Arrays:
    if not isinstance(rows[0], dict) and len(dtypes) > 1:
        _refuse(
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map"
        )
    are_objects = _is_object(rows[0])
    columns: dict[str, list[np.ndarray]] = {}
    for number, row in enumerate(rows):
        if are_objects and not _is_object(row):
            _refuse(f"Expecting object but got list at item {number} of input list")
        if not are_objects and _is_object(row):
            _refuse(f"Expecting value/list but got object at item {number} of input list")
        named = row if are_objects else {next(iter(dtypes)): row}
        for name, value in named.items():
            try:
                _add(columns, number, name, value, dtypes)
            except protocol.Refused as error:
                key = f" key: {name}" if are_objects else ""
                _refuse(
                    f"Failed to process element: {number}{key} of 'instances' list. "
                    f"Error: {error.status}: {error}"
                )
        if are_objects and named.keys() != dtypes.keys():
            _refuse(
                f"Failed to process element: {number} of 'instances' list. JSON object: "
                f"{_quote(row)} keys must be equal to: {','.join(sorted(dtypes))}"
            )
    return {name: np.stack(column) for name, column in columns.items()}


def _add(
    columns: dict[str, list[np.ndarray]],
    number: int,
    name: str,
    value: Any,
    dtypes: Mapping[str, str],
) -> None:
    """Add a row's tensor to its column; all have one shape."""
    if name not in dtypes:
        _refuse(f"JSON object: does not have named input: {name}")
    array = _array(value, dtypes[name])
    column = columns.setdefault(name, [])
    if column and column[0].size != array.size:
        _refuse(f"Expecting tensor size: {column[0].size} but got: {array.size}")
    if column and column[0].shape != array.shape:
        _refuse(f"Expecting shape {list(column[0].shape)} but got: {list(array.shape)}")
    column.append(array)


def _array(value: Any, dtype: str) -> np.ndarray:
    """Return a value, a list or a list of lists as an array."""
    shape, first = [], value
    while isinstance(first, list):
        shape.append(len(first))
        if not first:
            break
        first = first[0]
    if len(shape) > _DEEPEST:
        _refuse(f"Encountered list at unexpected level: {_DEEPEST} expected < {_DEEPEST}")
    elements: list[Any] = []
    _fill(elements, value, 0, shape, dtype)
    array = np.empty(len(elements), object if dtype == "string" else dtype)
    array[:] = elements
    return array.reshape(shape)


def _fill(elements: list, value: Any, level: int, shape: list[int], dtype: str) -> None:
    rank = len(shape)
    if not isinstance(value, list):
        if level != rank:
            _refuse(
                f"JSON Value: {_quote(value)} found at incorrect level: {level + 1} in the JSON "
                f"DOM. Expected at level: {rank}"
            )
        elements.append(_element(value, dtype))
        return
    if level >= rank:
        _refuse(f"Encountered list at unexpected level: {level} expected < {rank}")
    if len(value) != shape[level]:
        _refuse(
            f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: "
            f"{shape[level]}"
        )
    for item in value:
        _fill(elements, item, level + 1, shape, dtype)


def _element(value: Any, dtype: str) -> bytes | int:
    if dtype == "string" and isinstance(value, dict):
        return _from_base64(value)
    if dtype == "string" and isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            _refuse("JSON Parse error: The surrogate pair in string is invalid.")
    if dtype == "int32" and type(value) is int and value in _INT32:
        return value
    kind = _TYPES.get(type(value), "Number")
    _refuse(f"JSON Value: {_quote(value)} Type: {kind} is not of expected type: {dtype}")


def _from_base64(value: dict) -> bytes:
    if not _is_base64(value):
        _refuse(f"JSON Value: {_quote(value)} not formatted correctly for base64 data")
    text = "".join(value["b64"].split()).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        _refuse("Unable to base64 decode")


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not _is_base64(value)


def _as_json(array: np.ndarray) -> Any:
    if array.dtype == object:
        return [text.decode() if isinstance(text, bytes) else _as_json(text) for text in array]
    if array.dtype.kind == "f":  # 0.2, not 0.20000000298 as float32 is in float64
        numbers = np.array([float(str(number)) for number in array.flat])
        return numbers.reshape(array.shape).tolist()
    return array.tolist()


def _quote(value: Any) -> str:
    return json.dumps(value)[:_SHOWN]


def _refuse(message: str) -> NoReturn:
    raise protocol.Refused("INVALID_ARGUMENT", message)
