"""What `import t2t_lite` gives."""

import importlib

import pytest
import tiny_run

import t2t_lite
from t2t_lite import config, errors, registry


def test_hparams_is_the_function_whoever_loads_the_sets_first():
    registry.load("t2t_lite.hparams")
    assert isinstance(t2t_lite.hparams("transformer_base"), config.HParams)
    sets = importlib.import_module("t2t_lite.hparams.transformer")
    assert sets.transformer_base() == t2t_lite.hparams("transformer_base")


def test_every_public_name_is_there():
    assert set(t2t_lite.__all__) <= set(dir(t2t_lite))
    for name in t2t_lite.__all__:
        assert getattr(t2t_lite, name).__doc__
    with pytest.raises(AttributeError, match="nothing"):
        _ = t2t_lite.nothing


def test_an_exports_translations_are_the_translators(run_dir, export_dir, tmp_path):
    texts = [*tiny_run.SENTENCES, ""]
    found = t2t_lite.load(export_dir).translate(texts)
    expected = t2t_lite.Translator.from_output_dir(run_dir).translate(texts)
    assert [output.text for output in found] == [translation.text for translation in expected]
    assert [output.score for output in found] == pytest.approx(
        [translation.score for translation in expected], abs=1e-4
    )
    with pytest.raises(errors.UserError, match="no version"):
        t2t_lite.load(tmp_path)
