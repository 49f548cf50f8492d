"""Manifests of a data_dir, and what they lead to."""

import functools
import json

import pytest
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite import errors, registry
from t2t_lite.data import data_dir, manifest


@functools.cache
def _manifest(path):
    return json.loads(path.read_text("utf-8"))


@given(st.data())
def test_a_damaged_manifest_is_refused(folder, tiny_data, data):
    problem = registry.problem("parallel_text")
    intact = _manifest(tiny_data / manifest.file_name(problem.base_name))
    path = folder / "data" / manifest.file_name(problem.base_name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data.draw(inputs.damaged_json(intact)))
    with inputs.answered():
        data_dir.read(path.parent, problem)
        assert json.loads(path.read_bytes()) == intact


@pytest.mark.parametrize("content", inputs.HOSTILE_JSON, ids=lambda content: repr(content[:9]))
def test_a_manifest_that_is_none_is_refused(folder, content):
    problem = registry.problem("parallel_text")
    path = folder / "data" / manifest.file_name(problem.base_name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(errors.UserError):
        data_dir.read(path.parent, problem)
