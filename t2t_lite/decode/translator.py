"""Text in, text out: a trained model with its vocabulary.

    translator = Translator.from_output_dir("runs/ende")
    translator.translate(["A dog runs."])[0].text

The task (see tasks/) turns text into ids and back, and restricts the outputs: a parser takes words
with spaces between and returns a tree over them, "(S (NP (XX It)) (VP (XX rained)))".
"""

import contextlib
import dataclasses
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import (
    beam_search,
    cached_decoder,
    candidates,
    forced,
    matmuls,
    one_process,
    options,
)
from t2t_lite.decode import engine as engines
from t2t_lite.decode import xla as xla_search
from t2t_lite.decode.translation import BLANK, Hypothesis, Translation, require_texts
from t2t_lite.model import gradients, next_word, transformer
from t2t_lite.run import checkpoint, output_dir
from t2t_lite.tasks import catalog
from t2t_lite.tasks import task as tasks
from t2t_lite.text import any_vocabulary
from t2t_lite.text import vocabulary as vocabularies

# Tokens of the longest source that gets the trace for one sentence, where the cached decoder folds
# its memory: reading a longer one's takes more time than the operations do that folding saves.
_LONGEST_FOLDED = 64


class Translator(one_process.OneProcess):
    """Translates with one model, or with the mean probability of several.

    Threads may share it. It can be neither pickled nor used in a process that was forked later.

    Args:
      models: the model, or several that share the vocabulary.
      task: turns text into ids and back; it has the vocabulary of both sides.
      decode_options: how to decode; default: those of the first model's hparams.
      name: a name for the models, e.g. their checkpoints' paths.
      fingerprint: identifies the models' weights.
      devices: where batches run, one at a time on each; "" is TensorFlow's own choice. On a CPU as
        many "" as cores are faster than one, if TensorFlow's operations have one thread each.
      frozen: whether the models' weights stay as they are, so that the decoder's are prepared once,
        not in every search. 8-bit matmuls need it.
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
        super().__init__()
        self.name = name
        self.fingerprint = fingerprint
        self.devices = tuple(devices)
        self.models = list(models) if isinstance(models, Sequence) else [models]
        self.options = decode_options or options.for_model(self.models[0].hparams)
        language = self.options.target_language
        self.task = task = task.into(language) if language else task
        self.vocabulary = task.vocabulary
        matmuls.require_precision(self.options.precision)
        self.frozen = frozen
        self.engine: engines.LiteEngine | None = None  # besides the graph
        self.xla: xla_search.XlaSearch | None = None  # in place of the graph
        self._decoder = functools.cache(self._new_decoder) if frozen else self._new_decoder
        self.grammar = task.grammar if self.options.constrained else None
        if task.grammar:
            _check_parsing(self.options)
        elif not self.options.constrained:
            raise errors.UserError("constrained=false is for parsers, which this model is not")
        targets = self.vocabulary.targets
        forbidden = tuple(token for token in targets.special_ids if token != vocabularies.EOS_ID)
        self.emittable = candidates.EmittableIds(targets.size, forbidden=forbidden)
        # One trace serves all batches: a search in graph mode is as fast with dynamic shapes. One
        # short sentence has a trace of its own, with fewer operations.
        ids, uniforms = (tf.TensorSpec([None, None], dtype) for dtype in (tf.int32, tf.float32))
        self.translate_ids = _graph(self.search, ids)
        self.translate_sentence = _graph(self.search, tf.TensorSpec([1, None], tf.int32))
        self.continue_ids = _graph(self.search, ids, ids)
        self.sample_ids = _graph(self.search, ids, ids, uniforms)
        self.force_ids = _graph(lambda *pairs: forced.run(self.models, *pairs), ids, ids)
        self.score_ids = _graph(
            lambda *pairs: forced.log_probabilities(self.models, *pairs), ids, ids
        )

    @classmethod
    def from_output_dir(
        cls,
        path: str | os.PathLike[str],
        checkpoint_path: str | None = None,
        *,
        devices: Sequence[str] = ("",),
        engine: engines.Engine = "auto",
        xla: bool = False,
        **changes: Any,
    ) -> "Translator":
        """Load a trained model.

        Args:
          path: the output_dir.
          checkpoint_path: a checkpoint's prefix, a folder that holds some (the newest is taken),
            or several of these, separated by commas: an ensemble. Default: the newest of the run.
          devices: where batches run.
          engine: what answers single sentences of up to 64 tokens. "litert": LiteRT, several times
            as fast for a small model; converted first if it was not yet. "auto": LiteRT, once it is
            converted, where its runtime is installed and can search as the options ask for;
            converting begins in the background after twenty such sentences. "graph": TensorFlow.
          xla: whether to search under XLA, for GPUs; see `use_xla`.
          **changes: fields of DecodeOptions; others are as the run's hparams have them.

        Raises:
          UserError: where a file is missing or a field's value is out of its range.
          TypeError: for a field that DecodeOptions does not have.
        """
        run = output_dir.read(os.fspath(path))
        decode_options = options.for_model(run.hparams, **changes)
        task = catalog.task_class(run.run.task)(any_vocabulary.load(run.vocabulary_path))
        parts = checkpoint.separate(checkpoint_path) if checkpoint_path else [None]
        models, prefixes = [], []
        for part in parts:
            prefix = checkpoint.resolve(run.path, part)
            model = next_word.create(
                run.hparams,
                task.vocabulary.targets.size,
                words=task.grammar,
                dtype=decode_options.weights_dtype,
            )
            checkpoint.restore_weights(prefix, model.named_variables(), run.identity)
            models.append(model)
            prefixes.append(prefix)
        translator = cls(
            models,
            task,
            decode_options,
            name=",".join(prefixes),
            fingerprint=",".join(map(checkpoint.fingerprint, prefixes)),
            devices=devices,
            frozen=True,
        )
        if xla and engine == "litert":
            raise errors.UserError('engine="litert" and xla exclude each other: leave one out')
        if xla:
            translator.use_xla()
            return translator
        translator.engine = engines.of_translator(translator, run.path, engine)
        if translator.engine and engine == "litert":
            translator.engine.wait()
        return translator

    def use_xla(self) -> None:
        """Search under XLA from now on; outputs stay the same but for rounding.

        Batches are padded to a few shapes; XLA compiles a program when a shape first occurs.
        Raises UserError for an ensemble, a parser, sampling or 8-bit integers.
        """
        self.xla, self.engine = xla_search.XlaSearch(self), None

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

        Raises TypeError for one text in place of a list, UserError for another number of prefixes.
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
        self.require_process()
        require_texts(texts)
        if prefixes is None:
            prefixes = [self.options.prefix] * len(texts)
        require_texts(prefixes, "prefixes", len(texts))
        limit = self.options.max_source_length
        indices = [i for i, text in enumerate(texts) if self.task.cut(text, limit).strip()]
        sources = self.task.encode([texts[index] for index in indices], limit)
        starts = self.vocabulary.targets.encode_batch([prefixes[index] for index in indices])
        inputs = [_Input(*each) for each in zip(indices, sources, starts)]
        groups = batches(
            [self.xla.padded(len(s.ids)) if self.xla else len(s.ids) for s in sources],
            batch_size=min(self.options.batch_size, -(-len(indices) // len(self.devices))),
            batch_tokens=self.options.batch_tokens,
        )
        searcher = None
        if self.engine and all(_suits_engine([inputs[i] for i in group]) for group in groups):
            searcher = self.engine.ready()  # for the whole call
        here, devices = threading.local(), iter(self.devices)

        def take_device():
            here.device = next(devices)

        def translate_group(group: list[int]) -> list[tuple[int, Translation]]:
            batch = [inputs[place] for place in group]
            with tf.device(here.device) if here.device else contextlib.nullcontext():
                translations = self._translate_batch(batch, first_index, searcher)
            return [(each.index, result) for each, result in zip(batch, translations)]

        if len(groups) == 1:  # as of one sentence: a thread of its own would only take time
            take_device()
            yield translate_group(groups[0])
            return
        pool = futures.ThreadPoolExecutor(len(self.devices), initializer=take_device)
        try:
            jobs = [pool.submit(translate_group, group) for group in groups]
            for done in futures.as_completed(jobs):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def score(self, inputs: Sequence[str], targets: Sequence[str]) -> list[forced.PairScore]:
        """Return the score of every target given its input."""
        pairs = itertools.chain.from_iterable(self.score_batches(inputs, targets))
        scores = dict(pairs)
        return [scores[index] for index in range(len(inputs))]

    def score_batches(
        self, inputs: Sequence[str], targets: Sequence[str]
    ) -> Iterator[list[tuple[int, forced.PairScore]]]:
        """Yield (index, score) of every pair by batches, the longest first."""
        self.require_process()
        require_texts(inputs)
        require_texts(targets, "targets", len(inputs))
        limit = self.options.max_source_length
        sources = self.task.encode(inputs, limit)
        ends = self.task.encode_targets(targets, limit + self.options.extra_length)
        for batch in batches(
            [max(len(source.ids), len(end.ids)) for source, end in zip(sources, ends)],
            batch_size=self.options.batch_size,
            batch_tokens=self.options.batch_tokens,
        ):
            ids = ([texts[i].ids for i in batch] for texts in (sources, ends))
            totals = self.score_ids(*map(pad, ids)).numpy().tolist()
            yield [
                (
                    i,
                    forced.PairScore(
                        log_probability=total,
                        num_tokens=len(ends[i].ids),
                        truncated=sources[i].truncated,
                        target_truncated=ends[i].truncated,
                    ),
                )
                for i, total in zip(batch, totals)
            ]

    def _translate_batch(
        self, batch: Sequence["_Input"], first_index: int, searcher: Any = None
    ) -> list[Translation]:
        """Return the translations of a batch, by the graph that suits it, or by `searcher`."""
        # A search returns return_beams hypotheses of a row; sampling, one of each of so many rows.
        copies = self.options.return_beams if self.options.sampling else 1
        inputs = pad([each.source.ids for each in batch for _ in range(copies)])
        starts = pad([each.prefix for each in batch for _ in range(copies)])
        if self.options.sampling:
            # A row for each token, so that a text's numbers do not depend on the batch's width.
            longest = inputs.shape[1] + starts.shape[1] + max(self.options.extra_length, 1)
            shape = [longest, copies]
            seeds = ([self.options.seed, first_index + each.index] for each in batch)
            uniforms = [np.random.default_rng(s).random(shape, np.float32).T for s in seeds]
            found = self.sample_ids(inputs, starts, np.concatenate(uniforms))
        elif self.xla:
            found = self.xla(inputs, starts)
        elif starts.size:
            found = self.continue_ids(inputs, starts)
        elif searcher:
            outputs = searcher(batch[0].source.ids, self.options.return_beams)
            found = (x[None] for x in outputs)
        elif is_short_sentence(*inputs.shape):
            found = self.translate_sentence(inputs)
        else:
            found = self.translate_ids(inputs)
        # [B * copies, K, ...] --> [B, copies * K, ...]
        found = (np.asarray(x) for x in found)
        found = (x.reshape(len(batch), copies * x.shape[1], *x.shape[2:]) for x in found)
        outputs = [
            self._hypotheses(beam_search.Hypotheses(*rows), each.source)
            for each, *rows in zip(batch, *found)
        ]
        if self.options.token_scores or self.options.alignments:
            self._add_token_details(outputs, [each.source for each in batch])
        return [
            Translation(
                hypotheses=tuple(hypotheses),
                truncated=each.source.truncated,
                source_ids=tuple(each.source.ids),
            )
            for hypotheses, each in zip(outputs, batch)
        ]

    def _hypotheses(
        self, found: beam_search.Hypotheses, source: tasks.EncodedText
    ) -> list[Hypothesis]:
        """Return the hypotheses of one sentence, best first; `found` are its rows of a search."""
        hypotheses = []
        for ids, score, length, finished in zip(*found):
            if length:
                text, repairs = self.task.decode(ids[:length].tolist(), source)
                hypotheses.append(
                    Hypothesis(
                        text=text,
                        score=float(score),
                        ids=tuple(ids[:length].tolist()),
                        finished=bool(finished),
                        repairs=repairs,
                    )
                )
        if not hypotheses:
            raise errors.UserError(
                f"{self.name or 'the model'} gives no probabilities: its weights are too large, or "
                "not numbers; decode with an earlier checkpoint"
            )
        if self.options.sampling:
            hypotheses.sort(key=lambda hypothesis: -hypothesis.score)
        return hypotheses

    def _add_token_details(
        self, outputs: Sequence[list[Hypothesis]], sources: Sequence[tasks.EncodedText]
    ) -> None:
        """Add the details of tokens that options ask for to the hypotheses of each source.

        A pass takes one hypothesis of each sentence, so that it needs no more memory than a search.
        """
        for place in range(max(map(len, outputs))):
            rows = [row for row, hypotheses in enumerate(outputs) if place < len(hypotheses)]
            forced_outputs = self.force_ids(
                pad([sources[row].ids for row in rows]),
                pad([outputs[row][place].ids for row in rows]),
            )
            for row, scores, places in zip(rows, *(x.numpy().tolist() for x in forced_outputs)):
                hypothesis = outputs[row][place]
                length = len(hypothesis.ids)
                outputs[row][place] = dataclasses.replace(
                    hypothesis,
                    token_scores=tuple(scores[:length]) if self.options.token_scores else None,
                    alignment=tuple(places[:length]) if self.options.alignments else None,
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

        These are the same as a tf.function: `translate_ids(inputs)`, `translate_sentence(inputs)`
        of one row, `continue_ids(inputs, prefix_ids)`, `sample_ids(inputs, prefix_ids, uniforms)`.

        Args:
          inputs: int32 [B, S], each with EOS, padded with 0.
          prefix_ids: int32 [B, P], what outputs begin with, padded with 0.
          uniforms: float32 [B, longest output], random numbers from 0 to 1; sample with these.
          recorder: gets the steps of the search of one sentence.
        """
        decoder = self._decoder()
        max_lengths = self.max_lengths(inputs, prefix_ids)
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

    def max_lengths(self, inputs: tf.Tensor, prefix_ids: tf.Tensor | None) -> tf.Tensor:
        """Return the length limits [B] of outputs, EOS included; arguments are as for `search`."""
        limits = tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32) + self.options.extra_length
        if prefix_ids is not None:
            limits += tf.math.count_nonzero(prefix_ids, axis=1, dtype=tf.int32)
        return limits


class _Input(NamedTuple):
    """A text's place among the texts, its ids, and those that its output begins with."""

    index: int
    source: tasks.EncodedText
    prefix: Sequence[int]


def _suits_engine(batch: Sequence[_Input]) -> bool:
    """Return whether LiteRT can search for a batch."""
    first = batch[0]
    return len(batch) == 1 and len(first.source.ids) <= engines.LONGEST and not first.prefix


def _graph(function: Callable, *specs: tf.TensorSpec) -> Any:
    """Return a tf.function with one trace for all inputs of these shapes, and no gradient."""
    function = gradients.not_needed()(function)
    return tf.function(function, input_signature=specs, autograph=False)


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
    for name in ("sampling", "prefix", "min_length", "no_repeat_ngram"):
        if decode_options.constrained and getattr(decode_options, name):
            raise errors.UserError(
                f"{name} does not go with outputs that are always trees: add constrained=false"
            )
