"""The export, loaded without our code, against the Translator that it was made of."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite.decode import translator
from t2t_lite.serving import signatures as served

TEXTS = [*tiny_run.SENTENCES, "zebra", "x", "the park", "two dogs run " * 8]
# Sums in float32 in another order.
SCORE = 2e-5


def _same(found, place, expected):
    assert found["outputs"][place].decode() == expected.text
    assert found["scores"][place] == pytest.approx(expected.score, abs=SCORE)
    assert found["truncated"][place] == expected.truncated
    assert found["finished"][place] == expected.finished


def _call(signatures, texts, name="serving_default"):
    found = signatures[name](inputs=tf.constant(texts, tf.string))
    return {key: tensor.numpy() for key, tensor in found.items()}


def test_answers_are_the_translators_and_bad_items_harm_no_other(signatures, model, hostile):
    texts = [text.encode() for text in TEXTS]
    for place, bad in enumerate(hostile.values()):
        texts.insert(2 * place, bad)
    found = _call(signatures, texts)
    for place, text in enumerate(texts):
        readable = text.decode("utf-8", "replace")
        _same(found, place, model.translate([readable])[0])
        found["outputs"][place].decode()  # is UTF-8: REST could not say anything else
    assert len(set(found["outputs"])) > 4
    assert 0 < sum(found["finished"]) < len(texts)
    cut = [found["truncated"][texts.index(t)] for name, t in hostile.items() if "100,000" in name]
    assert cut == [True, True]
    blank = _call(signatures, [hostile["empty"], hostile["spaces"]])
    assert blank["outputs"].tolist() == [b"", b""]


@pytest.mark.parametrize("name", ["serving_default", "nbest", "score", "tokenize", "from_ids"])
def test_empty_batch(signatures, name):
    inputs = signatures[name].structured_input_signature[1]
    found = signatures[name](**{key: tf.constant([], tf.string) for key in inputs})
    for tensor in found.values():
        assert tensor.shape[0] == 0


def test_nbest_is_the_translators(signatures, run_dir, hostile):
    model = translator.Translator.from_output_dir(
        run_dir, max_source_length=100, beam_size=4, return_beams=4
    )
    found = _call(signatures, [*TEXTS, hostile["100,000 characters"].decode(), ""], "nbest")
    assert found["outputs"].shape == found["scores"].shape == (len(TEXTS) + 2, 4)
    for place, expected in enumerate(model.translate(TEXTS)):
        texts = [hypothesis.text for hypothesis in expected.hypotheses]
        scores = [hypothesis.score for hypothesis in expected.hypotheses]
        assert [text.decode() for text in found["outputs"][place]] == texts
        assert found["finished"][place].tolist() == [h.finished for h in expected.hypotheses]
        np.testing.assert_allclose(found["scores"][place], scores, atol=SCORE)
    assert found["outputs"][-1].tolist() == [b""] * 4
    assert found["truncated"].tolist()[-2:] == [True, False]


def test_score_is_the_translators(signatures, model, hostile):
    long = hostile["100,000 letters"].decode()
    inputs, targets = [*TEXTS, "", long, "a dog"], [*reversed(TEXTS), "", "a dog", long]
    expected = model.score(inputs, targets)
    found = signatures["score"](inputs=tf.constant(inputs), targets=tf.constant(targets))
    found = {key: tensor.numpy() for key, tensor in found.items()}
    for place, score in enumerate(expected):
        got = found["log_probabilities"][place]
        assert got == pytest.approx(score.log_probability, rel=1e-5, abs=SCORE)
        assert found["lengths"][place] == score.num_tokens
    assert found["truncated"].tolist() == [False] * (len(TEXTS) + 1) + [True, False]
    assert found["target_truncated"].tolist() == [False] * (len(TEXTS) + 1) + [False, True]


def test_ids_go_the_same_way_as_text(signatures, model):
    text = _call(signatures, TEXTS)
    tokens = _call(signatures, TEXTS, "tokenize")["ids"]
    without_eos = [row.removesuffix(b" 1") for row in tokens]
    for rows in (tokens, without_eos):
        found = signatures["from_ids"](ids=tf.constant(rows))
        ids = [list(map(int, row.split())) for row in found["ids"].numpy()]
        assert [model.vocabulary.decode(row).encode() for row in ids] == text["outputs"].tolist()
        np.testing.assert_allclose(found["scores"].numpy(), text["scores"], atol=SCORE)
        for name in ("truncated", "finished"):
            assert found[name].numpy().tolist() == text[name].tolist()


def test_ids_that_cannot_be_read_harm_no_other(signatures):
    rows = ["5 6 1", "", "5 x", "9 " * 5000, "5 0 6", "-1", "7"]
    found = {k: v.numpy() for k, v in signatures["from_ids"](ids=tf.constant(rows)).items()}
    assert found["truncated"].tolist() == [False, False, True, True, True, True, False]
    for place, row in enumerate(rows):
        alone = signatures["from_ids"](ids=tf.constant([row]))
        assert found["ids"][place] == alone["ids"].numpy()[0]
        assert found["scores"][place] == pytest.approx(alone["scores"].numpy()[0], abs=SCORE)
    for place in (1, 2, 4, 5):
        assert (found["ids"][place], found["scores"][place]) == (b"", 0)


@pytest.mark.parametrize(
    ("checkpoints", "prefix"), [([1], "the "), ([1, 2], "")], ids=["prefix", "ensemble"]
)
def test_a_prefix_and_an_ensemble_are_the_translators(tmp_path, checkpoints, prefix):
    path = tiny_run.write(tmp_path, seeds=(1, 2))
    names = ",".join(f"{path}/ckpt-{number}" for number in checkpoints)
    model = translator.Translator.from_output_dir(path, names, prefix=prefix)
    found = served.ServingModel(model).functions()["serving_default"](tf.constant(TEXTS))
    found = {key: tensor.numpy() for key, tensor in found.items()}
    for place, expected in enumerate(model.translate(TEXTS)):
        assert expected.text.startswith(prefix)
        _same(found, place, expected)


def test_a_request_of_60_megabytes_costs_little(signatures):
    """TensorFlow Serving's own memory is not ours; this is what the graph takes."""
    status = pathlib.Path("/proc/self/status")

    def memory(name):
        (line,) = (x for x in status.read_text().splitlines() if x.startswith(f"{name}:"))
        return int(line.split()[1]) / 1024

    serve = signatures["serving_default"]
    short = serve(inputs=tf.constant(["a dog runs " * 60]))  # longer than max_source_length
    text = tf.constant([b"a dog runs " * 5_700_000])
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    except OSError as error:
        pytest.skip(f"needs /proc/self/clear_refs: {error}")
    before = memory("VmRSS")
    found = serve(inputs=text)
    assert memory("VmHWM") - before < 100  # MB; tokenizing all of it takes 1,500
    assert found["truncated"].numpy().tolist() == [True]
    assert found["outputs"].numpy().tolist() == short["outputs"].numpy().tolist()
