"""One small export that the tests of serving share."""

import keras
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.decode import translator
from t2t_lite.serving import export


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory):
    """Return the output_dir of a tiny run."""
    keras.utils.set_random_seed(1)
    return tiny_run.write(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def export_dir(run_dir, tmp_path_factory):
    """Return a folder that holds version 1."""
    path = tmp_path_factory.mktemp("export")
    export.export(run_dir, path, max_source_length=100)
    return path


@pytest.fixture(scope="session")
def signatures(export_dir):
    """Return the export's signatures, as TensorFlow loads them."""
    return tf.saved_model.load(str(export_dir / "1")).signatures


@pytest.fixture(scope="session")
def model(run_dir):
    """Return the Translator that the export must equal."""
    return translator.Translator.from_output_dir(run_dir, max_source_length=100)


HOSTILE = {
    "empty": b"",
    "spaces": b" \t\r\n \xe2\x80\x83\xc2\xa0 ",
    "NUL": b"\x00",
    "NUL inside": b"a dog\x00runs",
    "invalid UTF-8": b"a \xff\xfe dog \xc3",
    "only invalid bytes": b"\xff\xfe\xc0\xf8",
    "a cut character": "a dog ☃".encode()[:-1],
    "a surrogate": b"\xed\xa0\x80 dog",
    "only unknown characters": "𝔘𝔫☃ж漢".encode(),
    "byte order mark": b"\xef\xbb\xbfa dog runs",
    "line separators": "a\u2028dog\u0085\x0cruns".encode(),
    "control characters": bytes(range(1, 32)),
    "the subword sign": "\u2581".encode(),
    "100,000 characters": b"a dog runs " * 9091,
    "100,000 letters": b"x" * 100_000,
}


@pytest.fixture(scope="session")
def hostile():
    """Return what a client may send, by what is wrong with it."""
    return HOSTILE
