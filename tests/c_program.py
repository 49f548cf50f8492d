"""An export in a process without Python: TensorFlow's C API, with TensorFlow Serving's loader.

The program is serving/saved_model_runner.c.
"""

import contextlib
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence

import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2

Ask = Callable[[Sequence[bytes]], list[tuple[str, float, bool]]]
SOURCE = pathlib.Path(__file__).parent / "serving" / "saved_model_runner.c"
# TensorFlow Text's libraries of operations that tokenizers here are made of.
TOKENIZERS = ("sentencepiece_tokenizer", "fast_wordpiece_tokenizer")


class CannotBuildError(Exception):
    """No compiler, or no libraries of TensorFlow."""


def build(folder: pathlib.Path) -> pathlib.Path:
    """Compile the program; return its path in the folder."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise CannotBuildError("needs gcc to build the C program")
    library_dir = pathlib.Path(tf.sysconfig.get_lib())
    libraries = sorted(library_dir.glob("libtensorflow_*.so.2"))
    if len(libraries) < 2:
        raise CannotBuildError(
            f"needs libtensorflow_cc and libtensorflow_framework in {library_dir}"
        )
    path = folder / "saved_model_runner"
    command = [
        *(compiler, "-O1", "-Wall", "-Werror", f"-I{tf.sysconfig.get_include()}", str(SOURCE)),
        *("-o", str(path), *map(str, libraries), f"-Wl,-rpath,{library_dir}"),
        # The wheel's libraries find their own dependencies at run time.
        "-Wl,--allow-shlib-undefined",
    ]
    subprocess.run(command, check=True)
    return path


@contextlib.contextmanager
def running(
    program: pathlib.Path,
    saved_model: pathlib.Path,
    environment: Mapping[str, str] | None = None,
    *,
    signature: str = "serving_default",
) -> Iterator[Ask]:
    """Start the program; yield what sends it texts (or ids, for from_ids) and returns each one's
    output, its score and whether it was truncated."""
    ops = pathlib.Path(str(tensorflow_text.__file__)).parent / "python" / "ops"
    libraries = ",".join(str(next(ops.glob(f"_{name}*.so"))) for name in TOKENIZERS)
    command = [str(program), str(saved_model), libraries, *_tensor_names(saved_model, signature)]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **(environment or {})},
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        requests, answers = process.stdin, process.stdout

        def read(count: int) -> bytes:
            data = answers.read(count)
            if len(data) < count:
                log.seek(0)
                raise AssertionError(log.read().decode())
            return data

        def ask(texts: Sequence[bytes]) -> list[tuple[str, float, bool]]:
            data = b"".join(struct.pack("=I", len(text)) + text for text in texts)
            requests.write(struct.pack("=I", len(texts)) + data)
            requests.flush()
            results = []
            for _ in texts:
                (length,) = struct.unpack("=I", read(4))
                output = read(length).decode()
                results.append((output, *struct.unpack("=f?", read(5))))
            return results

        yield ask
        requests.close()
    assert process.returncode == 0


def run(
    program: pathlib.Path,
    saved_model: pathlib.Path,
    texts: Sequence[bytes],
    signature: str = "serving_default",
) -> list[tuple[str, float, bool]]:
    """Return what the program says of texts, all in one request."""
    with running(program, saved_model, signature=signature) as ask:
        return ask(texts)


def _tensor_names(saved_model: pathlib.Path, name: str) -> list[str]:
    proto = saved_model_pb2.SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    signature = proto.meta_graphs[0].signature_def[name]
    first = "ids" if name == "from_ids" else "outputs"
    outputs = [signature.outputs[output].name for output in (first, "scores", "truncated")]
    (input_info,) = signature.inputs.values()
    return [input_info.name, *outputs]
