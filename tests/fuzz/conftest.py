"""How many inputs each fuzz test gets, and how much memory it may take.

    pytest tests/fuzz                             a hundred each, the same every time
    HYPOTHESIS_PROFILE=full pytest tests/fuzz     2,000 each, other ones every time

An input that fails in the latter is kept in .hypothesis/ and is the first one of the next call.
"""

import os
import pathlib
import resource

import pytest
from hypothesis import HealthCheck, settings

MAX_MEGABYTES = 400  # that one test may add: Hypothesis itself keeps some of it
_STATUS, _RESET = pathlib.Path("/proc/self/status"), pathlib.Path("/proc/self/clear_refs")
_SHARED = {
    "deadline": None,  # inputs.answered has its own, which ends what hangs
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}

settings.register_profile("suite", max_examples=100, derandomize=True, database=None, **_SHARED)
settings.register_profile("full", max_examples=2_000, print_blob=True, **_SHARED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder as slow."""
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a folder for the files that are read."""
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(autouse=True)
def bounded_memory():
    """Fail the test where the process's memory grew by more than MAX_MEGABYTES at any time."""
    if not _STATUS.exists():
        pytest.skip("memory is read from /proc")
    _RESET.write_text("5")  # forgets the highest memory so far
    before = _megabytes("VmRSS")
    # What asks for gigabytes gets a MemoryError instead of the machine's last.
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (int(_megabytes("VmSize") + 3_000) << 20, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)
    assert _megabytes("VmHWM") - before < MAX_MEGABYTES


def _megabytes(name: str) -> float:
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024
