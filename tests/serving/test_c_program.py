"""The export in a process without Python says what the decoder says."""

import c_program
import exports
import foreign_numbers
import golden_numbers
import pytest
import tiny_run

from t2t_lite.imports import imported, tensor2tensor


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
    assert c_program.run(runner, export_dir / "1", []) == []


def test_c_program_takes_ids_of_any_widths_in_one_batch(runner, export_dir, model):
    texts = [*tiny_run.SENTENCES, "two dogs run " * 8, ""]
    rows = [" ".join(map(str, model.vocabulary.encode(text))).encode() for text in texts]
    rows.insert(3, b"not ids")
    found = c_program.run(runner, export_dir / "1", rows, "from_ids")
    assert found.pop(3) == ("", 0.0, True)
    for (ids, score, truncated), expected in zip(found, model.translate(texts), strict=True):
        assert model.vocabulary.decode(list(map(int, ids.split()))) == expected.text
        assert score == pytest.approx(expected.score, abs=2e-5)
        assert truncated == expected.truncated


def _fairseq(folder):
    """Write a model whose text is cut by subword-nmt's merges, in the graph."""
    pieces = ["a", "dog", "run@@", "s", "an@@", "d", "cat", "the"]
    foreign_numbers.write_fairseq(folder, pieces)
    (folder / "codes").write_text("#version: 0.2\nd o\ndo g</w>\nr u\nru n\na n\n")
    return foreign_numbers.read_fairseq(folder)


def _tensor2tensor(folder):
    """Write a model whose text another library of TensorFlow Text than SentencePiece's cuts."""
    golden_numbers.write_checkpoint(folder, "t2t_paper")
    return tensor2tensor.read(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "texts", "changes"),
    [
        (
            _fairseq,
            ["a dog runs", "", " and  the ☃ cat"],
            {"length_penalty": "power", "early_stop": True},
        ),
        (_tensor2tensor, ["αβγ δ", "", "ζ_\\ ☃"], {}),
    ],
)
def test_c_program_runs_what_was_imported(runner, tmp_path, write, texts, changes):
    imported.write(write(tmp_path), tmp_path / "run")
    _, expected = exports.says_the_same(
        tmp_path / "run", tmp_path / "export", texts, extra_length=5, **changes
    )
    found = c_program.run(runner, tmp_path / "export" / "1", [text.encode() for text in texts])
    assert [(text, score) for text, score, _ in found] == [
        (t.text, pytest.approx(t.score, abs=2e-5)) for t in expected
    ]
