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
