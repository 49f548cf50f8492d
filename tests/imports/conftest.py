"""The command that imports, as users give it."""

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
