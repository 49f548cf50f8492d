"""Searches against the 18 decoding cases of each of tensor2tensor's two small models: the growing
search, and that of static size in a converted LiteRT model.

Ids must be exact and scores within the tolerance that the data's description suggests, wherever a
sentence's search finished in both. Where ours is defined otherwise, a test of its own says how.
"""

import functools

import golden_numbers
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decode import (
    beam_search,
    cached_decoder,
    candidates,
    litert,
    options,
    static_decoder,
)

SCORE = 5e-5


@pytest.fixture(scope="module", params=["t2t_paper", "t2t_prenorm"])
def golden(request):
    return golden_numbers.load(request.param)


@pytest.fixture(params=["growing", "litert"])
def search(request):
    """Return a search: (model, inputs, limit, **options) -> Hypotheses in NumPy."""
    return {"growing": _growing, "litert": _litert}[request.param]


def _growing(model, inputs, limit, **settings):
    found = _graph(model, **settings)(inputs, np.full(len(inputs), limit, np.int32))
    return beam_search.Hypotheses(*(tensor.numpy() for tensor in found))


@functools.cache
def _graph(model, **settings):
    """Return the compiled search: (inputs, max_lengths) -> Hypotheses."""
    decode_options = options.DecodeOptions(**settings)

    @tf.function(
        autograph=False,
        input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)],
    )
    def run(inputs, max_lengths):
        decoder = cached_decoder.of_models([model], decode_options)
        return beam_search.search(
            decoder,
            decoder.encode(inputs),
            decode_options,
            emittable=candidates.EmittableIds(61),
            max_lengths=max_lengths,
        )

    return run


def _litert(model, inputs, limit, *, beam_size, alpha, return_beams):
    run = _interpreter(model).get_signature_runner(f"beams_{beam_size}")
    given = {
        "alpha": np.array(alpha, np.float32),
        "limit": np.array([limit], np.int32),
        "num_wanted": np.array(return_beams, np.int32),
    }
    rows = [run(ids=row[None], **given) for row in inputs]  # one source at a time
    names = beam_search.Hypotheses._fields
    joined = (np.concatenate([row[name] for row in rows]) for name in names)
    return beam_search.Hypotheses(*(each[:, :return_beams] for each in joined))


@functools.cache
def _interpreter(model):
    """Return the model converted once, with a signature for each beam_size of the cases."""
    interpreter = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="needs pip install ./runtime"
    )

    def searcher(beam_size):
        def run(ids, alpha, limit, num_wanted):
            decode_options = options.DecodeOptions(beam_size=beam_size, return_beams=beam_size)
            # An input here, so that a model serves all cases.
            object.__setattr__(decode_options, "alpha", alpha)
            decoder = static_decoder.StaticDecoder(model, beam_size)
            found, _ = beam_search.search_in_room(
                decoder,
                decoder.encode(ids),
                decode_options,
                room=19,  # the largest limit of a case
                emittable=candidates.EmittableIds(61),
                max_lengths=limit,
                num_wanted=num_wanted,
            )
            return found._asdict()

        specs = [
            tf.TensorSpec([1, 9], tf.int32, "ids"),
            tf.TensorSpec([], tf.float32, "alpha"),
            tf.TensorSpec([1], tf.int32, "limit"),
            tf.TensorSpec([], tf.int32, "num_wanted"),
        ]
        return tf.function(run, input_signature=specs, autograph=False)

    functions = {f"beams_{beam_size}": searcher(beam_size) for beam_size in (1, 4, 21)}
    data = litert.of_functions(functions, model.trainable_variables)
    return interpreter.Interpreter(model_content=data)


def _run_case(golden, search, name):
    case = golden.notes["decode_cases"][name]
    inputs = golden.arrays["inputs"]
    if "row" in name:
        row = int(name.split("row")[1][0])
        inputs = inputs[row : row + 1]
    # The original's limit is the padded width + extra, the same for all sentences.
    found = search(
        golden.model,
        inputs,
        case["limit_steps"],
        beam_size=case["beam_size"],
        alpha=case["alpha"],
        return_beams=case["top_beams"],
    )
    ids, scores = (golden.arrays[f"decode/{name}/{part}"] for part in ("ids", "scores"))
    if ids.ndim == 2:
        ids, scores = ids[:, None], scores.reshape(-1, 1)
    return case, found, ids, scores


def _unpadded(ids):
    return np.trim_zeros(ids, "b").tolist()


BEAM_CASES = [
    *(f"beam4_a{alpha}_{kept}" for alpha in ("0.0", "0.6", "1.0") for kept in ("all", "top1")),
    *("beam4_a0.6_all_limit3", "beam4_a0.6_all_limit6", "beam4_a0.6_top1_limit3"),
    *(f"beam4_a0.6_all_row{row}_alone" for row in range(3)),
    *("beam4_a0.6_all_slowpath", "beam21_a0.3_all", "beam21_a0.3_top1"),
]


@pytest.mark.parametrize("name", BEAM_CASES)
def test_hypotheses_agree(golden, search, name):
    case, found, ids, scores = _run_case(golden, search, name)
    for b, stops in enumerate(case["stop"]):
        penalty = ((5 + case["limit_steps"]) / 6) ** case["alpha"]
        for k, stop in enumerate(stops):
            where = f"sentence {b}, hypothesis {k}: {stop}"
            if stop == "eos":
                assert _unpadded(found.ids[b, k]) == _unpadded(ids[b, k]), where
                assert found.scores[b, k] == pytest.approx(scores[b, k], abs=SCORE), where
                assert found.finished[b, k], where
            elif stop == "length_limit":
                # In the original nothing finished, and the score is a plain log-probability. Ours
                # is normalised like all others, and says that it is not finished.
                assert _unpadded(found.ids[b, k]) == _unpadded(ids[b, k]), where
                expected = scores[b, k] / penalty
                assert found.scores[b, k] == pytest.approx(expected, abs=SCORE), where
                assert not found.finished[b, k], where
            else:
                # The original leaves the place empty; ours holds a live hypothesis at the limit.
                assert stop == "empty_slot"
                assert found.lengths[b, k] == case["limit_steps"], where
                assert found.scores[b, k] > -1e3, where
                assert not found.finished[b, k], where


@pytest.mark.parametrize("name", ["greedy", "greedy_limit3"])
def test_one_beam_is_the_originals_greedy_search(golden, search, name):
    # Its greedy search goes on after EOS and does not normalise: ids are cut and scores scaled.
    case, found, ids, scores = _run_case(golden, search, name)
    for b, lengths in enumerate(case["lengths_incl_eos"]):
        length = lengths[0]
        assert _unpadded(found.ids[b, 0]) == ids[b, 0, :length].tolist()
        penalty = ((5 + length) / 6) ** case["alpha"]
        assert found.scores[b, 0] * penalty == pytest.approx(scores[b, 0], abs=SCORE)
        assert found.finished[b, 0] == (case["stop"][b][0] == "eos")


def test_beam_search_with_one_beam_is_greedy_here_alone(golden, search):
    # The original's beam search with one beam also finishes at an EOS in second place, so its
    # result is none of greedy's; ours is.
    _, found, ids, _ = _run_case(golden, search, "beam1_a0.6_beamsearch")
    _, greedy, *_ = _run_case(golden, search, "greedy")
    assert found.ids.tolist() == greedy.ids.tolist()
    assert any(_unpadded(found.ids[b, 0]) != _unpadded(ids[b, 0]) for b in range(3))
