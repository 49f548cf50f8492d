"""Tests of layers draw the same numbers in any order."""

import draws
import pytest


@pytest.fixture(autouse=True)
def same_draws():
    """Let each test begin with the first draw."""
    draws.restart()
