"""A parser's export: bracketed trees from the graph, those of the Translator."""

import exports
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import translator
from t2t_lite.parsing import trees
from t2t_lite.serving import export

CUT = " ".join("\u2603" * 40)  # max_source_length comes between a space and its word
TEXTS = [CUT, *tiny_run.SENTENCES, "zebra , x", "( the park )", "two dogs  run " * 8]
OPTIONS = {"max_source_length": 60, "beam_size": 3, "alpha": 0.3, "extra_length": 60}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return tiny_run.write(tmp_path_factory.mktemp("parser"), problem="toy_parsing")


@pytest.fixture(scope="module")
def parser(run_dir, tmp_path_factory):
    """Return the Translator, the folder of its export and the signatures there."""
    path = export.export(run_dir, tmp_path_factory.mktemp("export"), **OPTIONS)
    model = translator.Translator.from_output_dir(run_dir, **OPTIONS)
    return model, path, tf.saved_model.load(str(path)).signatures


def test_a_free_search_is_not_exported(run_dir, tmp_path):
    with pytest.raises(errors.UserError, match="always trees"):
        export.export(run_dir, tmp_path, constrained=False)


def test_answers_are_the_translators_whatever_comes(parser, hostile):
    model, _, served = parser
    items = [text.encode() for text in TEXTS] + list(hostile.values())
    found = {k: v.numpy() for k, v in served["serving_default"](tf.constant(items)).items()}
    expected = model.translate([item.decode("utf-8", "replace") for item in items])
    for place, parse in enumerate(expected):
        assert found["outputs"][place].decode() == parse.text
        assert found["scores"][place] == pytest.approx(parse.score, abs=2e-4)
        if parse.text:
            trees.parse(parse.text)


def test_nbest_has_trees(parser):
    found = parser[2]["nbest"](tf.constant(TEXTS[1:4]))
    for row, text in zip(found["outputs"].numpy(), TEXTS[1:4]):
        for output in row:
            assert trees.parse(output.decode()).words() == trees.sentence(text).split(" ")


def test_least_room_is_enough(run_dir, tmp_path):
    path = export.export(run_dir, tmp_path, beam_size=4, extra_length=0)
    served = tf.saved_model.load(str(path)).signatures
    found = served["nbest"](tf.constant(["a"]))
    for output, score in zip(found["outputs"].numpy()[0], found["scores"].numpy()[0]):
        assert (output == b"") == (score < -1e8)


def test_scores_are_of_linear_forms(parser):
    model, _, served = parser
    linear = "(S (NP XX XX )NP (VP XX )VP )S"
    tree = "(S (NP (DT a) (NN dog)) (VP (VBZ runs)))"
    found = served["score"](inputs=tf.constant(["a dog runs"]), targets=tf.constant([linear]))
    of_tree, of_form = model.score(["a dog runs"] * 2, [tree, linear])
    assert of_tree.log_probability == pytest.approx(of_form.log_probability, rel=1e-6)
    assert found["log_probabilities"].numpy() == pytest.approx([of_tree.log_probability], rel=1e-4)
    assert found["lengths"].numpy().tolist() == [of_tree.num_tokens] == [len(linear.split()) + 1]


def test_the_graph_is_one_for_stock_servers(parser):
    exports.is_for_stock_servers(parser[1])
