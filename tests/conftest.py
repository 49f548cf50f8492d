"""Fixtures that all tests share."""

import os
import pathlib

import pytest


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    """Return the folder of real corpora and reference numbers; skip where there is none."""
    default = pathlib.Path(__file__).parents[2] / "shared" / "data"
    path = pathlib.Path(os.environ.get("T2T_LITE_DATA", default))
    if not path.is_dir():
        pytest.skip(f"needs the reference data: {path} is missing (set T2T_LITE_DATA)")
    return path


def pytest_configure() -> None:
    """Make two logical CPUs, on which MirroredStrategy can be tested, before TensorFlow starts."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
