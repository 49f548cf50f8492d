"""Beam search under XLA: one program of the device, which the host only starts.

Without it the host starts some hundred operations a step, and on a GPU waits for those of them that
run in the host's memory. XLA compiles a program for each shape, so batches are padded to few.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import beam_search, engine, static_decoder
from t2t_lite.model import gradients

_SHORTEST_SOURCE, _SHORTEST_PREFIX = 16, 8


class XlaSearch:
    """Searches for the batches of a Translator.

    Raises UserError for an ensemble, a parser, sampling or 8-bit integers.
    """

    def __init__(self, model: Any):
        self._model, options = model, model.options
        others = {f"precision {options.precision}": options.precision == "mixed_int8"}
        if reason := engine.refusal("XLA searches with one model, by beams", model, others):
            raise errors.UserError(reason)
        self._decoder = static_decoder.StaticDecoder(
            model.models[0], beam_search.num_beams(options), options.matmul_dtype
        )
        search = gradients.not_needed()(self._search)
        self.search = tf.function(search, jit_compile=True, autograph=False)

    def padded(self, length: int) -> int:
        """Return the length to which sources of a length are padded."""
        return _padded_length(length, _SHORTEST_SOURCE, self._model.options.max_source_length)

    def __call__(self, inputs: np.ndarray, starts: np.ndarray) -> beam_search.Hypotheses:
        """Return the hypotheses of inputs [B, S] whose outputs begin with starts [B, P].

        A batch has as many rows as fit, or one.
        """
        options, num_rows = self._model.options, len(inputs)
        source = self.padded(inputs.shape[1])
        prefix = starts.shape[1] and _padded_length(starts.shape[1], _SHORTEST_PREFIX)
        rows = min(options.batch_size, options.batch_tokens // source) if num_rows > 1 else 1
        ids = tf.constant(_pad(inputs, rows, source)), tf.constant(_pad(starts, rows, prefix))
        # A small room is enough for most outputs. The whole one is often several times as large.
        for room in static_decoder.rooms(source, prefix + options.extra_length):
            # tf.function warns of calls with many shapes, not of many concrete functions.
            found, is_done = self.search.get_concrete_function(*ids, room=room)(*ids)
            if is_done.numpy().all():
                break
        return beam_search.Hypotheses(*(x[:num_rows] for x in found))

    def _search(self, inputs: tf.Tensor, starts: tf.Tensor, room: int):
        prefix_ids = starts if starts.shape[1] else None
        return beam_search.search_in_room(
            self._decoder,
            self._decoder.encode(inputs),
            self._model.options,
            room=room,
            emittable=self._model.emittable,
            max_lengths=self._model.max_lengths(inputs, prefix_ids),
            prefix_ids=prefix_ids,
        )


def _padded_length(length: int, smallest: int, largest: int = 2**30) -> int:
    """Return a power of two, or a bound.

    >>> [_padded_length(length, 16, 100) for length in (3, 17, 70)]
    [16, 32, 100]
    """
    return min(max(smallest, 1 << (length - 1).bit_length()), largest)


def _pad(ids: np.ndarray, rows: int, length: int) -> np.ndarray:
    """Pad with 0, and with copies of the last row, whose search takes no longer than its own."""
    ids = np.pad(ids, [(0, 0), (0, length - ids.shape[1])])
    return np.pad(ids, [(0, rows - len(ids)), (0, 0)], mode="edge")
