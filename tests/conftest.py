"""Fixtures that all tests share."""

import gc
import os
import pathlib
import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    """Return the folder of real corpora and reference numbers; skip where there is none."""
    default = pathlib.Path(__file__).parents[2] / "shared" / "data"
    path = pathlib.Path(os.environ.get("T2T_LITE_DATA", default))
    if not path.is_dir():
        pytest.skip(f"needs the reference data: {path} is missing (set T2T_LITE_DATA)")
    return path


@pytest.fixture(scope="module", autouse=True)
def graphs_of_the_file_before_go() -> None:
    """Free what tests have traced, of which Python sees only small objects.

    TensorFlow keeps each trace of a custom gradient, and its graph with it: 10 GB in the end.
    """
    from tensorflow.python.framework import ops

    gradients = ops.gradient_registry._registry
    for name in [name for name in gradients if name.startswith("CustomGradient-")]:
        del gradients[name]
    gc.collect()


@pytest.fixture(scope="session")
def integers() -> None:
    """Skip where the processor does not multiply 8-bit integers."""
    from t2t_lite.decode import matmuls

    if not matmuls.has_integers():
        pytest.skip("this processor does not multiply 8-bit integers (AVX512 VNNI or AMX)")


def pytest_configure() -> None:
    """Make two logical CPUs, on which MirroredStrategy can be tested, before TensorFlow starts.

    Signals that whoever started the tests has ignored (in the background, with nohup) are heeded
    again: the commands that tests start inherit this.
    """
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores: more threads would only wait
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)


@pytest.fixture(scope="session")
def tiny_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Return a data_dir of 300 pairs, which no test changes."""
    import tiny_training

    folder = tiny_training.generate_data(tmp_path_factory.mktemp("tiny"))

    def times() -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}

    before = times()
    yield folder
    assert times() == before


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the output_dir of a tiny run, which no test changes."""
    import tiny_run

    return tiny_run.write(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def export_dir(run_dir: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the folder of versions that has the export of `run_dir`; no test changes it."""
    from t2t_lite.serving import export

    path = tmp_path_factory.mktemp("export")
    export.export(run_dir, path, max_source_length=100)
    return path


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
