"""Exports of models whose attention is not the base model's say what the Translator says."""

import dataclasses

import exports
import pytest
import tensorflow as tf
import tiny_run

import t2t_lite


@pytest.mark.parametrize(
    "changes",
    [{"attention_function": "additive"}, {"attention_function": "dot"}, {"attention_window": 3}],
    ids=str,
)
def test_an_export_is_the_translator(changes, tmp_path):
    hparams = dataclasses.replace(tiny_run.HPARAMS, **changes)
    run = tiny_run.write(tmp_path, hparams=hparams)
    model = t2t_lite.Translator.from_output_dir(run)
    base = t2t_lite.Translator.from_output_dir(tiny_run.write(tmp_path / "base"))
    _, expected = exports.says_the_same(run, tmp_path / "export", tiny_run.SENTENCES)
    assert [t.ids for t in expected] != [t.ids for t in base.translate(tiny_run.SENTENCES)]
    # what a search says of an output is what one pass over the whole of it says
    for translation in expected:
        ids = [tf.constant([ids]) for ids in (translation.source_ids, translation.ids)]
        total = float(tf.reduce_sum(model.force_ids(*ids).log_probabilities))
        penalty = ((5 + len(translation.ids)) / 6) ** hparams.alpha
        assert translation.score == pytest.approx(total / penalty, abs=1e-4)
