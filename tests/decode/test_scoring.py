"""Scores of given outputs agree with training's loss."""

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.decode import options, scoring, translator
from t2t_lite.train import loss


@pytest.fixture(scope="module")
def model():
    decode_options = options.for_model(tiny_run.HPARAMS, return_beams=3, batch_size=2)
    return translator.Translator(tiny_run.model(), tiny_run.task(), decode_options)


def _score(model, inputs, targets):
    found = {
        i: score for batch in scoring.Scorer(model).score(inputs, targets) for i, score in batch
    }
    return [found[i] for i in range(len(inputs))]


INPUTS, TARGETS = tiny_run.SENTENCES, ["zwei", "hund a", "", "a longer one than the rest", "so"]


def test_agrees_with_the_training_loss(model):
    scores = _score(model, INPUTS, TARGETS)
    encode = tiny_run.subwords().encode
    inputs, targets = (
        tf.constant(translator.pad([[*encode(text), 1] for text in texts]))
        for texts in (INPUTS, TARGETS)
    )
    transformer = model.models[0]
    weights = loss.token_weights(targets)
    losses = loss.smoothed_cross_entropy(
        transformer.decode(targets, transformer.encode(inputs)),
        tf.convert_to_tensor(transformer.softmax.matrix),
        targets,
        weights / tf.reduce_sum(weights),
        label_smoothing=0.1,
    )
    tokens = sum(score.num_tokens for score in scores)
    assert tokens == int(tf.reduce_sum(weights))
    mean = -sum(score.log_probability for score in scores) / tokens
    assert mean == pytest.approx(float(losses.negative_log_likelihood), rel=1e-5)


def test_agrees_with_the_search(model):
    # Random models write bytes that are no text, so ids are scored, not what they decode to.
    scorer = scoring.Scorer(model)
    encode = tiny_run.subwords().encode
    for text, translation in zip(INPUTS, model.translate(INPUTS)):
        for hypothesis in translation.hypotheses:
            inputs = translator.pad([[*encode(text), 1]])
            [total] = scorer.log_probabilities(inputs, translator.pad([hypothesis.ids])).numpy()
            penalty = ((5 + len(hypothesis.ids)) / 6) ** model.options.alpha
            assert hypothesis.score * penalty == pytest.approx(float(total), abs=1e-4)


def test_an_ensemble_has_the_mean_probability_of_each_token(model):
    one, other = tiny_run.model(1), tiny_run.model(2)
    ensemble = translator.Translator([one, other], tiny_run.task(), model.options)
    [score] = _score(ensemble, ["a dog"], [""])  # EOS alone
    inputs = tf.constant([[*tiny_run.subwords().encode("a dog"), 1]])
    probabilities = [
        float(tf.nn.softmax(m(inputs, tf.constant([[1]])))[0, 0, 1]) for m in (one, other)
    ]
    assert score.log_probability == pytest.approx(np.log(np.mean(probabilities)), abs=1e-5)
    assert score.loss == -score.log_probability
