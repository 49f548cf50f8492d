"""Text in, text out: a trained model with its vocabulary.

    translator = Translator.from_output_dir("runs/ende")
    translator.translate(["A dog runs."])[0].text

What text is to the model and what its outputs must obey is its task's to say (see tasks/): a parser
takes words with spaces between and returns a tree over them, "(S (NP (XX It)) (VP (XX rained)))".
"""

import contextlib
import dataclasses
import functools
import os
import queue
from collections.abc import Iterator, Sequence
from concurrent import futures
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import (
    beam_search,
    cached_decoder,
    candidates,
    forced,
    matmuls,
    options,
)
from t2t_lite.decode.translation import BLANK, Hypothesis, Translation
from t2t_lite.model import transformer
from t2t_lite.run import checkpoint, output_dir
from t2t_lite.tasks import catalog
from t2t_lite.tasks import task as tasks
from t2t_lite.text import any_vocabulary
from t2t_lite.text import vocabulary as vocabularies

# Tokens of the longest source that gets the trace for one sentence, where the cached decoder folds
# its memory: reading a longer one's takes more time than the operations do that folding saves.
_LONGEST_FOLDED = 64


class Translator:
    """Translates with one model, or with the mean probability of several.

    Args:
      models: the model, or several that share the vocabulary.
      task: what stands between text and ids, with the vocabulary of both sides.
      decode_options: how to decode; default: what the first model's hparams say.
      name: what to call the models, e.g. their checkpoints' paths.
      fingerprint: tells the models' weights from any others.
      devices: where batches run, each on one of them at a time; "" is TensorFlow's own choice. On a
        CPU as many "" as cores are faster than one, if TensorFlow's operations have a thread each.
      frozen: the models' weights will not change any more, so the decoder's are prepared once, not
        in every search. 8-bit matmuls need it.
    """

    def __init__(
        self,
        models: transformer.Transformer | Sequence[transformer.Transformer],
        task: tasks.Task,
        decode_options: options.DecodeOptions | None = None,
        *,
        name: str = "",
        fingerprint: str = "",
        devices: Sequence[str] = ("",),
        frozen: bool = False,
    ):
        self.name = name
        self.fingerprint = fingerprint
        self.devices = tuple(devices)
        self.models = list(models) if isinstance(models, Sequence) else [models]
        self.task = task
        self.vocabulary = task.vocabulary
        self.options = decode_options or options.for_model(self.models[0].hparams)
        matmuls.require_precision(self.options.precision)
        self.frozen = frozen
        self._decoder = functools.cache(self._new_decoder) if frozen else self._new_decoder
        self.grammar = task.grammar if self.options.constrained else None
        if task.grammar:
            _check_parsing(self.options)
        targets = self.vocabulary.targets
        forbidden = tuple(token for token in targets.special_ids if token != vocabularies.EOS_ID)
        self.emittable = candidates.EmittableIds(targets.size, forbidden=forbidden)
        ids = tf.TensorSpec([None, None], tf.int32)
        # One trace serves all batches: a search in graph mode is as fast with dynamic shapes.
        self.translate_ids = tf.function(self.search, input_signature=[ids], autograph=False)
        # But one sentence, if it is short, has a trace of its own, of fewer operations.
        self.translate_sentence = tf.function(
            self.search, input_signature=[tf.TensorSpec([1, None], tf.int32)], autograph=False
        )
        self.continue_ids = tf.function(self.search, input_signature=[ids, ids], autograph=False)
        uniforms = tf.TensorSpec([None, None], tf.float32)
        self.sample_ids = tf.function(
            self.search, input_signature=[ids, ids, uniforms], autograph=False
        )
        self.force_ids = tf.function(self._force, input_signature=[ids, ids], autograph=False)

    @classmethod
    def from_output_dir(
        cls,
        path: str | os.PathLike[str],
        checkpoint_path: str | None = None,
        *,
        devices: Sequence[str] = ("",),
        **changes: Any,
    ) -> "Translator":
        """Load what a training run left.

        Args:
          path: the output_dir.
          checkpoint_path: a checkpoint's prefix, a folder that holds some (the newest is taken),
            or several of these, separated by commas: an ensemble. Default: the newest of the run.
          devices: where batches run.
          **changes: fields of DecodeOptions; others are as the run's hparams have them.

        Raises:
          UserError: where something is missing or a field's value is out of its range.
          TypeError: for a field that DecodeOptions does not have.
        """
        run = output_dir.read(os.fspath(path))
        decode_options = options.for_model(run.hparams, **changes)
        task = catalog.task_class(run.run.task)(any_vocabulary.load(run.vocabulary_path))
        parts = checkpoint.separate(checkpoint_path) if checkpoint_path else [None]
        models, prefixes = [], []
        for part in parts:
            prefix = checkpoint.resolve(run.path, part)
            model = transformer.Transformer(
                run.hparams,
                task.vocabulary.targets.size,
                words=task.grammar,
                dtype=decode_options.weights_dtype,
            )
            checkpoint.restore_weights(prefix, model.named_variables(), run.identity)
            models.append(model)
            prefixes.append(prefix)
        return cls(
            models,
            task,
            decode_options,
            name=",".join(prefixes),
            fingerprint=",".join(map(checkpoint.fingerprint, prefixes)),
            devices=devices,
            frozen=True,
        )

    def translate(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        first_index: int = 0,
    ) -> list[Translation]:
        """Translate every text.

        Args:
          texts: the inputs.
          prefixes: what each output begins with.
          first_index: the first text's place in a longer list. Random numbers depend on it.
        """
        results = [BLANK] * len(texts)
        for batch in self.translate_batches(texts, prefixes=prefixes, first_index=first_index):
            for index, translation in batch:
                results[index] = translation
        return results

    def translate_batches(
        self,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        first_index: int = 0,
    ) -> Iterator[list[tuple[int, Translation]]]:
        """Yield (index in `texts`, translation) of every text that is not blank, by batches.

        Batches are of like length, the longest first, and come as they are done; see `translate`.
        """
        if isinstance(texts, str):
            raise TypeError("expected a list of texts, got one text")
        limit = self.options.max_source_length
        indices = [i for i, text in enumerate(texts) if self.task.cut(text, limit).strip()]
        sources = self.task.encode([texts[index] for index in indices], limit)
        if prefixes is None:
            prefixes = [self.options.prefix] * len(texts)
        starts = self.vocabulary.targets.encode_batch([prefixes[index] for index in indices])
        groups = batches(
            [len(source.ids) for source in sources],
            batch_size=min(self.options.batch_size, -(-len(indices) // len(self.devices))),
            batch_tokens=self.options.batch_tokens,
        )
        free_devices = queue.SimpleQueue()
        for device in self.devices:
            free_devices.put(device)

        def translate_group(group: list[int]) -> list[tuple[int, Translation]]:
            device = free_devices.get()
            try:
                with tf.device(device) if device else contextlib.nullcontext():
                    translations = self._translate_batch(
                        [first_index + indices[place] for place in group],
                        [sources[place] for place in group],
                        [starts[place] for place in group],
                    )
            finally:
                free_devices.put(device)
            return [
                (indices[place], translation) for place, translation in zip(group, translations)
            ]

        if len(groups) == 1:  # as of one sentence: a thread of its own would only take time
            yield translate_group(groups[0])
            return
        pool = futures.ThreadPoolExecutor(len(self.devices))
        try:
            for done in futures.as_completed(
                [pool.submit(translate_group, group) for group in groups]
            ):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _translate_batch(
        self,
        indices: Sequence[int],
        sources: Sequence[tasks.EncodedText],
        prefixes: Sequence[Sequence[int]],
    ) -> list[Translation]:
        """Translate one batch; `indices` of the texts choose the random numbers of each."""
        # A search yields return_beams hypotheses of a row, sampling one of each of so many rows.
        copies = self.options.return_beams if self.options.sampling else 1
        inputs = pad([source.ids for source in sources for _ in range(copies)])
        starts = pad([prefix for prefix in prefixes for _ in range(copies)])
        if self.options.sampling:
            # A row for each token, so that a text's numbers do not depend on the batch's width.
            longest = inputs.shape[1] + starts.shape[1] + max(self.options.extra_length, 1)
            shape = [longest, copies]
            seeds = ([self.options.seed, index] for index in indices)
            uniforms = [np.random.default_rng(s).random(shape, np.float32).T for s in seeds]
            hypotheses = self.sample_ids(inputs, starts, np.concatenate(uniforms))
        elif any(prefixes):
            hypotheses = self.continue_ids(inputs, starts)
        elif is_short_sentence(*inputs.shape):
            hypotheses = self.translate_sentence(inputs)
        else:
            hypotheses = self.translate_ids(inputs)
        hypotheses = beam_search.Hypotheses(*(tensor.numpy() for tensor in hypotheses))
        # [B * copies, K, ...] --> [B, copies * K, ...]
        hypotheses = beam_search.Hypotheses(
            *(x.reshape(len(sources), copies * x.shape[1], *x.shape[2:]) for x in hypotheses)
        )
        outputs = [self._hypotheses(hypotheses, row, source) for row, source in enumerate(sources)]
        if self.options.token_scores or self.options.alignments:
            outputs = self._add_token_details(outputs, sources)
        return [
            Translation(hypotheses=output, truncated=source.truncated, source_ids=tuple(source.ids))
            for output, source in zip(outputs, sources)
        ]

    def _add_token_details(
        self, outputs: Sequence[tuple[Hypothesis, ...]], sources: Sequence[tasks.EncodedText]
    ) -> list[tuple[Hypothesis, ...]]:
        """Return the hypotheses with what options ask to know of their tokens.

        A pass takes one hypothesis of each sentence, so that it needs no more memory than a search.
        """
        detailed = [list(hypotheses) for hypotheses in outputs]
        for place in range(max(map(len, outputs))):
            rows = [row for row, hypotheses in enumerate(outputs) if place < len(hypotheses)]
            forced_outputs = self.force_ids(
                pad([sources[row].ids for row in rows]),
                pad([outputs[row][place].ids for row in rows]),
            )
            scores, places = (tensor.numpy().tolist() for tensor in forced_outputs)
            for row, own_scores, own_places in zip(rows, scores, places):
                hypothesis = outputs[row][place]
                length = len(hypothesis.ids)
                detailed[row][place] = dataclasses.replace(
                    hypothesis,
                    token_scores=tuple(own_scores[:length]) if self.options.token_scores else None,
                    alignment=tuple(own_places[:length]) if self.options.alignments else None,
                )
        return [tuple(hypotheses) for hypotheses in detailed]

    def _force(self, inputs: tf.Tensor, targets: tf.Tensor) -> forced.Forced:
        return forced.run(self.models, inputs, targets)

    def _hypotheses(
        self, hypotheses: beam_search.Hypotheses, row: int, source: tasks.EncodedText
    ) -> tuple[Hypothesis, ...]:
        """Return the hypotheses of one sentence, best first."""
        places = [place for place, length in enumerate(hypotheses.lengths[row]) if length]
        if not places:
            raise errors.UserError(
                f"{self.name or 'the model'} gives no probabilities: its weights are too large, or "
                "no numbers; decode with an earlier checkpoint"
            )
        if self.options.sampling:
            places.sort(key=lambda place: -hypotheses.scores[row, place])
        return tuple(self._hypothesis(hypotheses, row, place, source) for place in places)

    def _hypothesis(
        self, hypotheses: beam_search.Hypotheses, row: int, place: int, source: tasks.EncodedText
    ) -> Hypothesis:
        ids = hypotheses.ids[row, place, : hypotheses.lengths[row, place]].tolist()
        text, repairs = self.task.decode(ids, source)
        return Hypothesis(
            text=text,
            score=float(hypotheses.scores[row, place]),
            ids=tuple(ids),
            finished=bool(hypotheses.finished[row, place]),
            repairs=repairs,
        )

    def _new_decoder(self) -> Any:
        with tf.init_scope() if self.frozen else contextlib.nullcontext():
            return cached_decoder.of_models(self.models, self.options)

    def search(
        self,
        inputs: tf.Tensor,
        prefix_ids: tf.Tensor | None = None,
        uniforms: tf.Tensor | None = None,
        recorder: beam_search.Recorder | None = None,
    ) -> beam_search.Hypotheses:
        """Translate ids in the graph.

        `translate_ids(inputs)`, `translate_sentence(inputs)` of one row, `continue_ids(inputs,
        prefix_ids)` and `sample_ids(inputs, prefix_ids, uniforms)` are this as a tf.function.

        Args:
          inputs: int32 [B, S], each with EOS, padded with 0.
          prefix_ids: int32 [B, P], what outputs begin with, padded with 0.
          uniforms: float32 [B, longest output], random numbers from 0 to 1; sample with these.
          recorder: gets the steps of the search of one sentence.
        """
        decoder = self._decoder()
        max_lengths = self._max_lengths(inputs, prefix_ids)
        grammar_state = ()
        if self.grammar:
            num_words = self.grammar.count_words(inputs)
            grammar_state = self.grammar.start(num_words)
            max_lengths = tf.maximum(max_lengths, self.grammar.shortest_length(num_words))
        return beam_search.search(
            decoder,
            decoder.encode(inputs),
            self.options,
            emittable=self.emittable,
            max_lengths=max_lengths,
            prefix_ids=prefix_ids,
            uniforms=uniforms,
            grammar=self.grammar,
            grammar_state=grammar_state,
            recorder=recorder,
        )

    def _max_lengths(self, inputs: tf.Tensor, prefix_ids: tf.Tensor | None) -> tf.Tensor:
        """Return the most tokens [B] of each output."""
        max_lengths = tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32)
        max_lengths += self.options.extra_length
        if prefix_ids is not None:
            max_lengths += tf.math.count_nonzero(prefix_ids, axis=1, dtype=tf.int32)
        return max_lengths


def batches(lengths: Sequence[int], *, batch_size: int, batch_tokens: int) -> list[list[int]]:
    """Group sentences of like length by index, longest first.

    A batch has at most batch_size rows, and rows times the longest length are at most batch_tokens,
    or it is a single row.

    >>> batches([2, 9, 3, 8], batch_size=3, batch_tokens=18)
    [[1, 3], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    groups: list[list[int]] = []
    for index in order:
        group = groups[-1] if groups else []
        room = min(batch_size, batch_tokens // lengths[group[0]]) if group else 0
        if len(group) < room:
            group.append(index)
        else:
            groups.append([index])
    return groups


def pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Return int32 [B, S]: [[5, 6], [7]] -> [[5, 6], [7, 0]]."""
    padded = np.zeros([len(rows), max(map(len, rows), default=0)], np.int32)
    for row, ids in zip(padded, rows):
        row[: len(ids)] = ids
    return padded


def is_short_sentence(batch_size: Any, length: Any) -> Any:
    """Return whether inputs [B, S] are one sentence, best decoded by a trace for B = 1; sizes are
    numbers or tensors."""
    return (batch_size == 1) & (length <= _LONGEST_FOLDED)


def _check_parsing(decode_options: options.DecodeOptions) -> None:
    """Raise UserError for what does not go with outputs that have a grammar."""
    if decode_options.max_source_length < 2:
        raise errors.UserError(
            "max_source_length is at least 2 for a parser: one word, and its end"
        )
    for name in ("sampling", "prefix", "min_length"):
        if decode_options.constrained and getattr(decode_options, name):
            raise errors.UserError(
                f"{name} does not go with outputs that are always trees: add constrained=false"
            )
