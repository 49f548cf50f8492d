"""Files of torch.save, read as data: without torch, and without executing their pickle.

A pickle is a program that may call anything. Here its instructions are interpreted by hand: they
make containers, texts, numbers and references to tensors, whatever they ask for. Objects of other
kinds become records of their attributes, and only if they are of packages that checkpoints hold
settings and statistics of; a pickle that names anything else is refused.

Both forms are known: a zip archive (torch 1.6 and later), and several pickles one after the other
with the tensors' values behind them.
"""

import dataclasses
import io
import os
import pathlib
import pickletools
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_lite import errors

_MAGIC = 0x1950A86A20F9469CFC6C  # the first pickle of the older form
_DTYPES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "?",
}
# Of what is in these, records are kept; nothing of it is ever imported.
_PACKAGES = {"fairseq", "numpy", "omegaconf", "torch"}
_PLAIN = {
    "argparse Namespace",
    "collections OrderedDict",
    "collections defaultdict",
    "collections deque",
    "_codecs encode",
    "copy_reg _reconstructor",
    "copyreg _reconstructor",
    "typing Any",
    "typing Union",
    *(
        f"{module} {name}"
        for module in ("builtins", "__builtin__")
        for name in ("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int")
        + ("list", "object", "set", "str", "tuple", "unicode")
    ),
}
_HASHABLE = (str, bytes, int, float, bool, type(None))
DAMAGE = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
)


@dataclasses.dataclass(frozen=True)
class Name:
    """What a pickle calls something by, "argparse Namespace"; it is only a name."""

    text: str


@dataclasses.dataclass
class Record:
    """An object as its class's name, what it was made of, and its attributes."""

    kind: str
    arguments: Any = ()
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Tensor:
    """Where a tensor's values are."""

    storage: str
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class TorchFile:
    """A file's content; `array` reads a tensor's values.

    Attributes:
      content: dicts, lists, tuples, texts, numbers, Records and Tensors.

    Raises UserError where the file is damaged, or asks for what no checkpoint needs.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._path = pathlib.Path(path)
        self._storages: dict[str, np.ndarray] = {}
        self._dtypes: dict[str, str] = {}
        self._read_bytes = 0
        try:
            self._size = self._path.stat().st_size
            self._is_zip = zipfile.is_zipfile(self._path)
            self.content = self._zip_content() if self._is_zip else self._older_content()
        except FileNotFoundError as error:
            raise errors.UserError(f"there is no file {path}") from error
        except DAMAGE as error:
            raise self._damaged(error) from error

    def array(self, tensor: Tensor) -> np.ndarray:
        """Return a tensor's values, read-only; those of bfloat16 as float32."""
        try:
            return self._array(tensor)
        except DAMAGE as error:
            raise self._damaged(error) from error

    def _array(self, tensor: Tensor) -> np.ndarray:
        if tensor.storage not in self._storages:
            self._storages[tensor.storage] = self._storage(tensor)
        flat = self._storages[tensor.storage]
        shape, strides = tensor.shape, tensor.strides
        count = int(np.prod(shape, dtype=object))
        last = tensor.offset + sum((n - 1) * s for n, s in zip(shape, strides))
        if min((tensor.offset, *shape, *strides), default=0) < 0 or len(shape) != len(strides):
            raise ValueError("a tensor's shape is none")
        if count > flat.size or (count and last >= flat.size):
            raise ValueError("a tensor is larger than its values")
        view = flat[tensor.offset :] if count else flat[:0]
        view = np.lib.stride_tricks.as_strided(
            view, shape, [s * flat.itemsize for s in strides], writeable=False
        )
        if tensor.dtype == _DTYPES["BFloat16Storage"]:
            return (view.astype(np.uint32) << 16).view(np.float32)
        return view

    def _storage(self, tensor: Tensor) -> np.ndarray:
        dtype = np.dtype(tensor.dtype)
        if not self._is_zip:
            start, count = self._places[tensor.storage]
            with self._path.open("rb") as file:
                file.seek(start)
                data = file.read(count * dtype.itemsize)
        else:
            with zipfile.ZipFile(self._path) as archive:
                data = self._entry(archive, f"data/{tensor.storage}")
        # Entries of an archive may overlap, and be larger together than it is.
        self._read_bytes += len(data)
        if self._read_bytes > self._size:
            raise ValueError("its tensors are larger than the file")
        return np.frombuffer(data, dtype)

    def _zip_content(self) -> Any:
        with zipfile.ZipFile(self._path) as archive:
            names = [n for n in archive.namelist() if n.endswith("data.pkl")]
            if len(names) != 1:
                raise ValueError("it is no archive of torch.save")
            self._folder = names[0].removesuffix("data.pkl")
            has_order = f"{self._folder}byteorder" in archive.namelist()
            if has_order and self._entry(archive, "byteorder") != b"little":
                raise ValueError("its numbers are big-endian")
            return _Machine(self._dtypes).run(io.BytesIO(self._entry(archive, "data.pkl")))

    def _entry(self, archive: zipfile.ZipFile, name: str) -> bytes:
        info = archive.getinfo(f"{self._folder}{name}")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > self._size:
            raise ValueError(f"{name} is compressed, which torch.save does not do")
        return archive.read(info)

    def _older_content(self) -> Any:
        with self._path.open("rb") as file:
            machine = _Machine(self._dtypes)
            if machine.run(file) != _MAGIC:
                raise ValueError("it is no file of torch.save")
            machine.run(file)  # the version, always 1001
            if machine.run(file).get("little_endian") is not True:
                raise ValueError("its numbers are big-endian")
            content, keys = machine.run(file), machine.run(file)
            self._places: dict[str, tuple[int, int]] = {}
            for key in keys:
                (count,) = struct.unpack("<q", file.read(8))
                if count < 0:
                    raise ValueError("a storage has no size")
                self._places[str(key)] = file.tell(), count
                file.seek(count * np.dtype(self._dtypes[str(key)]).itemsize, 1)
            return content

    def _damaged(self, error: BaseException) -> errors.UserError:
        reason = str(error).partition("\n")[0] or type(error).__name__
        return errors.UserError(f"cannot read {self._path}: {reason:.200}")


_MARK = object()


class _Machine:
    """The pickle machine of Python's documentation, whose instructions only make data."""

    def __init__(self, dtypes: dict[str, str]):
        self._dtypes = dtypes

    def run(self, file: Any) -> Any:
        """Return what the pickle that begins at the file's place makes."""
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        for opcode, argument, _ in pickletools.genops(file):
            if opcode.name == "STOP":
                return self._stack.pop()
            self._step(opcode.name, argument)
        raise EOFError("the pickle does not end")

    def _step(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _NOTHING:
            return
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _LITERALS:
            stack.append(argument)
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self._memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            stack.append(tuple(reversed([stack.pop() for _ in range(int(name[-1]))])))
        elif name in ("TUPLE", "LIST", "FROZENSET"):
            items = self._to_mark()
            stack.append(items if name == "LIST" else tuple(items))
        elif name == "DICT":
            stack.append({})
            self._set_items(stack[-1], self._to_mark(before=1))
        elif name == "POP":
            stack.pop()
        elif name == "POP_MARK":
            self._to_mark()
        elif name == "DUP":
            stack.append(stack[-1])
        elif name == "APPEND":
            item = stack.pop()
            _as_list(stack[-1]).append(item)
        elif name in ("APPENDS", "ADDITEMS"):
            items = self._to_mark()
            _as_list(stack[-1]).extend(items)
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            self._set_items(stack[-1], [key, value])
        elif name == "SETITEMS":
            items = self._to_mark()
            self._set_items(stack[-1], items)
        elif name == "GLOBAL":
            stack.append(_known(argument))
        elif name == "STACK_GLOBAL":
            what, module = stack.pop(), stack.pop()
            stack.append(_known(f"{module} {what}"))
        elif name in ("REDUCE", "NEWOBJ"):
            arguments, kind = stack.pop(), stack.pop()
            stack.append(self._made(kind, arguments))
        elif name == "NEWOBJ_EX":
            stack.pop()  # arguments by name
            arguments, kind = stack.pop(), stack.pop()
            stack.append(self._made(kind, arguments))
        elif name == "BUILD":
            self._build(stack.pop())
        elif name == "BINPERSID":
            stack.append(self._storage(stack.pop()))
        else:
            raise ValueError(f"its pickle has the instruction {name}")

    def _to_mark(self, *, before: int = 0) -> list[Any]:
        """Remove and return what is above the last mark, but `before` items on top of all."""
        top = [self._stack.pop() for _ in range(before)]
        items = []
        while (item := self._stack.pop()) is not _MARK:
            items.append(item)
        self._stack.extend(reversed(top))
        return items[::-1]

    def _set_items(self, target: Any, items: list[Any]) -> None:
        if isinstance(target, Record):
            return
        if not isinstance(target, dict):
            raise ValueError("its pickle sets an item of what has none")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if isinstance(key, _HASHABLE):  # a hash of nested tuples may take forever
                target[key] = value

    def _made(self, kind: Any, arguments: Any) -> Any:
        """Return what stands for kind(*arguments); nothing is called."""
        if not isinstance(kind, Name) or not isinstance(arguments, tuple):
            raise ValueError("its pickle calls what has no name")
        name = kind.text
        if name in ("torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor"):
            storage, offset, shape, strides = arguments[:4]
            if not isinstance(storage, Tensor):
                raise ValueError("a tensor has no values")
            numbers = (offset, *shape, *strides)
            if not all(type(number) is int for number in numbers):
                raise ValueError("a tensor's shape is none")
            return dataclasses.replace(
                storage, offset=offset, shape=tuple(shape), strides=tuple(strides)
            )
        if name == "torch._utils _rebuild_parameter":
            return arguments[0]
        if name in ("collections OrderedDict", "collections defaultdict"):
            made: dict[Any, Any] = {}
            for pair in arguments[0] if name.endswith("OrderedDict") and arguments else ():
                self._set_items(made, list(pair))
            return made
        if name == "_codecs encode" and isinstance(arguments[0], str):
            return arguments[0].encode("latin-1", "replace")
        return Record(name, arguments)

    def _build(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) == 2:  # with __slots__
            state = {**(state[0] or {}), **(state[1] or {})}
        target = self._stack[-1]
        if isinstance(target, Record) and isinstance(state, dict):
            target.attributes.update({k: v for k, v in state.items() if isinstance(k, str)})

    def _storage(self, given: Any) -> Tensor:
        """Return all values of ("storage", type, key, place, count, ...)."""
        word, kind, key, _, count, *_ = given
        dtype = _DTYPES.get(kind.text.partition(" ")[2])
        if word != "storage" or dtype is None or not isinstance(key, str):
            raise ValueError(f"it has values of an unknown type, {kind.text:.60}")
        self._dtypes[key] = dtype
        return Tensor(storage=key, dtype=dtype, offset=0, shape=(count,), strides=(1,))


_NOTHING = {"PROTO", "FRAME"}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": list}
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
    *("BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}


def _known(text: str) -> Name:
    if text not in _PLAIN and text.partition(" ")[0].partition(".")[0] not in _PACKAGES:
        raise ValueError(
            f"its pickle names {text.replace(' ', '.')!r:.60}, which no checkpoint needs; it was "
            "not executed"
        )
    return Name(text)


def _as_list(target: Any) -> list[Any]:
    if isinstance(target, Record):
        return []
    if not isinstance(target, list):
        raise ValueError("its pickle appends to what is no list")
    return target


def attributes(value: Any) -> Mapping[str, Any]:
    """Return settings by name: of a dict, of an argparse.Namespace or of an OmegaConf container."""
    if isinstance(value, Record):
        if "_content" in value.attributes:
            content = attributes(value.attributes["_content"])
            return {name: _plain(item) for name, item in content.items()}
        return value.attributes
    return value if isinstance(value, dict) else {}


def _plain(value: Any) -> Any:
    """Return an OmegaConf node's value."""
    is_node = isinstance(value, Record) and "_val" in value.attributes
    return value.attributes["_val"] if is_node else value
