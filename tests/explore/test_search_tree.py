"""The tree of a recorded search has the translator's outputs, and says how they came."""

import pytest
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import options, translator
from t2t_lite.explore import search_tree

CHANGES = {
    "paper": {},
    "n-best": {"return_beams": 4},
    "wide": {"beam_size": 12, "return_beams": 5},
    "greedy": {"beam_size": 1},
    "strict": {"strict_ends": True, "return_beams": 3},
    "no penalty": {"alpha": 0.0, "return_beams": 4},
    "negative penalty": {"alpha": -1.0, "return_beams": 2},
    "of fairseq": {"length_penalty": "power", "alpha": 1.0, "early_stop": True, "return_beams": 2}
    | {"strict_ends": True, "min_length": 2},
    "n-best and an early end": {"early_stop": True, "return_beams": 4},
    "minimum length": {"min_length": 6, "return_beams": 2},
    "prefix": {"prefix": "two dogs", "return_beams": 2},
    "long": {"extra_length": 40, "return_beams": 4, "alpha": 2.0},
}


def _check(model):
    """Compare trees with outputs; return the last tree."""
    traced = search_tree.RecordedSearch(model)
    finished = {search_tree.FINISHED: True, search_tree.LIVES: False}
    translations = model.translate(tiny_run.SENTENCES[:4])
    trees = [traced.run(list(translation.source_ids)) for translation in translations]
    for translation, tree in zip(translations, trees, strict=True):
        found = [tree.extensions[number] for number in tree.hypotheses]
        outputs = translation.hypotheses
        assert [tuple(tree.ids(e.number)) for e in found] == [output.ids for output in outputs]
        assert [e.score for e in found] == pytest.approx(
            [output.score for output in outputs],
            rel=1e-5,  # float32 sums of up to 50 logarithms
        )
        assert [finished[e.fate] for e in found] == [output.finished for output in outputs]
    return trees[-1]


def _translator(models=None, task=None, **changes):
    decode_options = options.for_model(tiny_run.HPARAMS, **changes)
    return translator.Translator(
        models or tiny_run.model(), task or tiny_run.task(), decode_options
    )


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_it_finds_what_the_search_finds(changes):
    _check(_translator(**changes))


def test_an_ensembles_tree_is_its_searchs():
    _check(_translator([tiny_run.model(seed) for seed in (1, 2)], return_beams=4))


def test_it_finds_the_trees_that_the_search_finds():
    task = tiny_run.tree_task()
    model = tiny_run.model(vocab_size=task.vocabulary.size)
    _check(_translator(model, task, beam_size=5, return_beams=3))


def test_fates_add_up():
    tree = _check(_translator(return_beams=2))
    steps = {}
    for extension in tree.extensions:
        steps.setdefault(extension.step, []).append(extension)
        if extension.parent is not None:
            parent = tree.extensions[extension.parent]
            assert (parent.step, parent.fate) == (extension.step - 1, search_tree.LIVES)
            assert extension.log_probability <= parent.log_probability
    for extensions in steps.values():
        assert len(extensions) == 8  # 2 N
        assert sum(e.fate == search_tree.LIVES for e in extensions) == 4
    best = [e for e in tree.extensions if e.is_best]
    assert [e.token for e in best] == tree.ids(tree.hypotheses[0])
    fates = {e.fate for e in tree.extensions}
    assert fates >= {search_tree.LIVES, search_tree.FINISHED, search_tree.FELL_OUT}


def test_sampling_has_no_tree():
    with pytest.raises(errors.UserError, match="drawn at random"):
        search_tree.RecordedSearch(_translator(sampling=True))
