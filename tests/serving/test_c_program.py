"""The export in a process without Python says what the decoder says."""

from typing import Any

import c_program
import foreign_numbers
import golden_numbers
import pytest
import tiny_run

from t2t_lite.decode import translator
from t2t_lite.imports import imported, tensor2tensor
from t2t_lite.serving import export


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """Build the program; return its path."""
    try:
        return c_program.build(tmp_path_factory.mktemp("runner"))
    except c_program.CannotBuildError as error:
        pytest.skip(str(error))


def test_c_program_translates_as_python_does(runner, export_dir, model, hostile):
    texts = [*map(str.encode, tiny_run.SENTENCES), *hostile.values()]
    found = c_program.run(runner, export_dir / "1", texts)
    expected = model.translate([text.decode("utf-8", "replace") for text in texts])
    assert len(found) == len(texts)
    for (text, score, truncated), translation in zip(found, expected):
        assert text == translation.text
        assert score == pytest.approx(translation.score, abs=2e-5)
        assert truncated == translation.truncated


@pytest.mark.slow
def test_c_program_runs_what_was_imported(runner, tmp_path):
    # Its text is cut by subword-nmt's merges, in the graph.
    pieces = ["a", "dog", "run@@", "s", "an@@", "d", "cat", "the"]
    foreign_numbers.write_fairseq(tmp_path, pieces)
    (tmp_path / "codes").write_text("#version: 0.2\nd o\ndo g</w>\nr u\nru n\na n\n")
    imported.write(foreign_numbers.read_fairseq(tmp_path), tmp_path / "run")
    changes: dict[str, Any] = {"extra_length": 5, "length_penalty": "power", "early_stop": True}
    export.export(tmp_path / "run", tmp_path / "export", **changes)
    texts = ["a dog runs", "", " and  the ☃ cat"]
    model = translator.Translator.from_output_dir(tmp_path / "run", **changes)
    expected = [(t.text, pytest.approx(t.score, abs=2e-5)) for t in model.translate(texts)]
    found = c_program.run(runner, tmp_path / "export" / "1", [text.encode() for text in texts])
    assert [(text, score) for text, score, _ in found] == expected


@pytest.mark.slow
def test_c_program_runs_a_model_of_tensor2tensor(runner, tmp_path):
    # Its text is cut by another library of TensorFlow Text than SentencePiece's.
    golden_numbers.write_checkpoint(tmp_path, "t2t_paper")
    imported.write(tensor2tensor.read(tmp_path), tmp_path / "run")
    export.export(tmp_path / "run", tmp_path / "export", extra_length=5)
    texts = ["αβγ δ", "", "ζ_\\ ☃"]
    model = translator.Translator.from_output_dir(tmp_path / "run", extra_length=5)
    expected = [(t.text, pytest.approx(t.score, abs=2e-5)) for t in model.translate(texts)]
    found = c_program.run(runner, tmp_path / "export" / "1", [text.encode() for text in texts])
    assert [(text, score) for text, score, _ in found] == expected


def test_c_program_runs_an_empty_batch(runner, export_dir):
    assert c_program.run(runner, export_dir / "1", []) == []
