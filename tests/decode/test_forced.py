"""Scores of given outputs and their tokens, alignments, and the forms of output that show them."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.decode import beam_search, files, forced, options, translator
from t2t_lite.decode import translation as translations
from t2t_lite.model import attention
from t2t_lite.train import loss


def _translator(models, **changes):
    return translator.Translator(
        models, tiny_run.task(), options.for_model(tiny_run.HPARAMS, **changes)
    )


@pytest.mark.parametrize("seeds", [[1], [1, 2]], ids=["one model", "two models"])
def test_token_scores_sum_to_the_searchs_score(seeds):
    """The search adds probabilities step by step from its caches; the pass sees all at once."""
    model = _translator(
        [tiny_run.model(seed) for seed in seeds], return_beams=3, token_scores=True, batch_size=2
    )
    for translation in model.translate(tiny_run.SENTENCES):
        for hypothesis in translation.hypotheses:
            assert hypothesis.token_scores is not None
            assert len(hypothesis.token_scores) == len(hypothesis.ids)
            penalty = float(beam_search.length_penalty(len(hypothesis.ids), model.options))
            # a sum of up to 30 float32 logarithms
            assert sum(hypothesis.token_scores) / penalty == pytest.approx(
                hypothesis.score, abs=1e-4
            )
            assert hypothesis.alignment is None


def test_alignment_is_the_largest_mean_weight():
    model = _translator(tiny_run.model(), alignments=True)
    (translation,) = model.translate([tiny_run.SENTENCES[2]])
    with attention.recording() as attended:
        model.models[0](tf.constant([translation.source_ids]), tf.constant([translation.ids]))
    weights = attended["decoder_0/cross_attention"].numpy()[0].mean(axis=0)
    (hypothesis,) = translation.hypotheses
    assert hypothesis.alignment == tuple(weights.argmax(axis=1).tolist())
    assert len(set(hypothesis.alignment or ())) > 1
    assert hypothesis.token_scores is None


def test_the_last_layer_aligns():
    model = tiny_run.model(hparams=dataclasses.replace(tiny_run.HPARAMS, num_decoder_layers=3))
    ids, targets = tf.constant([[5, 6, 7, 8, 1]]), tf.constant([[9, 10, 11, 1]])
    with attention.recording() as attended:
        model(ids, targets)
    weights = [attended[f"decoder_{i}/cross_attention"].numpy().mean(1) for i in range(3)]
    found = forced.run([model], ids, targets).sources.numpy().tolist()
    assert found == weights[2].argmax(2).tolist() != weights[1].argmax(2).tolist()


def test_details_change_no_output():
    plain = _translator(tiny_run.model()).translate([*tiny_run.SENTENCES, ""])
    told = _translator(tiny_run.model(), token_scores=True, alignments=True)
    for one, other in zip(plain, told.translate([*tiny_run.SENTENCES, ""])):
        assert (one.ids, one.score, one.text) == (other.ids, other.score, other.text)
        assert len(other.hypotheses[0].token_scores or ()) == len(one.ids)


def test_a_json_line_holds_what_was_asked_for():
    model = _translator(
        tiny_run.model(), token_scores=True, alignments=True, return_beams=2, max_source_length=4
    )
    (translation,) = model.translate(["a dog runs in the park"])
    found = json.loads(translations.json_line(translation, model.vocabulary))
    assert found["text"] == translation.text
    assert found["source_truncated"] is True
    assert found["finished"] is translation.finished
    assert len(found["tokens"]) == len(found["token_scores"]) == len(found["alignment"])
    assert len(found["source_tokens"]) == 4
    assert max(found["alignment"]) < 4
    assert [each["score"] for each in found["hypotheses"]] == [
        pytest.approx(each.score, abs=1e-6) for each in translation.hypotheses
    ]
    assert json.loads(translations.json_line(translator.BLANK, model.vocabulary))["text"] == ""


def test_a_moses_list_has_a_line_for_each_hypothesis(tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("a dog runs\n\nhe sleeps\n")
    model = _translator(tiny_run.model(), return_beams=2)
    files.decode_file(model, source, target, form="moses")
    fields = [line.split(" ||| ") for line in target.read_text().splitlines()]
    expected = model.translate(["a dog runs", "", "he sleeps"])
    assert [int(number) for number, *_ in fields] == [0, 0, 1, 2, 2]
    scores = [float(score) for *_, score in fields]
    assert scores == [
        pytest.approx(h.score, abs=1e-6) for each in expected for h in each.hypotheses
    ]
    hostile = translator.Translation(
        hypotheses=(translator.Hypothesis(text="a ||| b\nc", score=0, ids=(5, 1), finished=True),)
    )
    assert translations.moses(hostile, 7, model.vocabulary) == "7 ||| a | | | b c ||| 0.000000"


def test_a_moses_list_has_scores_and_links_of_words():
    vocabulary = tiny_run.subwords()
    ids, source_ids = ([*vocabulary.encode(text), 1] for text in ("two zebras run", "a dog runs"))
    starts = [vocabulary.pieces[token].startswith("\u2581") for token in ids[:-1]]
    words = [sum(starts[1 : place + 1]) for place in range(len(starts))]  # of each token
    counts = [words.count(word) for word in range(3)]
    assert counts[1] > 1  # "zebras" is several tokens
    # "two" -> "a"; of "zebras" the first token -> "a", others -> "runs"; "run" -> the end.
    last, end = len(source_ids) - 2, len(source_ids) - 1
    places = [0] * (counts[0] + 1) + [last] * (counts[1] - 1) + [end] * (counts[2] + 1)
    hypothesis = translator.Hypothesis(
        text="two zebras run",
        score=-1.5,
        finished=True,
        ids=tuple(ids),
        token_scores=(-0.25,) * len(ids),
        alignment=tuple(places),
    )
    scores = " ".join(f"{-0.25 * count:.6f}" for count in counts)
    found = translator.Translation(hypotheses=(hypothesis,), source_ids=tuple(source_ids))
    assert translations.moses(found, 3, vocabulary, token_scores=True, alignments=True) == (
        f"3 ||| two zebras run ||| WordScores= {scores} ||| -1.500000 ||| 0-0 0-1 2-1"
    )


def test_padding_changes_nothing():
    model = _translator(tiny_run.model(), token_scores=True, alignments=True)
    together = model.translate(tiny_run.SENTENCES)
    for text, translation in zip(tiny_run.SENTENCES, together):
        one, alone = translation.hypotheses[0], model.translate([text])[0].hypotheses[0]
        assert one.token_scores == pytest.approx(alone.token_scores, abs=1e-5)
        assert one.alignment == alone.alignment


INPUTS, TARGETS = tiny_run.SENTENCES, ["zwei", "hund a", "", "a longer one than the rest", "so"]


def test_scores_agree_with_the_training_loss():
    model = _translator(tiny_run.model(), batch_size=2)
    scores = model.score(INPUTS, TARGETS)
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


def test_an_ensemble_has_the_mean_probability_of_each_token():
    one, other = tiny_run.model(1), tiny_run.model(2)
    ensemble = _translator([one, other])
    [score] = ensemble.score(["a dog"], [""])  # EOS alone
    inputs = tf.constant([[*tiny_run.subwords().encode("a dog"), 1]])
    probabilities = [
        float(tf.nn.softmax(m(inputs, tf.constant([[1]])))[0, 0, 1]) for m in (one, other)
    ]
    assert score.log_probability == pytest.approx(np.log(np.mean(probabilities)), abs=1e-5)
    assert score.loss == -score.log_probability
