"""A translator's search as a LiteRT (TensorFlow Lite) model, for one sentence at a time.

A step of the search is some hundred small operations. LiteRT starts one in a tenth of TensorFlow's
time, and needs no TensorFlow. It wants static sizes, so there is a signature for each size of
source and output; they share their weights. See t2t_lite_runtime.search, which runs them.
"""

import dataclasses
import json
import os
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, Literal

import keras
import tensorflow as tf

from t2t_lite import errors, quiet
from t2t_lite.decode import beam_search, engine, static_decoder, translator
from t2t_lite.model import embedding
from t2t_lite.text import text_files

Weights = Literal["float32", "float16", "int8"]
# Source lengths: with more than these, less would be padding, but a file takes longer to make.
_SOURCES = (16, 32, 64, 128, 256)


def sizes(longest_source: int, extra_length: int) -> list[tuple[int, int]]:
    """Return (S, T) of the signatures: for each source length a small room, then the whole one.

    >>> sizes(40, extra_length=50)
    [(16, 32), (16, 66), (32, 48), (32, 82), (40, 60), (40, 90)]
    """
    found = []
    for source in [*(size for size in _SOURCES if size < longest_source), longest_source]:
        found += [(source, room) for room in static_decoder.rooms(source, extra_length)]
    return found


def convert(
    model: translator.Translator,
    *,
    longest_source: int,
    num_kept: int,
    weights: Weights = "float32",
) -> bytes:
    """Return the model file.

    Args:
      model: with one model, without a grammar.
      longest_source: in tokens, EOS included.
      num_kept: K, the outputs of a search.
      weights: how they are stored. float16 halves the file; int8 (8-bit integers, one scale for
        each row) quarters it and is the fastest.

    Raises UserError for an ensemble, a parser or sampling.
    """
    if mistake := engine.mistake(model):
        raise errors.UserError(mistake)
    options = dataclasses.replace(model.options, return_beams=num_kept)
    prefix = model.vocabulary.targets.encode(options.prefix)
    prefix_ids = tf.constant([prefix], tf.int32) if prefix else None
    decoder = static_decoder.StaticDecoder(model.models[0], beam_search.num_beams(options))
    look_up = _RoundedRows() if weights == "int8" else embedding.lookup

    def function(source: int, room: int):
        def search(ids: tf.Tensor, num_wanted: tf.Tensor) -> dict[str, tf.Tensor]:
            with embedding.look_up.replaced_by(look_up):
                found, is_done = beam_search.search_in_room(
                    decoder,
                    decoder.encode(ids),
                    options,
                    room=room,
                    emittable=model.emittable,
                    max_lengths=model.max_lengths(ids, prefix_ids),
                    prefix_ids=prefix_ids,
                    num_wanted=num_wanted,
                )
            return {**found._asdict(), "done": is_done}

        specs = [
            tf.TensorSpec([1, source], tf.int32, name="ids"),
            tf.TensorSpec([], tf.int32, name="num_wanted"),
        ]
        return tf.function(search, input_signature=specs, autograph=False)

    functions = {
        f"search_{source}_{room}": function(source, room)
        for source, room in sizes(longest_source, options.extra_length + len(prefix))
    }
    return of_functions(functions, model.models[0].trainable_variables, weights)


def of_functions(
    functions: dict[str, Any], variables: Sequence[keras.Variable], weights: Weights = "float32"
) -> bytes:
    """Return the model file that has a signature for each tf.function; all use the variables."""
    module = tf.Module()
    module.weights = [variable.value for variable in variables]
    with tempfile.TemporaryDirectory() as folder, quiet.hidden_stderr():
        tf.saved_model.save(module, folder, signatures=functions)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[*functions])
        if weights != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if weights == "float16":
            converter.target_spec.supported_types = [tf.float16]
        return converter.convert()


class _RoundedRows:
    """Looks rows of embeddings up in 8-bit integers.

    The converter rounds the weights of matmuls only. It would make floats of a whole embedding at
    the start of every search, and copy them at every step.
    """

    def __init__(self):
        self._tables: dict[str, tuple[tf.Tensor, tf.Tensor]] = {}

    def __call__(self, matrix: keras.Variable, ids: tf.Tensor) -> tf.Tensor:
        if matrix.path not in self._tables:
            with tf.init_scope():
                rows = tf.convert_to_tensor(matrix)
                largest = tf.reduce_max(tf.abs(rows), axis=1, keepdims=True)
                scales = tf.where(largest > 0, largest, 1) / 127
                self._tables[matrix.path] = tf.cast(tf.round(rows / scales), tf.int8), scales
        rows, scales = self._tables[matrix.path]
        return tf.cast(tf.gather(rows, ids), tf.float32) * tf.gather(scales, ids)


def _write(job: dict[str, Any], path: pathlib.Path) -> None:
    """Write the model of an engine's job; it gets its name when it is complete."""
    model = translator.Translator.from_output_dir(
        job["output_dir"], job["checkpoint_path"], engine="graph", **job["changes"]
    )
    data = convert(
        model,
        longest_source=min(engine.LONGEST, model.options.max_source_length),
        num_kept=model.options.return_beams,
    )
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        temporary.write_bytes(data)
        text_files.sync(temporary)
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":  # see engine
    with quiet.hidden_stderr():
        _write(json.loads(sys.argv[1]), pathlib.Path(sys.argv[2]))
