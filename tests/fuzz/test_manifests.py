"""Manifests of a data_dir, and what they lead to."""

import functools
import json

import pytest
from fuzz import inputs
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite import errors, registry
from t2t_lite.data import manifest


@functools.cache
def _manifest(path):
    return json.loads(path.read_text("utf-8"))


@given(st.data())
def test_a_manifest_is_read_or_refused(folder, tiny_data, data):
    problem = registry.problem("parallel_text")
    name = manifest.file_name(problem.base_name)
    path = folder / "data" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data.draw(inputs.damaged_json(_manifest(tiny_data / name))))
    with inputs.answered():
        loaded = manifest.load(path.parent, problem)
        assert loaded.vocabulary_path.name
        for split in loaded.splits:
            assert loaded.pairs(split) >= 0
            assert loaded.lengths(split).shape[1] == 3
            loaded.shards(split)
        manifest.problem_text(path.parent, problem, "dev")


@pytest.mark.parametrize("content", inputs.HOSTILE_JSON, ids=lambda content: repr(content[:9]))
def test_a_manifest_that_is_none_is_refused(folder, content):
    problem = registry.problem("parallel_text")
    path = folder / "data" / manifest.file_name(problem.base_name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(errors.UserError):
        manifest.load(path.parent, problem)
