"""The signatures of an export, as functions of a graph.

    serving_default  inputs string [B] -> outputs string [B], scores float32 [B], finished,
                     truncated bool [B]
    nbest            inputs string [B] -> outputs string [B, N], scores float32 [B, N],
                     finished bool [B, N], truncated bool [B]
    score            inputs, targets string [B] -> log_probabilities float32 [B], lengths int32 [B],
                     truncated, target_truncated bool [B]
    tokenize         inputs string [B] -> ids string [B], truncated bool [B]
    from_ids         ids string [B] -> ids string [B], scores float32 [B], finished, truncated
                     bool [B]

Each input is a text for each item, so that requests of any sizes make a batch without padding. An
item's result does not depend on the other items. A blank text has a blank output with score 0.
`truncated`: the input was cut. `finished`: the output is complete; it was not cut at the length
limit.

Ids are numbers with a space between, "5 6 1", and end in EOS (1), which an input may lack. An input
that has anything else has no output and is truncated.

A parser takes words with spaces between and returns trees over them; its `score` takes targets in
their linear form, "(S (NP XX )NP )S".

Shapes: B items of a batch, N hypotheses, S source length, T target length.
"""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from t2t_lite.decode import batching, beam_search, translator
from t2t_lite.serving import answers
from t2t_lite.tasks import graph_text

Tensors = dict[str, tf.Tensor]
Search = Callable[[tf.Tensor], beam_search.Hypotheses]
_IDS = tf.TensorSpec([None, None], tf.int32, name="ids")


class ServingModel(tf.Module):
    """A translator's model, vocabulary and options as a module that SavedModel can hold."""

    def __init__(self, model: translator.Translator):
        super().__init__()
        self._options = model.options
        self._prefix = model.vocabulary.targets.encode(model.options.prefix)
        # SavedModel keeps the variables that are attributes. Keras's own would be saved twice.
        self._weights = [v.value for one in model.models for v in one.trainable_variables]
        self._task = model.task
        self._text = graph_text.GraphText(model.task)
        self._best = self._search(model, num_kept=1)
        self._all = self._search(model, num_kept=model.options.beam_size)
        self._log_probabilities = model.score_ids

    def functions(self) -> dict[str, Callable]:
        """Return the signatures by name."""
        return {
            "serving_default": _signature(self._translate, "inputs"),
            "nbest": _signature(self._nbest, "inputs"),
            "score": _signature(self._score, "inputs", "targets"),
            "tokenize": _signature(self._tokenize, "inputs"),
            "from_ids": _signature(self._translate_ids, "ids"),
        }

    def _translate(self, inputs: tf.Tensor) -> Tensors:
        rows = self._encode(inputs)
        best = _first(self._hypotheses(self._best, rows, self._text.outputs, num_kept=1))
        return {**best, "truncated": rows.truncated & ~rows.is_blank}

    def _nbest(self, inputs: tf.Tensor) -> Tensors:
        rows = self._encode(inputs)
        num_kept = self._options.beam_size
        hypotheses = self._hypotheses(self._all, rows, self._text.outputs, num_kept=num_kept)
        return {**hypotheses, "truncated": rows.truncated & ~rows.is_blank}

    def _score(self, inputs: tf.Tensor, targets: tf.Tensor) -> Tensors:
        sources = self._encode(inputs)
        # No output of a search is longer.
        longest = self._options.max_source_length + self._options.extra_length
        outputs = self._text.encode_targets(targets, longest)

        def part(rows: tf.Tensor, length: tf.Tensor) -> Tensors:
            source_ids = tf.gather(sources.ids, rows)[:, :length]
            target_ids = tf.gather(outputs.ids, rows)[:, :length]
            return {"log_probabilities": self._log_probabilities(source_ids, target_ids)}

        scores = batching.run_in_batches(
            part,
            tf.maximum(sources.lengths, outputs.lengths),
            empty={"log_probabilities": tf.zeros([0])},
            batch_size=self._options.batch_size,
            batch_tokens=self._options.batch_tokens,
        )
        return {
            **scores,
            "lengths": outputs.lengths,
            "truncated": sources.truncated,
            "target_truncated": outputs.truncated,
        }

    def _tokenize(self, inputs: tf.Tensor) -> Tensors:
        rows = self._encode(inputs)
        return {"ids": graph_text.texts_of_ids(rows.ids), "truncated": rows.truncated}

    def _translate_ids(self, ids: tf.Tensor) -> Tensors:
        size = self._task.vocabulary.size
        rows = graph_text.rows_of_ids(ids, self._options.max_source_length, size)
        best = _first(self._hypotheses(self._best, rows, _texts_of_ids, num_kept=1))
        return {"ids": best.pop("outputs"), **best, "truncated": rows.truncated}

    def _encode(self, texts: tf.Tensor) -> graph_text.Rows:
        return self._text.encode(texts, self._options.max_source_length)

    def _hypotheses(
        self,
        search: Search,
        rows: graph_text.Rows,
        form: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
        *,
        num_kept: int,
    ) -> Tensors:
        """Search in parts of like length; return outputs, scores and finished, [B, N].

        `form` makes outputs [b, N] of ids [b, N, T] and source ids [b, S]. Blank rows have zeros,
        so that the parts have `unfinished` in place of `finished`.
        """

        def part(places: tf.Tensor, length: tf.Tensor) -> Tensors:
            source_ids = tf.gather(rows.ids, places)[:, :length]
            hypotheses = search(source_ids)
            outputs = form(hypotheses.ids, source_ids)
            return {
                "outputs": tf.where(hypotheses.lengths > 0, outputs, ""),
                "scores": tf.maximum(hypotheses.scores, answers.NO_SCORE),
                "unfinished": ~hypotheses.finished,
            }

        types = {"outputs": tf.string, "scores": tf.float32, "unfinished": tf.bool}
        results = batching.run_in_batches(
            part,
            tf.where(rows.is_blank, 0, rows.lengths),
            empty={name: tf.zeros([0, num_kept], dtype) for name, dtype in types.items()},
            batch_size=self._options.batch_size,
            batch_tokens=self._options.batch_tokens,
        )
        results["finished"] = ~results.pop("unfinished")
        return results

    def _search(self, model: translator.Translator, *, num_kept: int) -> Search:
        """Return the beam search that keeps num_kept hypotheses."""
        kept = dataclasses.replace(model.options, return_beams=num_kept)
        model = translator.Translator(model.models, model.task, kept, frozen=True)

        def search(inputs: tf.Tensor) -> beam_search.Hypotheses:
            if self._prefix:
                prefix = tf.constant([self._prefix], tf.int32)
                return model.continue_ids(inputs, tf.tile(prefix, [tf.shape(inputs)[0], 1]))
            if num_kept > 1:  # a graph for one sentence would make the export larger still
                return model.translate_ids(inputs)
            return tf.cond(
                translator.is_short_sentence(*tf.unstack(tf.shape(inputs))),
                lambda: model.translate_sentence(inputs[:1]),
                lambda: model.translate_ids(inputs),
            )

        return _function(search, _IDS)


def _first(hypotheses: Tensors) -> Tensors:
    """Return the best hypotheses [B] of [B, N]."""
    return {name: tensor[:, 0] for name, tensor in hypotheses.items()}


def _texts_of_ids(ids: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
    return graph_text.texts_of_ids(ids)


def _signature(function: Callable[..., Tensors], *names: str):
    """Return a function of texts [B] by name, which says so where a request has another shape.

    A server checks neither shapes nor types; an operation far inside would fail.
    """

    def checked(*texts: tf.Tensor) -> Tensors:
        return function(
            *(
                tf.ensure_shape(text, [None], name=f"{name}_must_be_a_list_of_texts")
                for name, text in zip(names, texts)
            )
        )

    return _function(checked, *(tf.TensorSpec([None], tf.string, name=name) for name in names))


def _function(function: Callable, *specs: tf.TensorSpec):
    return tf.function(function, input_signature=specs, autograph=False)
