"""The export in a process without Python: TensorFlow's C API, with TensorFlow Serving's loader."""

import pathlib
import shutil
import struct
import subprocess
from typing import Any

import foreign_numbers
import pytest
import tensorflow as tf
import tensorflow_text
import tiny_run
from tensorflow.core.protobuf import saved_model_pb2

from t2t_lite.decode import translator
from t2t_lite.imports import fairseq, imported
from t2t_lite.serving import export

SOURCE = pathlib.Path(__file__).with_name("saved_model_runner.c")


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """Build the program; return its path."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc to build the C program")
    library_dir = pathlib.Path(tf.sysconfig.get_lib())
    libraries = sorted(library_dir.glob("libtensorflow_*.so.2"))
    if len(libraries) < 2:
        pytest.skip(f"needs libtensorflow_cc and libtensorflow_framework in {library_dir}")
    path = tmp_path_factory.mktemp("runner") / "saved_model_runner"
    command = [
        *(compiler, "-O1", "-Wall", "-Werror", f"-I{tf.sysconfig.get_include()}", str(SOURCE)),
        *("-o", str(path), *map(str, libraries), f"-Wl,-rpath,{library_dir}"),
        # The wheel's libraries find their own dependencies at run time.
        "-Wl,--allow-shlib-undefined",
    ]
    subprocess.run(command, check=True)
    return path


def _tensor_names(saved_model):
    proto = saved_model_pb2.SavedModel.FromString((saved_model / "saved_model.pb").read_bytes())
    signature = proto.meta_graphs[0].signature_def["serving_default"]
    outputs = [signature.outputs[name].name for name in ("outputs", "scores", "truncated")]
    return [signature.inputs["inputs"].name, *outputs]


def _run(runner, saved_model, texts, *, ops="sentencepiece_tokenizer"):
    """Translate with the program, which loads one of TensorFlow Text's libraries of operations."""
    text_ops = pathlib.Path(str(tensorflow_text.__file__)).parent / "python" / "ops"
    (tokenizer,) = text_ops.glob(f"_{ops}*.so")
    data = struct.pack("=I", len(texts))
    data += b"".join(struct.pack("=I", len(text)) + text for text in texts)
    done = subprocess.run(
        [str(runner), str(saved_model), str(tokenizer), *_tensor_names(saved_model)],
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


@pytest.mark.integration
def test_c_program_translates_as_python_does(runner, export_dir, model, hostile):
    texts = [*map(str.encode, tiny_run.SENTENCES), *hostile.values()]
    found = _run(runner, export_dir / "1", texts)
    expected = model.translate([text.decode("utf-8", "replace") for text in texts])
    assert len(found) == len(texts)
    for (text, score, truncated), translation in zip(found, expected):
        assert text == translation.text
        assert score == pytest.approx(translation.score, abs=2e-5)
        assert truncated == (translation.truncated or not translation.finished)


@pytest.mark.integration
def test_c_program_runs_what_was_imported(runner, tmp_path):
    # Its text is cut by subword-nmt's merges, in the graph.
    pieces = ["a", "dog", "run@@", "s", "an@@", "d", "cat", "the"]
    foreign_numbers.write_fairseq(tmp_path, pieces)
    (tmp_path / "codes").write_text("#version: 0.2\nd o\ndo g</w>\nr u\nru n\na n\n")
    imported.write(fairseq.read(tmp_path), tmp_path / "run")
    changes: dict[str, Any] = {"extra_length": 5, "length_penalty": "power", "early_stop": True}
    export.export(tmp_path / "run", tmp_path / "export", **changes)
    texts = ["a dog runs", "", " and  the ☃ cat"]
    model = translator.Translator.from_output_dir(tmp_path / "run", **changes)
    expected = [(t.text, pytest.approx(t.score, abs=2e-5)) for t in model.translate(texts)]
    found = _run(runner, tmp_path / "export" / "1", [text.encode() for text in texts])
    assert [(text, score) for text, score, _ in found] == expected


@pytest.mark.integration
def test_c_program_runs_an_empty_batch(runner, export_dir):
    assert _run(runner, export_dir / "1", []) == []
