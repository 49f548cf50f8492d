"""An output_dir continues one run: what may differ, what may not, and who may write."""

import dataclasses
import json
import shutil

import pytest
import tiny_run

from t2t_lite import config, errors
from t2t_lite.run import output_dir
from t2t_lite.text import any_vocabulary, sentencepiece_vocabulary


@pytest.fixture
def run(tmp_path):
    """Return an output_dir with a checkpoint; its data_dir has the vocabulary."""
    return output_dir.read(tiny_run.write(tmp_path))


def _open(run, *, hparams=None, vocabulary_path=None, **changes):
    return output_dir.open_or_create(
        run.path,
        hparams=hparams or run.hparams,
        run=dataclasses.replace(run.run, **changes),
        vocabulary_path=vocabulary_path or run.vocabulary_path,
    )


def _other_vocabulary(folder):
    """Return a vocabulary of the same size for other text."""
    path = folder / "other.model"
    path.write_bytes(
        sentencepiece_vocabulary.train([text[::-1] for text in tiny_run.SENTENCES] * 10, 300)
    )
    assert any_vocabulary.load(path).size == tiny_run.subwords().size
    return path


def test_what_changes_nothing_that_is_learnt_may_change(run):
    hparams = dataclasses.replace(
        run.hparams, max_tokens_per_device=64, beam_size=9, alpha=1.0, averaged_checkpoints=3
    )
    assert _open(run, hparams=hparams, data_dir="elsewhere").hparams == hparams
    again = output_dir.read(run.path)
    assert (again.hparams, again.run.data_dir) == (hparams, "elsewhere")
    assert again.run.versions == run.run.versions


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"hparams": dataclasses.replace(tiny_run.HPARAMS, dropout=0.5)}, "dropout 0.1 -> 0.5"),
        ({"problem": "toy_ende_rev"}, "problem toy_ende -> toy_ende_rev"),
        ({"random_seed": 2}, "random_seed 1 -> 2"),
        ({"data_sha256": "cdef0123456789"}, "training data ab012345 -> cdef0123"),
    ],
)
def test_another_run_is_refused_with_what_differs_and_the_way_out(run, changes, difference):
    _open(run, data_sha256="ab0123456789")
    before = [path.read_bytes() for path in sorted(run.path.glob("*.json"))]
    with pytest.raises(errors.UserError) as caught:
        _open(run, **{"data_sha256": "ab0123456789", **changes})
    assert f"({difference});" in str(caught.value)
    assert f"--warm_start_from={run.path}" in str(caught.value)
    assert [path.read_bytes() for path in sorted(run.path.glob("*.json"))] == before


def test_another_vocabulary_of_the_same_name_and_size_is_refused(run, tmp_path):
    with pytest.raises(errors.UserError, match=r"\(vocabulary \w+ -> \w+\)") as caught:
        _open(run, vocabulary_path=_other_vocabulary(tmp_path))
    assert "warm_start_from" not in str(caught.value)  # of other tokens


def test_a_vocabulary_that_was_changed_in_the_output_dir_is_named(run, tmp_path):
    shutil.copy(_other_vocabulary(tmp_path), run.vocabulary_path)
    with pytest.raises(errors.UserError, match="is not the vocabulary that the run was trained"):
        _ = run.identity


def test_while_there_are_no_weights_everything_may_change(tmp_path):
    run = output_dir.read(tiny_run.write(tmp_path, seeds=()))
    hparams = config.HParams(d_model=64)
    changes = {"hparams": hparams, "problem": "toy_enfr", "random_seed": 9, "data_sha256": "ab"}
    _open(run, vocabulary_path=_other_vocabulary(tmp_path), **changes)
    again = output_dir.read(run.path)
    assert (again.hparams, again.run.problem, again.run.random_seed) == (hparams, "toy_enfr", 9)
    assert again.identity.vocabulary != run.run.vocabulary_sha256
    # What was averaged or the best are weights too.
    (run.path / "best").mkdir()
    (run.path / "best" / "ckpt-3.index").touch()
    with pytest.raises(errors.UserError, match="random_seed 9 -> 1"):
        _open(again, random_seed=1)


def test_a_file_is_no_output_dir(run, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(errors.UserError, match=r"--output_dir=.*file is a file: expected a folder"):
        _open(dataclasses.replace(run, path=tmp_path / "file"), vocabulary_path=run.vocabulary_path)


@pytest.mark.parametrize(
    "content", ["", "[]", "3", "null", "\0", "[" * 100_000, '{"problem": "x"}']
)
def test_a_damaged_run_file_is_one_line(run, content):
    (run.path / "run.json").write_text(content)
    with pytest.raises(errors.UserError, match=r"run\.json is damaged: "):
        output_dir.read(run.path)


@pytest.mark.parametrize("name", ["run.json", "hparams.json"])
def test_files_of_a_later_version_are_not_called_damaged(run, name):
    content = json.loads((run.path / name).read_text())
    (run.path / name).write_text(json.dumps({**content, "of_tomorrow": 1}))
    with pytest.raises(errors.UserError, match=rf"{name} has of_tomorrow, .* a later version"):
        output_dir.read(run.path)
