"""The signatures of an export, as functions of a graph.

    serving_default  inputs string [B] -> outputs string [B], scores float32 [B], finished,
                     truncated bool [B]
    nbest            inputs string [B] -> outputs string [B, N], scores float32 [B, N],
                     finished bool [B, N], truncated bool [B]
    score            inputs, targets string [B] -> log_probabilities float32 [B], lengths int32 [B],
                     truncated, target_truncated bool [B]
    tokenize         inputs string [B] -> ids int32 [B, S], truncated bool [B]
    from_ids         ids int32 [B, S] -> ids int32 [B, T], scores float32 [B], finished, truncated
                     bool [B]

An item's result does not depend on the other items. A blank text has a blank output with score 0.
`truncated`: the input was cut. `finished`: the output is complete; it was not cut at the length
limit.

Rows of ids end in EOS, and ids after it are not read: a server that gathers requests of different
widths pads them with the first element of the tensor. A row without EOS has no output and is
truncated.

A parser takes words with spaces between and returns trees over them; its `score` takes targets in
their linear form, "(S (NP XX )NP )S".

Shapes: B items of a batch, N hypotheses, S source length, T target length.
"""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from t2t_lite.decode import batching, beam_search, forced, translator
from t2t_lite.serving import answers
from t2t_lite.tasks import graph_text
from t2t_lite.text import vocabulary as vocabularies

Tensors = dict[str, tf.Tensor]
Search = Callable[[tf.Tensor], beam_search.Hypotheses]
_TEXT = tf.TensorSpec([None], tf.string, name="inputs")
_TARGETS = tf.TensorSpec([None], tf.string, name="targets")
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
        self._log_probabilities = lambda *ids: forced.log_probabilities(model.models, *ids)

    def functions(self) -> dict[str, Callable]:
        """Return the signatures by name."""
        return {
            "serving_default": _function(self._translate, _TEXT),
            "nbest": _function(self._nbest, _TEXT),
            "score": _function(self._score, _TEXT, _TARGETS),
            "tokenize": _function(self._tokenize, _TEXT),
            "from_ids": _function(self._translate_ids, _IDS),
        }

    def _translate(self, inputs: tf.Tensor) -> Tensors:
        rows = self._encode(inputs)
        hypotheses = self._texts(self._best, rows, num_kept=1)
        best = {name: tensor[:, 0] for name, tensor in hypotheses.items()}
        return {**best, "truncated": rows.truncated & ~rows.is_blank}

    def _nbest(self, inputs: tf.Tensor) -> Tensors:
        rows = self._encode(inputs)
        hypotheses = self._texts(self._all, rows, num_kept=self._options.beam_size)
        return {**hypotheses, "truncated": rows.truncated & ~rows.is_blank}

    def _texts(self, search: Search, rows: graph_text.Rows, *, num_kept: int) -> Tensors:
        """Return outputs, scores and finished of each hypothesis, [B, N]."""

        def results(hypotheses: beam_search.Hypotheses, sources: graph_text.Rows) -> Tensors:
            texts = self._text.outputs(hypotheses.ids, sources.ids)
            return {
                "outputs": tf.where(hypotheses.lengths > 0, texts, ""),
                "scores": tf.maximum(hypotheses.scores, answers.NO_SCORE),
                "unfinished": ~hypotheses.finished,
            }

        shape = [0, num_kept]
        empty = {"outputs": tf.zeros(shape, tf.string), "scores": tf.zeros(shape)}
        empty["unfinished"] = tf.zeros(shape, tf.bool)
        return self._in_parts(search, rows, results, empty)

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
        return {"ids": rows.ids, "truncated": rows.truncated}

    def _translate_ids(self, ids: tf.Tensor) -> Tensors:
        rows = graph_text.rows_of_ids(
            ids, self._options.max_source_length, self._task.vocabulary.size
        )
        # The shortest tree over n words of a token each has two tokens more than they and EOS.
        extra_length = max(self._options.extra_length, 2 if self._task.grammar else 0)
        extra_length += len(self._prefix)
        width = tf.reduce_max(tf.concat([rows.lengths, [0]], 0)) + extra_length
        width = tf.maximum(width, 1)

        def results(hypotheses: beam_search.Hypotheses, _: graph_text.Rows) -> Tensors:
            best = hypotheses.ids[:, 0]
            return {
                "ids": tf.pad(best, [[0, 0], [0, width - tf.shape(best)[1]]]),
                "scores": hypotheses.scores[:, 0],
                "unfinished": ~hypotheses.finished[:, 0],
            }

        empty = {"ids": tf.zeros([0, width], tf.int32), "scores": tf.zeros([0])}
        empty["unfinished"] = tf.zeros([0], tf.bool)
        found = self._in_parts(self._best, rows, results, empty)
        is_used = tf.reduce_any(found["ids"] != vocabularies.PAD_ID, axis=0)
        output_ids = tf.boolean_mask(found["ids"], is_used, axis=1)
        return {**found, "ids": output_ids, "truncated": rows.truncated}

    def _encode(self, texts: tf.Tensor) -> graph_text.Rows:
        return self._text.encode(texts, self._options.max_source_length)

    def _in_parts(
        self,
        search: Search,
        rows: graph_text.Rows,
        results: Callable[[beam_search.Hypotheses, graph_text.Rows], Tensors],
        empty: Tensors,
    ) -> Tensors:
        """Search in parts of like length; blank rows have zeros.

        `finished` stands for the `unfinished` of the parts, so that blank rows are finished.
        """

        def part(places: tf.Tensor, length: tf.Tensor) -> Tensors:
            some = graph_text.Rows(*(tf.gather(tensor, places) for tensor in rows))
            some = some._replace(ids=some.ids[:, :length])
            return results(search(some.ids), some)

        found = batching.run_in_batches(
            part,
            tf.where(rows.is_blank, 0, rows.lengths),
            empty=empty,
            batch_size=self._options.batch_size,
            batch_tokens=self._options.batch_tokens,
        )
        found["finished"] = ~found.pop("unfinished")
        return found

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


def _function(function: Callable, *specs: tf.TensorSpec):
    return tf.function(function, input_signature=specs, autograph=False)
