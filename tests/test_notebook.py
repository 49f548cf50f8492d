"""The notebook runs from top to bottom and holds the outputs of such a run."""

import os
import pathlib
import sys

import nbclient
import nbformat
import pytest

ROOT = pathlib.Path(__file__).parents[1]
PATH = ROOT / "docs" / "notebooks" / "transformer_in_keras.ipynb"


def _text(notebook) -> str:
    """Return what the cells print or show as text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(
        output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs
    )


@pytest.mark.slow
def test_the_notebook_runs_and_its_model_translates(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    notebook = nbformat.read(PATH, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, kernel_name="python3", resources=resources).execute()
    assert "Ein Hund rennt." in _text(notebook)
    assert "'Ein Hund rennt.'" in _text(notebook)  # of the export


def test_the_stored_outputs_are_those_of_a_whole_run():
    notebook = nbformat.read(PATH, as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert "'Ein Hund rennt.'" in _text(notebook)
    assert any(
        "image/png" in o.get("data", {}) for c in notebook.cells for o in c.get("outputs", [])
    )
    assert str(pathlib.Path.home()) not in PATH.read_text("utf-8")
