"""An export in a process without Python: TensorFlow's C API, with TensorFlow Serving's loader.

The program is serving/saved_model_runner.c.
"""

import pathlib
import shutil
import struct
import subprocess
from collections.abc import Sequence

import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2

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


def run(
    program: pathlib.Path, saved_model: pathlib.Path, texts: Sequence[bytes]
) -> list[tuple[str, float, bool]]:
    """Return each text's output, its score and whether it was truncated."""
    ops = pathlib.Path(str(tensorflow_text.__file__)).parent / "python" / "ops"
    libraries = ",".join(str(next(ops.glob(f"_{name}*.so"))) for name in TOKENIZERS)
    data = struct.pack("=I", len(texts))
    data += b"".join(struct.pack("=I", len(text)) + text for text in texts)
    done = subprocess.run(
        [str(program), str(saved_model), libraries, *_tensor_names(saved_model)],
        input=data,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    results, rest = [], done.stdout
    while rest:
        (length,) = struct.unpack("=I", rest[:4])
        score, truncated = struct.unpack("=f?", rest[4 + length : 9 + length])
        results.append((rest[4 : 4 + length].decode(), score, truncated))
        rest = rest[9 + length :]
    return results


def _tensor_names(saved_model: pathlib.Path) -> list[str]:
    proto = saved_model_pb2.SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    signature = proto.meta_graphs[0].signature_def["serving_default"]
    outputs = [signature.outputs[name].name for name in ("outputs", "scores", "truncated")]
    return [signature.inputs["inputs"].name, *outputs]
