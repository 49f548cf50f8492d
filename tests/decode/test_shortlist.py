"""Shortlists: fewer columns of the softmax, and what each sentence gets of them."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import candidates, files, options, shortlist, translator

TEXTS = [*tiny_run.SENTENCES, "zebra", "x"]
EMITTABLE = candidates.EmittableIds(tiny_run.subwords().size, forbidden=(0, 2))
ALL_IDS = range(3, tiny_run.subwords().size)


def _pieces(ids):
    return " ".join(tiny_run.subwords().piece(token) for token in ids)


def _write(path, always=(), rows=None):
    """Write a shortlist of ids."""
    lines = [f"\t{_pieces(always)}"]
    lines += [f"{_pieces([source])}\t{_pieces(ids)}" for source, ids in (rows or {}).items()]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


def _every(path, step=7, count=40):
    """Write a shortlist in which source id i may become 40 ids that depend on it."""
    rows = {i: [3 + (i * step + k) % len(ALL_IDS) for k in range(count)] for i in ALL_IDS}
    return _write(path, [5, 6], rows)


def _listed(rows, always, text):
    ids = tiny_run.subwords().encode(text)
    return {1, *always, *itertools.chain.from_iterable(rows[i] for i in ids)}


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
