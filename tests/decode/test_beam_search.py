"""The search against plain Python, with a toy model whose next token depends on the whole past."""

import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decode import beam_search, candidates, options

EOS = 1


class ToyModel:
    """Log-probabilities are a row of a random table, chosen by a hash of sentence and history."""

    NUM_ROWS = 101

    def __init__(self, vocab_size, *, seed=1, sharpness=1.5):
        self.vocab_size = vocab_size
        logits = np.random.default_rng(seed).normal(size=(self.NUM_ROWS, vocab_size)) * sharpness
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        self.table = logits.astype(np.float32)

    def log_probabilities(self, sentence, history):
        """Return [V] after a list of tokens."""
        row = sentence
        for token in [0, *history]:
            row = (row * 7 + token * 3 + 1) % self.NUM_ROWS
        return self.table[row]

    # The state is each sentence's number [B] and the input of every slot [B, T, N].

    def state(self, sentences, num_beams):
        numbers = tf.constant(list(sentences), tf.int32)
        return numbers, tf.zeros([tf.shape(numbers)[0], 0, num_beams], tf.int32)

    def grow(self, state, ancestry, num_steps):
        numbers, inputs = state
        return numbers, tf.pad(inputs, [[0, 0], [0, num_steps], [0, 0]])

    def step(self, ids, position, ancestry, state):
        numbers, inputs = state
        times = tf.range(tf.shape(inputs)[1])
        inputs = tf.where((times == position)[None, :, None], ids[:, None], inputs)
        slots = tf.maximum(tf.transpose(ancestry, [0, 2, 1]), 0)
        histories = tf.gather(inputs, slots, batch_dims=2)  # [B, T, N]
        rows = tf.repeat(numbers[:, None], ids.shape[1], axis=1)
        _, rows = tf.while_loop(
            lambda time, _: time <= position,
            lambda time, rows: (time + 1, (rows * 7 + histories[:, time] * 3 + 1) % self.NUM_ROWS),
            (0, rows),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, None])),
        )
        logits = tf.gather(tf.constant(self.table), tf.reshape(rows, [-1]))
        # Any shift of a row is the same distribution.
        return logits + tf.cast(position, tf.float32), (numbers, inputs)


class RoundedModel(ToyModel):
    """The same with logits rounded to halves; if it `mends`, with what they were made from."""

    def __init__(self, vocab_size, *, mends):
        super().__init__(vocab_size)
        self.mends = mends

    def step(self, ids, position, ancestry, state):
        logits, state = super().step(ids, position, ancestry, state)

        rounded = tf.round(logits * 2) / 2
        if not self.mends:
            return rounded, state
        # Products with the unit matrix are the logits themselves.
        states = tf.reshape(logits, [-1, ids.shape[1], self.vocab_size])
        return candidates.RoundedLogits(rounded, states, tf.eye(self.vocab_size)), state


def _penalty(length, alpha, length_penalty="gnmt"):
    return (length if length_penalty == "power" else (5 + length) / 6) ** alpha


def _search(model, sentences, max_lengths, *, forbidden=(0,), prefix_ids=None, **settings):
    decode_options = options.DecodeOptions(**settings)

    @tf.function(autograph=False)
    def run(max_lengths):
        return beam_search.search(
            model,
            model.state(sentences, decode_options.beam_size),
            decode_options,
            emittable=candidates.EmittableIds(model.vocab_size, forbidden=forbidden),
            max_lengths=max_lengths,
            prefix_ids=prefix_ids,
        )

    return beam_search.Hypotheses(*(x.numpy() for x in run(tf.constant(max_lengths, tf.int32))))


def _hypotheses(found, b):
    """Return [(tokens, score, finished)] of one sentence."""
    rows = zip(found.ids[b], found.scores[b], found.lengths[b], found.finished[b])
    return [(ids[:n].tolist(), s, bool(f)) for ids, s, n, f in rows if n]


def _plain_search(
    model,
    sentence,
    limit,
    *,
    beam_size,
    alpha,
    return_beams,
    strict_ends=False,
    length_penalty="gnmt",
    early_stop=False,
    no_repeat_ngram=0,
):
    """Beam search as a textbook has it, to the limit, or to beam_size ends."""
    live, finished = [([], 0.0)], []
    for _ in range(limit):
        if early_stop and len(finished) >= beam_size:
            break
        extensions = []
        for history, score in live:
            logs = model.log_probabilities(sentence, history)
            extensions += [
                ([*history, token], score + float(logs[token]))
                for token in range(1, model.vocab_size)
                if not _repeats([*history, token], no_repeat_ngram)
            ]
        extensions.sort(key=lambda extension: -extension[1])
        best = extensions[: 2 * beam_size if beam_size > 1 else 1]
        may_end = best[:beam_size] if strict_ends else best
        finished += [e for e in may_end if e[0][-1] == EOS]
        live = [e for e in best if e[0][-1] != EOS][:beam_size]
    ranked = []
    for group, is_finished in ((finished, True), (live, False)):
        scored = [
            (ids, s / _penalty(len(ids), alpha, length_penalty), is_finished) for ids, s in group
        ]
        ranked += sorted(scored, key=lambda hypothesis: -hypothesis[1])
    return ranked[:return_beams]


def _repeats(ids, size):
    sequences = list(zip(*(ids[i:] for i in range(size))))
    return bool(size) and sequences[-1:] != [] and sequences[-1] in sequences[:-1]


def _assert_same(found, expected):
    assert [h[0] for h in found] == [h[0] for h in expected]
    assert [h[2] for h in found] == [h[2] for h in expected]
    np.testing.assert_allclose([h[1] for h in found], [h[1] for h in expected], atol=1e-4)


FAIRSEQ: dict[str, Any] = {"strict_ends": True, "length_penalty": "power"}
CASES = [
    *itertools.product(
        [{}, {"strict_ends": True}], [(2, 1), (3, 3), (5, 2)], [-0.5, 0.0, 0.6, 1.0]
    ),
    *itertools.product(
        [{"no_repeat_ngram": size} for size in (1, 2, 3)], [(1, 1), (3, 2)], [0.0, 1.0]
    ),
    *itertools.product([FAIRSEQ, {**FAIRSEQ, "early_stop": True}], [(3, 1), (3, 3)], [0.0, 0.7]),
]


@pytest.mark.parametrize(("way", "beams", "alpha"), CASES)
def test_equals_a_plain_search(way, beams, alpha):
    # Stopping early, dropping sentences and slots instead of copies change nothing.
    model = ToyModel(7)
    sentences, limits = list(range(12)), [1, 2, 3, 5, 8, 9, 12, 16, 17, 20, 25, 30]
    settings = {"beam_size": beams[0], "return_beams": beams[1], "alpha": alpha, **way}
    found = _search(model, sentences, limits, **settings)
    for b, (sentence, limit) in enumerate(zip(sentences, limits)):
        expected = _plain_search(model, sentence, limit, **settings)
        _assert_same(_hypotheses(found, b), expected)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_rounded_logits_are_scored_exactly(beam_size):
    sentences, limits = list(range(40)), [10] * 40
    models = ToyModel(5), RoundedModel(5, mends=True), RoundedModel(5, mends=False)
    expected, mended, rounded = (
        _search(model, sentences, limits, beam_size=beam_size, alpha=0.0) for model in models
    )

    def same(found):
        return [_hypotheses(found, b)[0][0] == _hypotheses(expected, b)[0][0] for b in sentences]

    def error(found):
        return np.median(np.abs(found.scores - expected.scores)[same(found)])

    assert sum(same(mended)) >= 38 > sum(same(rounded))
    # Candidates have most of the sum, not all.
    assert error(mended) < error(rounded) / 3


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_wide_beam_finds_what_enumeration_finds(alpha):
    model, limit, return_beams = ToyModel(4), 5, 8
    sentences = [3, 4, 5]
    # 2 words, so at most 2^5 = 32 live hypotheses: none is ever cut.
    found = _search(
        model, sentences, [limit] * 3, beam_size=32, return_beams=return_beams, alpha=alpha
    )
    for b, sentence in enumerate(sentences):
        every = []
        for length in range(limit):
            for words in itertools.product([2, 3], repeat=length):
                ids = [*words, EOS]
                logs = (model.log_probabilities(sentence, ids[:i])[t] for i, t in enumerate(ids))
                every.append((ids, sum(map(float, logs)) / _penalty(len(ids), alpha), True))
        every.sort(key=lambda hypothesis: -hypothesis[1])
        _assert_same(_hypotheses(found, b), every[:return_beams])


def test_search_stops_when_nothing_better_can_come():
    steps = []
    model = ToyModel(7)

    def step(ids, position, ancestry, state):
        tf.py_function(lambda: steps.append(1), [], [])
        # EOS has no probability at first, and all of it after two tokens.
        eos_logit = tf.where(position >= 2, 50.0, -50.0)
        return tf.zeros([tf.size(ids), 7]) + eos_logit * tf.one_hot(EOS, 7), state

    model.step = step
    found = _search(model, [0, 1], [400, 400], beam_size=2)
    assert found.lengths.tolist() == [[3], [3]]
    assert len(steps) == 3


def test_places_that_nothing_can_fill_are_marked():
    # One word and EOS, limit 2: only [1], [2, 1] and [2, 2] exist.
    found = _search(ToyModel(3), [0], [2], beam_size=4, return_beams=4)
    assert sorted(h[0] for h in _hypotheses(found, 0)) == [[1], [2, 1], [2, 2]]
    assert found.lengths[0, 3] == 0
    assert found.scores[0, 3] == -np.inf


def test_minimum_length_blocks_the_end():
    model = ToyModel(7)
    found = _search(model, range(6), [12] * 6, beam_size=3, return_beams=3, min_length=6)
    assert found.finished.any()
    assert (found.lengths >= 6).all()


def test_prefix_is_kept_and_scored():
    model, prefix = ToyModel(7), [[5, 3, 6], [4, 0, 0], [0, 0, 0]]
    settings = {"beam_size": 3, "return_beams": 3}
    found = _search(
        model, [0, 1, 2], [10] * 3, prefix_ids=tf.constant(prefix, tf.int32), **settings
    )
    free = _search(model, [0, 1, 2], [10] * 3, **settings)
    assert (found.ids[0, :, :3] == [5, 3, 6]).all()
    assert (found.ids[1, :, :1] == [4]).all()
    assert _hypotheses(found, 2) == _hypotheses(free, 2)
    for ids, score, _ in _hypotheses(found, 0):
        logs = [float(model.log_probabilities(0, ids[:i])[t]) for i, t in enumerate(ids)]
        assert score == pytest.approx(sum(logs) / _penalty(len(ids), 0.6), abs=1e-4)
