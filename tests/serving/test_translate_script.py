"""scripts/translate.py: an export in a process that knows nothing of t2t-lite."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "translate.py"


def _translate(*arguments, cwd):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_it_translates_with_the_newest_version(export_dir, model, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "1").mkdir()  # empty: no version
    (tmp_path / "12").symlink_to(export_dir / "1")
    done = _translate(tmp_path, "a dog runs", "he sleeps", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    expected = [translation.text for translation in model.translate(["a dog runs", "he sleeps"])]
    assert done.stdout.split("\n")[:-1] == expected


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "expected a folder of versions and texts"),
        (["nowhere", "a"], "nowhere has no exported version"),
        (["empty", "a"], "empty has no exported version"),
    ],
)
def test_mistakes_are_one_line(tmp_path, arguments, says):
    (tmp_path / "empty" / "1").mkdir(parents=True)
    done = _translate(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("translate.py: ")
    assert says in line
