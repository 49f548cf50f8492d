"""The command that imports, as users give it, and a Python that has other frameworks."""

import os
import subprocess
import sys

import pytest

from t2t_lite.bin import import_model


@pytest.fixture
def refused(tmp_path, capsys):
    """Return a function that tries to import what lies in tmp_path; it returns the one line."""

    def refused(framework, model=tmp_path):
        flags = [f"--from={framework}", f"--model={model}", f"--output_dir={tmp_path}/run"]
        assert import_model.main(["t2t-lite-import", *flags]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert not (tmp_path / "run").exists()
        return line

    return refused


@pytest.fixture
def other_python():
    """Return a function that runs Python with transformers 4 or pymarian, or skips the test.

    The environment's FRAMEWORKS_PYTHON is its path; default: this one.
    """
    python = os.environ.get("FRAMEWORKS_PYTHON", sys.executable)

    def run(*arguments, **environment):
        done = subprocess.run(
            [python, *arguments], capture_output=True, text=True, env=os.environ | environment
        )
        if "ModuleNotFoundError" in done.stderr:
            reason = done.stderr.splitlines()[-1]
            pytest.skip(f"{python}: {reason}; FRAMEWORKS_PYTHON names another")
        assert done.returncode == 0, done.stderr

    return run
