"""The translator: options, batches, ensembles, prefixes, cuts."""

import gc
import pickle
import weakref

import numpy as np
import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import matmuls, one_process, options, translator
from t2t_lite.run import checkpoint, output_dir

TEXTS = [*tiny_run.SENTENCES, "", "zebra", " \t ", "x"]


def _options(**changes):
    return options.for_model(tiny_run.HPARAMS, **changes)


@pytest.fixture(scope="module")
def translate():
    """Return a function that translates with one model and gives each set of options one graph."""
    made = {}
    model = tiny_run.model()

    def run(texts, prefixes=None, **changes):
        key = tuple(sorted(changes.items()))
        if key not in made:
            made[key] = translator.Translator(model, tiny_run.task(), _options(**changes))
        return made[key].translate(texts, prefixes=prefixes)

    return run


def _same(one, other):
    return (one.ids, one.finished, one.truncated) == (
        other.ids,
        other.finished,
        other.truncated,
    ) and one.score == pytest.approx(other.score, abs=1e-5)


def test_results_are_in_the_order_of_the_texts(translate):
    together = translate(TEXTS)
    for text, translation in zip(TEXTS, together):
        assert _same(translation, translate([text])[0]), text
    assert len({t.ids for t in together}) > 4  # they differ, so the order is seen


def test_blank_texts_are_not_decoded(translate):
    for translation in translate(["", "  \n\u2003"]):
        assert translation == translator.BLANK
        assert (translation.text, translation.score, translation.ids) == ("", 0.0, ())


def test_limit_is_that_of_each_input(translate):
    subwords = tiny_run.subwords()
    cut_off = 0
    for text, translation in zip(TEXTS, translate(TEXTS)):
        if text.strip():
            limit = len(subwords.encode(text)) + 1 + tiny_run.HPARAMS.extra_length
            assert len(translation.ids) <= limit
            assert translation.finished == (translation.ids[-1] == 1)
            assert translation.finished or len(translation.ids) == limit
            cut_off += not translation.finished
    assert cut_off


def test_strict_ends_reach_the_search(translate):
    # Of the same beams one that is strict passes over some ends that the other takes.
    loose, strict = (translate(TEXTS, beam_size=2, strict_ends=ends) for ends in (False, True))
    assert [t.ids for t in loose] != [t.ids for t in strict]


def test_long_inputs_are_cut_and_marked(translate):
    long, short = translate([TEXTS[3], TEXTS[0]], max_source_length=8)
    assert long.truncated
    assert not short.truncated
    ids = tiny_run.subwords().encode(TEXTS[3])[:7]
    assert len(long.ids) <= 7 + 1 + tiny_run.HPARAMS.extra_length
    cut = translate([tiny_run.subwords().decode(ids)])[0]
    assert long.ids == cut.ids


def test_text_is_that_of_the_ids_without_unknown_or_padding(translate):
    for translation in translate(TEXTS, return_beams=4):
        for hypothesis in translation.hypotheses:
            assert hypothesis.text == tiny_run.subwords().decode(hypothesis.ids)
            assert not {0, 2} & set(hypothesis.ids)


def test_n_best_begin_with_the_best(translate):
    for best, several in zip(translate(TEXTS), translate(TEXTS, return_beams=4)):
        assert _same(best, several)
        assert len({h.ids for h in several.hypotheses}) == len(several.hypotheses)


def test_prefix_of_each_text_or_of_all(translate):
    prefixes = ["two ", "", "dog"]
    found = translate(TEXTS[:3], prefixes=prefixes)
    for prefix, translation in zip(prefixes, found):
        assert translation.text.startswith(prefix)
    assert _same(found[1], translate([TEXTS[1]])[0])
    assert _same(translate([TEXTS[0]], prefix="two ")[0], found[0])


def test_a_prefix_leaves_the_room_of_an_output(translate):
    prefix, options_ = "two dogs run in the park ", {"extra_length": 2, "beam_size": 1}
    num_ids = len(tiny_run.subwords().encode(prefix))
    free, continued = (
        translate(["a dog runs"], prefix=text, **options_)[0] for text in ("", prefix)
    )
    assert not free.finished
    assert len(continued.ids) <= len(free.ids) + num_ids
    assert continued.finished or len(continued.ids) == len(free.ids) + num_ids


def test_samples_depend_on_the_seed_and_the_place_alone(translate):
    settings = {"sampling": True, "return_beams": 5, "beam_size": 1}
    texts = TEXTS[:3]
    found = translate(texts, **settings)
    small_batches = translate(texts, batch_size=1, **settings)
    other_seed = translate(texts, seed=2, **settings)
    assert [t.ids for t in found] == [t.ids for t in small_batches]
    assert [t.ids for t in found] != [t.ids for t in other_seed]
    for translation in found:
        scores = [h.score for h in translation.hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({h.ids for h in translation.hypotheses}) > 1
    prefixed = translate(texts, prefixes=["two "] * 3, **settings)
    assert all(h.text.startswith("two ") for t in prefixed for h in t.hypotheses)


def test_sampling_from_one_token_is_greedy(translate):
    greedy = translate(TEXTS, beam_size=1)
    for settings in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-3}):
        for found, expected in zip(translate(TEXTS, sampling=True, **settings), greedy):
            assert _same(found, expected)


def test_several_devices_share_the_batches(translate):
    # One trace, two workers; on GPUs the names of the devices stand in the place of "".
    model = translator.Translator(
        tiny_run.model(), tiny_run.task(), _options(batch_size=2), devices=["", "CPU:0"]
    )
    for found, expected in zip(model.translate(TEXTS), translate(TEXTS)):
        assert _same(found, expected)
    indices = [[i for i, _ in batch] for batch in model.translate_batches(["x", "y z", "dog"])]
    assert sorted(len(batch) for batch in indices) == [1, 2]


def test_weights_are_read_at_every_call():
    # The trainer makes one translator and uses it at every evaluation.
    model, other = tiny_run.model(1), tiny_run.model(2)
    live = translator.Translator(model, tiny_run.task(), _options(beam_size=2))
    live.translate(TEXTS)
    for name, variable in model.named_variables().items():
        variable.assign(other.named_variables()[name])
    expected = translator.Translator(other, tiny_run.task(), _options(beam_size=2))
    for found, translation in zip(live.translate(TEXTS), expected.translate(TEXTS)):
        assert _same(found, translation)


@pytest.mark.usefixtures("integers")
def test_products_of_integers_give_nearly_the_same_scores(translate, monkeypatch):
    monkeypatch.setattr(matmuls, "_LARGE", 1)  # the test's model has only small kernels
    rounded = translator.Translator(
        tiny_run.model(),
        tiny_run.task(),
        _options(beam_size=2, precision="mixed_int8"),
        frozen=True,
    )
    results, expected = rounded.translate(TEXTS), translate(TEXTS, beam_size=2)
    differences = [abs(one.score - other.score) for one, other in zip(results, expected)]
    # A hundredth in every product; a random model's second output is often nearly as good.
    assert 0 < np.median([d for d, text in zip(differences, TEXTS) if text.strip()]) < 0.1


def test_products_of_integers_want_a_processor_that_has_them(monkeypatch):
    monkeypatch.setattr(matmuls, "has_integers", lambda: False)
    with pytest.raises(errors.UserError, match="mixed_int8 needs a processor"):
        translator.Translator(
            tiny_run.model(), tiny_run.task(), _options(precision="mixed_int8"), frozen=True
        )


def test_weights_that_are_no_numbers_are_one_clear_error():
    model = tiny_run.model()
    embedding = model.named_variables()["embedding/matrix"]
    embedding.assign(np.full(embedding.shape, np.nan))
    made = translator.Translator(model, tiny_run.task(), _options())
    with pytest.raises(errors.UserError, match="gives no probabilities"):
        made.translate(TEXTS[:2])


def test_from_output_dir(tmp_path, translate):
    path = tiny_run.write(tmp_path, seeds=(2, 1))
    newest = translator.Translator.from_output_dir(path)
    for found, expected in zip(newest.translate(TEXTS), translate(TEXTS)):
        assert _same(found, expected)
    named = translator.Translator.from_output_dir(path, f"{path}/ckpt-2,{path}/ckpt-1", alpha=0.0)
    assert len(named.models) == 2
    assert named.options == _options(alpha=0.0)
    assert named.name != newest.name
    weights, identity = checkpoint.read_weights(f"{path}/ckpt-1"), output_dir.read(path).identity
    checkpoint.write_weights(f"{path}/ckpt-2", weights, identity)
    written_anew = translator.Translator.from_output_dir(path)
    assert written_anew.name == newest.name
    assert written_anew.fingerprint != newest.fingerprint


@pytest.mark.parametrize("checkpoints", ["ckpt-1", "ckpt-1,ckpt-2"])
def test_mixed_precision_keeps_the_weights_and_nearly_the_scores(tmp_path, checkpoints):
    path = tiny_run.write(tmp_path, seeds=(1, 2))
    prefixes = ",".join(f"{path}/{name}" for name in checkpoints.split(","))
    exact, mixed = (
        translator.Translator.from_output_dir(path, prefixes, precision=precision)
        for precision in ("float32", "mixed")
    )
    for one, other in zip(exact.models, mixed.models):
        for name, variable in one.named_variables().items():
            np.testing.assert_array_equal(variable, other.named_variables()[name])
    pairs = list(zip(mixed.translate(TEXTS), exact.translate(TEXTS)))
    assert sum(found.text == expected.text for found, expected in pairs) >= len(TEXTS) - 1
    differences = [abs(found.score - expected.score) for found, expected in pairs]
    assert 0 < np.median(differences) < 0.05


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda model: model.translate("a dog"), "expected a list of texts, got one text"),
        (lambda model: model.translate(TEXTS[:2], prefixes="two"), "a list of prefixes, got one"),
        (lambda model: model.translate(TEXTS[:2], prefixes=["two"]), "expected 2 prefixes, .* 1$"),
        (lambda model: model.translate(TEXTS[:1], prefixes=["two"] * 2), "expected 1 prefixes"),
        (lambda model: model.score(TEXTS[:1], "he"), "expected a list of targets, got one text"),
        (lambda model: model.score(TEXTS[:1], TEXTS[:2]), "expected 1 targets, .* got 2"),
        (lambda model: pickle.dumps(model), "cannot be pickled: load it in each process"),
    ],
)
def test_wrong_lists_and_pickling_are_one_clear_error(call, says):
    model = translator.Translator(tiny_run.model(), tiny_run.task(), _options())
    with pytest.raises((TypeError, errors.UserError), match=says):
        call(model)


def test_a_forked_process_is_told_not_to_use_the_model(monkeypatch):
    model = translator.Translator(tiny_run.model(), tiny_run.task(), _options())
    monkeypatch.setattr(one_process.os, "getpid", lambda: -1)
    for call in (lambda: model.translate(TEXTS), lambda: model.score(TEXTS, TEXTS)):
        with pytest.raises(errors.UserError, match="hangs after a fork"):
            call()


def test_a_model_that_is_dropped_leaves_no_graph_behind(tmp_path):
    path, graphs = tiny_run.write(tmp_path), []
    for _ in range(2):
        model = translator.Translator.from_output_dir(path, token_scores=True)
        model.translate(TEXTS[:2])
        model.translate(TEXTS[:1])
        model.score(TEXTS[:1], TEXTS[:1])
        for graph in (model.translate_ids, model.translate_sentence, model.score_ids):
            graphs.append(weakref.ref(graph.get_concrete_function().graph))
        del model, graph
    gc.collect()
    assert not any(graph() for graph in graphs)
