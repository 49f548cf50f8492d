"""One generated corpus that the tests of generation share."""

import numbered_corpus
import pytest

from t2t_lite import registry


@pytest.fixture(scope="session")
def problem():
    """Return the problem that reads any parallel text."""
    return registry.problem("parallel_text")


@pytest.fixture(scope="session")
def raw_dir(tmp_path_factory):
    """Return a folder with 12,500 training pairs, which make two shards."""
    return numbered_corpus.write(tmp_path_factory.mktemp("raw"), 12_500)


@pytest.fixture(scope="session")
def made(problem, raw_dir, tmp_path_factory):
    """Return the manifest of their data."""
    return numbered_corpus.generate(problem, raw_dir, tmp_path_factory.mktemp("made"))
