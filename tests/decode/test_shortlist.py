"""Shortlists: fewer columns of the softmax, and what each sentence gets of them."""

import dataclasses
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import candidates, files, options, shortlist, translator
from t2t_lite.explore import search_tree
from t2t_lite.serving import export
from t2t_lite.text import t2t_vocabulary

TEXTS = [*tiny_run.SENTENCES, "zebra", "x"]
EMITTABLE = candidates.EmittableIds(tiny_run.subwords().size, forbidden=(0, 2))
ALWAYS = (5, 6)
ALL_IDS = range(3, tiny_run.subwords().size)


def _pieces(ids):
    return " ".join(tiny_run.subwords().piece(token) for token in ids)


def _write(path, always=(), rows=None):
    """Write a shortlist of ids."""
    lines = [f"\t{_pieces(always)}"]
    lines += [f"{_pieces([source])}\t{_pieces(ids)}" for source, ids in (rows or {}).items()]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


def _ids(text):
    return tiny_run.subwords().encode(text)


def _every(path):
    """Write a shortlist in which source id i may become 40 ids that depend on it; return both."""
    rows = {i: [3 + (7 * i + k) % len(ALL_IDS) for k in range(40)] for i in ALL_IDS}
    return rows, _write(path, ALWAYS, rows)


# No rows beyond the vocabulary's: their columns take part in a softmax of everything only.
HPARAMS = dataclasses.replace(tiny_run.HPARAMS, vocab_multiple=4)


def _translator(**changes):
    decode_options = options.for_model(HPARAMS, **changes)
    model = tiny_run.model(hparams=HPARAMS)
    return translator.Translator(model, tiny_run.task(), decode_options, frozen=True, name="a")


def _assert_same(found, expected, tolerance=1e-5):
    for one, other in zip(found, expected, strict=True):
        for mine, theirs in zip(one.hypotheses, other.hypotheses, strict=True):
            assert (mine.ids, mine.finished) == (theirs.ids, theirs.finished)
            assert mine.score == pytest.approx(theirs.score, abs=tolerance)


@pytest.mark.parametrize(
    "changes",
    [
        {"return_beams": 4},
        {"beam_size": 1},
        {"strict_ends": True, "min_length": 4},
        {"prefix": "a dog", "return_beams": 2},
        {"sampling": True, "return_beams": 3, "top_k": 5},
        {"sampling": True, "top_p": 0.8},
        {"precision": "mixed"},
        {"precision": "bfloat16"},
    ],
    ids=str,
)
def test_the_whole_vocabulary_is_as_none(changes, tmp_path):
    path = _write(tmp_path / "all", ALL_IDS)
    expected = _translator(**changes).translate(TEXTS)
    _assert_same(_translator(shortlist=path, **changes).translate(TEXTS), expected)


def test_one_sentence_has_a_trace_of_its_own(tmp_path):
    found = _translator(shortlist=_write(tmp_path / "all", ALL_IDS)).translate([TEXTS[0]])
    _assert_same(found, _translator().translate([TEXTS[0]]))


def test_outputs_hold_only_what_their_own_sentence_lists(tmp_path):
    rows, path = _every(tmp_path / "some")
    changed = 0
    model = _translator(shortlist=path, return_beams=4)
    for text, found, free in zip(TEXTS, model.translate(TEXTS), _translator().translate(TEXTS)):
        listed = {1, *ALWAYS, *(token for i in _ids(text) for token in rows[i])}
        for hypothesis in found.hypotheses:
            assert set(hypothesis.ids) <= listed, text
        changed += found.ids != free.ids
    assert changed  # else the list would hold all that comes anyway


def test_what_a_sentence_gets_depends_on_no_other(tmp_path):
    _, path = _every(tmp_path / "some")
    together = _translator(shortlist=path).translate(TEXTS)
    _assert_same(_translator(shortlist=path, batch_size=2).translate(TEXTS), together)
    model = _translator(shortlist=path)
    _assert_same([model.translate([text])[0] for text in TEXTS], together)


def test_scores_are_of_probabilities_among_the_columns_of_a_sentence(tmp_path):
    rows, path = _every(tmp_path / "some")
    found = _translator(shortlist=path, alpha=0.0).translate(TEXTS[:3])
    network = tiny_run.model(hparams=HPARAMS)
    for text, translation in zip(TEXTS, found):
        # PAD and UNK, which are never emitted, have a probability as always.
        listed = {0, 1, 2, *ALWAYS, *(token for i in _ids(text) for token in rows[i])}
        ids = list(translation.ids)
        logits = network(tf.constant([[*_ids(text), 1]]), tf.constant([ids]))[0].numpy()
        sums = np.log(np.exp(logits[:, sorted(listed)]).sum(axis=1))
        expected = sum(row[token] - log_sum for row, token, log_sum in zip(logits, ids, sums))
        assert translation.score == pytest.approx(expected, abs=1e-4)


def test_a_prefix_is_listed_for_its_own_sentence(tmp_path):
    path = _write(tmp_path / "few", ALWAYS)
    prefixes = ["the park", "", "he", "", "", "", "zebra"]
    found = _translator(shortlist=path).translate(TEXTS, prefixes=prefixes)
    for translation, prefix in zip(found, prefixes):
        start = _ids(prefix)
        assert list(translation.ids[: len(start)]) == start
        assert set(translation.ids) <= {1, *ALWAYS, *start}


def test_more_beams_than_columns(tmp_path):
    # EOS, one token, and 20 candidates wanted of each step
    found = _translator(shortlist=_write(tmp_path / "one", [9]), beam_size=10).translate(TEXTS)
    for translation in found:
        assert set(translation.ids) <= {1, 9}
        assert np.isfinite(translation.score)


@pytest.mark.parametrize("num_columns", [160, 400, 1000])
def test_the_best_listed_extensions_equal_a_sort_of_everything(num_columns):
    rng = np.random.default_rng(num_columns)
    emittable = candidates.EmittableIds(5000, forbidden=(0, 2))
    assert emittable.least_columns <= 160
    listed = rng.random([6, num_columns]) < 0.3
    listed[:, 1] = True
    probabilities = rng.dirichlet(np.full(num_columns, 0.3), (6, 4)).clip(1e-30)
    probabilities = (probabilities * listed[:, None]).astype(np.float32)
    scores = rng.normal(-5, 3, (6, 4)).astype(np.float32)

    @tf.function(input_signature=[tf.TensorSpec([None, None])], autograph=False)
    def best(rows):
        may_end = tf.constant(False)
        return candidates.best(
            rows, tf.constant(scores), 8, emittable=emittable, may_end=may_end, listed=listed
        )

    found = best(probabilities.reshape(-1, num_columns))
    allowed = listed & ~np.isin(np.arange(num_columns), (0, 1, 2))
    with np.errstate(divide="ignore"):
        totals = np.log(probabilities) + scores[:, :, None]
    totals = np.where(allowed[:, None], totals, -np.inf).reshape(6, -1)
    order = np.argsort(-totals, axis=1)[:, :8]
    np.testing.assert_allclose(found.scores, np.take_along_axis(totals, order, 1), rtol=1e-5)
    np.testing.assert_array_equal(found.ids, order % num_columns)
    np.testing.assert_array_equal(found.parents, order // num_columns)


def test_what_a_line_cannot_name_may_always_come(tmp_path):
    """tensor2tensor's subtokens hold spaces, and its third id is a subtoken like any other."""
    pieces = ["<pad>_", "<EOS>_", "the_", ", _", "dog_", "cat_"]
    vocabulary = t2t_vocabulary.SubwordVocabulary("\n".join(map(repr, pieces)).encode())
    emittable = candidates.EmittableIds(vocabulary.size, forbidden=(0,))
    path = tmp_path / "list"
    path.write_text("\tdog_\ncat_\tthe_\n", "utf-8")
    listed = shortlist.Shortlist(path, vocabulary, emittable)
    columns = listed.columns(tf.constant([[2, 1], [5, 1]]))
    assert columns.ids.numpy()[:5].tolist() == [0, 1, 2, 3, 4]
    assert (columns.hidden.numpy()[:, :6] == 0).tolist() == [
        [True, True, False, True, True, False],
        [True, True, True, True, True, False],
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"\ta\n\xff\tb\n", "line 2 is not valid UTF-8"),
        (b"a b\n", "line 1: expected a source piece, a tab"),
        (b"\ta\na\tnowhere\n", "line 2: 'nowhere' is no piece of the run's vocabulary"),
        (b"\ta\n<pad>\ta\n", "line 2: '<pad>' is no piece of the run's vocabulary"),
        (b"\ta\na\tb\na\tb\n", "line 3: a second line of 'a'"),
        (b"\ta\n\tb\n", "line 2: a second line of ''"),
        (b"nowhere\ta\n", "line 1: 'nowhere' is no piece"),
        (b"a b\ta\n", "line 1: 'a b' is no piece.* single source pieces"),
        (b"a\tb  b\n", "line 1: '' is no piece"),
        (b"a\t" + b" ".join([b"b"] * 1001), "line 1: 1,001 targets of one source piece"),
    ],
)
def test_a_file_that_is_no_shortlist_of_the_vocabulary_is_refused(content, message, tmp_path):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(errors.UserError, match=message):
        shortlist.Shortlist(path, tiny_run.subwords(), EMITTABLE)


def test_there_must_be_a_file(tmp_path):
    with pytest.raises(errors.UserError, match="there is no file"):
        _translator(shortlist=str(tmp_path / "none"))
    with pytest.raises(errors.UserError, match="is a folder"):
        _translator(shortlist=str(tmp_path))


def test_what_a_shortlist_does_not_go_with_is_refused(tmp_path):
    path = _write(tmp_path / "all", ALL_IDS)
    decode_options = options.for_model(HPARAMS, shortlist=path)
    models = [tiny_run.model(seed, hparams=HPARAMS) for seed in (1, 2)]
    with pytest.raises(errors.UserError, match="not for an ensemble"):
        translator.Translator(models, tiny_run.task(), decode_options)
    with pytest.raises(errors.UserError, match="not for a parser"):
        translator.Translator(models[0], tiny_run.tree_task(), decode_options)
    with pytest.raises(errors.UserError, match="leave out shortlist"):
        options.DecodeOptions(parallel_heads=4, beam_size=1, shortlist=path)
    with pytest.raises(errors.UserError, match="leave out shortlist"):
        search_tree.TracedSearch(translator.Translator(models[0], tiny_run.task(), decode_options))


def test_resumed_decoding_notices_another_content(tmp_path):
    source, target, path = (tmp_path / name for name in ("in", "out", "list"))
    source.write_text("\n".join(TEXTS))

    def interrupt(report):
        raise InterruptedError

    _write(path, ALL_IDS)
    with pytest.raises(InterruptedError):
        files.decode_file(_translator(shortlist=str(path)), source, target, progress=interrupt)
    partial = target.with_name("out.partial")
    begun = partial.read_bytes()
    # The same content elsewhere is the same job; other content at the same place is another.
    moved = _write(tmp_path / "moved", ALL_IDS)
    partial.write_bytes(begun)
    assert files.decode_file(_translator(shortlist=moved), source, target).kept_as is None
    partial.write_bytes(begun)
    _write(path, ALWAYS)
    report = files.decode_file(_translator(shortlist=str(path)), source, target)
    assert report.kept_as is not None
    assert report.resumed == 0


@pytest.mark.parametrize("precision", ["float32", "mixed", "int8"])
def test_an_export_has_its_shortlist_inside(precision, tmp_path):
    run_dir = tiny_run.write(tmp_path, hparams=HPARAMS)
    _, path = _every(tmp_path / "some")
    export.export(run_dir, tmp_path / "export", precision=precision, shortlist=path)
    pathlib.Path(path).unlink()
    loaded = tf.saved_model.load(str(tmp_path / "export" / "1"))
    served = loaded.signatures["serving_default"]
    outputs = [text.decode() for text in served(inputs=tf.constant(TEXTS))["outputs"].numpy()]
    if precision == "int8":  # its rounded weights are another model
        assert len(set(outputs)) > 1
        return
    _every(tmp_path / "some")
    model = translator.Translator.from_output_dir(run_dir, precision=precision, shortlist=path)
    assert outputs == [found.text for found in model.translate(TEXTS)]
