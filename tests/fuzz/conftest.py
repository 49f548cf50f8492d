"""How many inputs each fuzz test gets, and how much memory it may take.

    pytest tests/fuzz                             the suite's: a hundred each, the same every time
    HYPOTHESIS_PROFILE=full pytest tests/fuzz     2,000 each, other ones every time

A report of the inputs, the time and the memory of each test comes at the end of the latter. An
input that fails is kept in .hypothesis/ and is the first one of the next call.
"""

import os
import pathlib
import resource
import time

import pytest
from fuzz import inputs
from hypothesis import HealthCheck, settings

MAX_MEGABYTES = 400  # that one test may add: Hypothesis itself keeps some of it
_STATUS, _RESET = pathlib.Path("/proc/self/status"), pathlib.Path("/proc/self/clear_refs")
_SHARED = {
    "deadline": None,  # inputs.answered has its own, which ends what hangs
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}

settings.register_profile("suite", max_examples=100, derandomize=True, database=None, **_SHARED)
settings.register_profile("full", max_examples=2_000, print_blob=True, **_SHARED)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "suite")
settings.load_profile(PROFILE)

_report: list[str] = []


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
def bounded_memory(request: pytest.FixtureRequest):
    """Fail the test where the process's memory grew by more than MAX_MEGABYTES at any time."""
    before, start = _reset_peak(), time.monotonic()
    inputs.counts.clear()
    # What asks for gigabytes gets a MemoryError instead of the machine's last.
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (int(_megabytes("VmSize") + 3_000) << 20, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)
    seconds, grown = time.monotonic() - start, _megabytes("VmHWM") - before
    _report.append(
        f"{request.node.name}: {inputs.counts['inputs']:,} inputs, "
        f"{inputs.counts['refused']:,} refused, {seconds:.1f} s, {grown:.0f} MB"
    )
    assert grown < MAX_MEGABYTES


def pytest_terminal_summary(terminalreporter) -> None:
    """Say what was tried, after a full run."""
    if PROFILE == "full" and _report:
        terminalreporter.section("fuzzing")
        for line in _report:
            terminalreporter.line(line)


def _reset_peak() -> float:
    """Forget the process's highest memory so far; return its memory."""
    if not _STATUS.exists():
        pytest.skip("memory is read from /proc")
    _RESET.write_text("5")
    return _megabytes("VmRSS")


def _megabytes(name: str) -> float:
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024
