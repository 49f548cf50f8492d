"""Blockwise parallel decoding gives what greedy decoding gives, in fewer steps."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
import tiny_run

from t2t_lite import errors
from t2t_lite.decode import blockwise, candidates, options, products, translator
from t2t_lite.model import parallel_heads

pytestmark = pytest.mark.integration  # each traces several graphs

HPARAMS = dataclasses.replace(tiny_run.HPARAMS, parallel_heads=4)
VARIANTS = [
    {},
    {"pre_norm": True, "num_decoder_layers": 2},
    {"attention_window": 3},
    {"relative_bias": 2},
    {"position_encoding": "learned", "max_length": 9},
    {"embeddings": "separate", "logits_bias": True, "attention_bias": True},
]


def _model(**changes):
    return tiny_run.model(hparams=dataclasses.replace(HPARAMS, **changes))


def _translator(model, **changes):
    decode_options = options.for_model(model.hparams, beam_size=1, **changes)
    return translator.Translator(model, tiny_run.task(), decode_options)


def _inputs(num_sentences=24, seed=0):
    """Return random ids [B, S] of different lengths."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(3, tiny_run.subwords().size, [num_sentences, 12]).astype(np.int32)
    for row, length in enumerate(rng.integers(1, 12, num_sentences)):
        ids[row, length], ids[row, length + 1 :] = 1, 0
    return tf.constant(ids)


class _Remembering(blockwise.BlockDecoder):
    """Proposes what it was shown to follow upon the decoder's output.

    Args:
      model, decode_options: of a BlockDecoder.
      inputs, outputs: ids [B, S] and [B, T] of what is remembered.
      wrong: share of the proposals that are made something else.
    """

    def __init__(self, model, decode_options, *, inputs, outputs, wrong=0.0):
        super().__init__(model, decode_options)
        states = model.decode(outputs, model.encode(inputs))
        self.known = tf.reshape(states, [-1, states.shape[-1]])
        size = self.block_size
        padded = np.pad(outputs, [(0, 0), (0, size)])
        following = [padded[:, i : i + outputs.shape[1]] for i in range(1, size)]
        self.following = np.stack(following, axis=2)  # [B, T, k - 1]
        rng = np.random.default_rng(5)
        self.following[rng.random(self.following.shape) < wrong] = 7

    def first_proposals(self, state):
        return tf.zeros([tf.shape(state.slots)[0], self.block_size - 1], tf.int32)

    def proposals(self, outputs, ids, state):
        distances = tf.norm(outputs[:, None] - self.known, axis=2)
        following = tf.constant(self.following.reshape([-1, self.block_size - 1]))
        return tf.gather(following, tf.argmin(distances, axis=1))

    def num_steps(self, row, output):
        """Return in how many steps the output of a sentence is made."""
        length, steps = 1, 1
        while length < len(output):
            proposed = self.following[row, length - 1]
            accepted = 0
            while (
                accepted < self.block_size - 1
                and length + accepted < len(output)
                and proposed[accepted] == output[length + accepted]
            ):
                accepted += 1
            length, steps = min(length + accepted + 1, len(output)), steps + 1
        return steps


def _run(model, inputs, *, wrong=None, prefix_ids=None, remembered=None, **changes):
    """Decode as a translator does, with its heads or with proposals that are partly right."""
    decode_options = options.for_model(model.hparams, beam_size=1, parallel_heads=4, **changes)
    if wrong is None:
        decoder = blockwise.BlockDecoder(model, decode_options)
    else:
        decoder = _Remembering(
            model, decode_options, inputs=inputs, outputs=remembered, wrong=wrong
        )
    max_lengths = tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32) + 8
    if prefix_ids is not None:
        max_lengths += tf.math.count_nonzero(prefix_ids, axis=1, dtype=tf.int32)

    @functools.partial(tf.function, autograph=False)
    def run():
        return blockwise.search(
            decoder,
            inputs,
            decode_options,
            emittable=candidates.EmittableIds(model.vocab_size, forbidden=(0, 2)),
            max_lengths=max_lengths,
            prefix_ids=prefix_ids,
        )

    return decoder, run()


def _equal(found, expected):
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    np.testing.assert_array_equal(found.finished, expected.finished)
    # Sums of up to 20 logarithms of about 5, in another order.
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-4)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_outputs_are_those_of_greedy_decoding(changes):
    model, inputs = _model(**changes), _inputs()
    greedy = _translator(model).translate_ids(inputs)
    lengths = greedy.lengths.numpy()[:, 0]
    if not changes:  # some of these models repeat one token
        assert len(set(lengths)) > 4
        assert 0 < np.count_nonzero(greedy.finished) < len(lengths)
    for wrong in (None, 0.3):
        decoder, (found, steps) = _run(
            model, inputs, wrong=wrong, remembered=greedy.ids.numpy()[:, 0]
        )
        _equal(found, greedy)
        if isinstance(decoder, _Remembering):
            expected = [
                decoder.num_steps(row, output[:length])
                for row, (output, length) in enumerate(zip(greedy.ids.numpy()[:, 0], lengths))
            ]
            assert steps.numpy().tolist() == expected
            assert np.mean(expected) < np.mean(lengths)


def test_right_proposals_are_all_taken():
    model, inputs = _model(), _inputs()
    greedy = _translator(model).translate_ids(inputs)
    _, (found, steps) = _run(model, inputs, wrong=0.0, remembered=greedy.ids.numpy()[:, 0])
    _equal(found, greedy)
    # One token of the first step, which has no proposals, then four in each.
    np.testing.assert_array_equal(steps, 1 + -(-(greedy.lengths[:, 0] - 1) // 4))


def test_outputs_do_not_depend_on_the_batch():
    model, inputs = _model(), _inputs(6)
    together = _translator(model, parallel_heads=4).translate_ids(inputs)
    one_by_one = _translator(model, parallel_heads=4)
    for row in range(6):
        alone = one_by_one.translate_ids(inputs[row : row + 1])
        length = int(alone.lengths[0, 0])
        assert length == together.lengths[row, 0]
        np.testing.assert_array_equal(alone.ids[0, 0], together.ids[row, 0, :length])


@pytest.mark.parametrize("precision", ["mixed", "mixed_int8"])
def test_rounded_products_choose_as_greedy_decoding_does(precision, request):
    """Integers are those of a row alone; what bfloat16 sums in another order is the same here."""
    if precision == "mixed_int8":
        request.getfixturevalue("integers")
    model, inputs = _model(), _inputs()
    greedy = translator.Translator(
        model,
        tiny_run.task(),
        options.for_model(model.hparams, beam_size=1, precision=precision),
        frozen=True,
    ).translate_ids(inputs)
    _, (found, _) = _run(
        model, inputs, wrong=0.3, remembered=greedy.ids.numpy()[:, 0], precision=precision
    )
    np.testing.assert_array_equal(found.ids, greedy.ids)


def test_guesses_are_those_of_the_models_heads():
    """Prepared weights, one position a sentence: as the layer that is trained."""
    for changes in (
        {},
        {"attention_bias": True, "logits_bias": True},
        {"attention_function": "dot"},
    ):
        model, inputs = _model(**changes), _inputs(8)
        tf.random.set_seed(3)
        for weight in model.parallel_heads.trainable_variables:  # biases too are something
            weight.assign_add(tf.random.normal(weight.shape, stddev=0.1))
        decode_options = options.for_model(model.hparams, beam_size=1, parallel_heads=4)
        states, ids = tf.random.normal([8, 1, model.hparams.d_model]), tf.range(5, 13)
        encoded = model.encode(inputs)
        keys_values = model.parallel_heads.cross_attention.keys_values(encoded.states)
        memory = parallel_heads.Memory(*keys_values, encoded.mask)
        start = tf.tile(model.parallel_heads.start[None, None], [8, 1, 1])
        for decoder_states, decoder_ids in ((states, ids), (start, tf.zeros([8], tf.int32))):
            guessed = model.guesses(decoder_states, decoder_ids[:, None], memory)
            expected = tf.argmax(model.logits(guessed)[:, 0], axis=2)
            for rows in (slice(None), slice(3, 4)):  # one sentence has a shorter way
                decoder = blockwise.BlockDecoder(model, decode_options)
                state = decoder.encode(inputs[rows])
                if decoder_ids is ids:
                    found = decoder.proposals(decoder_states[rows, 0], ids[rows], state)
                else:
                    found = decoder.first_proposals(state)
                np.testing.assert_array_equal(found, expected[rows])


def test_what_is_portable_guesses_without_integers(monkeypatch):
    monkeypatch.setattr(products, "_LARGE", 1)  # the test's model has only small kernels
    monkeypatch.setattr(products, "has_integers", lambda: True)
    model = _model()
    decode_options = options.for_model(model.hparams, beam_size=1, parallel_heads=4)
    for portable, kind in ((False, products.Int8Product), (True, products.FloatProduct)):
        decoder = blockwise.BlockDecoder(model, decode_options, portable=portable)
        assert isinstance(decoder._guesser.softmax, kind)


def test_a_prefix_is_what_outputs_begin_with():
    model, inputs = _model(), _inputs(8)
    lengths = [0, 1, 2, 3, 4, 5, 5, 5]
    prefixes = np.random.default_rng(2).integers(3, 300, [8, 5]).astype(np.int32)
    prefixes[np.arange(5) >= np.array(lengths)[:, None]] = 0
    prefixes = tf.constant(prefixes)
    greedy = _translator(model).continue_ids(inputs, prefixes)
    for wrong in (None, 0.3):
        _, (found, _) = _run(
            model, inputs, wrong=wrong, remembered=greedy.ids.numpy()[:, 0], prefix_ids=prefixes
        )
        _equal(found, greedy)


def test_what_is_close_enough_is_accepted():
    """Each output token is the first proposal, as far as it is among the likeliest, or close."""
    model, inputs = _model(), _inputs(8)
    greedy = _translator(model).translate_ids(inputs)
    for changes in ({"accept_top": 100}, {"accept_distance": 12.0}):
        _, (found, _) = _run(
            model, inputs, wrong=0.3, remembered=greedy.ids.numpy()[:, 0], **changes
        )
        assert (found.ids.shape != greedy.ids.shape) or (found.ids != greedy.ids).numpy().any()
        lengths = found.lengths[:, 0].numpy()
        log_probabilities = tf.nn.log_softmax(model(inputs, found.ids[:, 0])).numpy()
        log_probabilities[:, :, [0, 2]] = -1e9
        log_probabilities = log_probabilities[:, :, : model.vocab_size]
        for row, length in enumerate(lengths):
            total = 0.0
            for place, token in enumerate(found.ids[row, 0, :length].numpy()):
                likely = log_probabilities[row, place]
                total += likely[token]
                if "accept_top" in changes:
                    assert (likely > likely[token]).sum() < 100
                else:
                    assert likely.max() - likely[token] < 12.0 + 1e-4
            penalty = ((5 + length) / 6) ** model.hparams.alpha
            assert float(found.scores[row, 0]) == pytest.approx(total / penalty, abs=1e-3)


def test_a_model_needs_as_many_heads():
    texts = tiny_run.SENTENCES
    for model, expected in (
        (_model(), "parallel_heads=5: the model has 4 parallel heads"),
        (tiny_run.model(), "the model has no parallel heads; train them with --warm_start_from"),
    ):
        with pytest.raises(errors.UserError, match=expected):
            _translator(model, parallel_heads=5).translate(texts)
    with pytest.raises(errors.UserError, match="for one checkpoint, not for an ensemble"):
        _translator_of([_model(), _model()])
    # fewer than there are do
    expected = [t.ids for t in _translator(_model()).translate(texts)]
    assert [t.ids for t in _translator(_model(), parallel_heads=2).translate(texts)] == expected


def _translator_of(models):
    decode_options = options.for_model(HPARAMS, beam_size=1, parallel_heads=4)
    return translator.Translator(models, tiny_run.task(), decode_options)
