"""The shared export and the model that it must equal."""

import pytest
import tensorflow as tf

from t2t_lite.decode import translator


@pytest.fixture(scope="session")
def signatures(export_dir):
    """Return the export's signatures, as TensorFlow loads them."""
    return tf.saved_model.load(str(export_dir / "1")).signatures


@pytest.fixture(scope="session")
def model(run_dir):
    """Return the Translator that the export must equal."""
    return translator.Translator.from_output_dir(run_dir, max_source_length=100)
