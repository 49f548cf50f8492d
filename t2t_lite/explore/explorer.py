"""What the page shows of a text: translation, attention, search and parse, as plain objects.

An Explorer answers for one translator. Objects hold only what json can hold; attention weights,
which are many, are bytes: see document.weight_bytes.
"""

import collections
import dataclasses
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import sacrebleu
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import translator
from t2t_lite.explore import attending, document, parses, pieces, search_tree
from t2t_lite.tasks import parsing
from t2t_lite.tasks import task as tasks
from t2t_lite.text import vocabulary as vocabularies

# Analyses whose weights are kept: one on the page, and the one before it.
_KEPT = 2
_EXAMPLES = 200  # of a split, offered on the page


@dataclasses.dataclass(frozen=True)
class _Analysis:
    """A text's ids, and those of the output that the views are about."""

    source_ids: Sequence[int]
    target_ids: Sequence[int]
    translation: dict[str, Any]


class Answers(Protocol):
    """What the page asks; Explorer says more of each."""

    def about(self) -> dict[str, Any]:
        """Return what the page shows before any text."""
        ...

    def translation(self, text: str, target: str | None = None) -> dict[str, Any]:
        """Return the outputs of a text."""
        ...

    def attention(self, text: str, target: str | None, kind: str, layer: int) -> bytes:
        """Return the weights of one layer."""
        ...

    def search(self, text: str) -> dict[str, Any]:
        """Return the tree of a text's search."""
        ...


class Explorer:
    """Answers what the page asks of a run; its methods may be called from several threads.

    Args:
      model: the translator; n-best lists have as many entries as its options return.
      references: the reference of each source text that has one.
    """

    def __init__(
        self,
        model: translator.Translator,
        *,
        references: Mapping[str, str] | None = None,
    ):
        # Every output with its tokens' probabilities and alignment, whatever the options say.
        options = dataclasses.replace(model.options, token_scores=True, alignments=True)
        self.model = translator.Translator(
            model.models,
            model.task,
            options,
            name=model.name,
            fingerprint=model.fingerprint,
            frozen=model.frozen,
        )
        self._references = dict(references or {})
        self._is_parser = isinstance(model.task, parsing.Parsing)
        self._search = None if options.sampling else search_tree.TracedSearch(self.model)
        spec = tf.TensorSpec([None, None], tf.int32)
        self._weights = tf.function(
            lambda inputs, targets: attending.weights(model.models[0], inputs, targets),
            input_signature=[spec, spec],
            autograph=False,
        )
        self._lock = threading.RLock()
        self._analyses: collections.OrderedDict[Any, _Analysis] = collections.OrderedDict()
        self._attention: collections.OrderedDict[Any, attending.Weights] = collections.OrderedDict()

    def warm_up(self) -> None:
        """Make the graphs, so that the first text is answered as fast as others."""
        # Two lengths: a graph is made for the first, and one for all others at the second.
        for text in ("a", "a a a"):
            self._attention.clear()
            if self._search:
                self.search(text)
            self.attention(text, None, "cross", 0)

    def about(self) -> dict[str, Any]:
        """Return what the page shows before any text: the model, and texts to begin with."""
        options = self.model.options
        hparams = self.model.models[0].hparams
        return {
            "name": self.model.name,
            "num_models": len(self.model.models),
            "is_parser": self._is_parser,
            "has_search": self._search is not None,
            "has_tokens": True,
            "layers": {
                "encoder": hparams.num_encoder_layers,
                "decoder": hparams.num_decoder_layers,
            },
            "heads": hparams.num_heads,
            "options": {
                name: getattr(options, name)
                for name in (
                    *("beam_size", "alpha", "length_penalty", "extra_length", "return_beams"),
                    "strict_ends",
                )
            },
            "max_source_length": options.max_source_length,
            "examples": examples(self._references),
        }

    def translation(self, text: str, target: str | None = None) -> dict[str, Any]:
        """Return the outputs of a text with all that is known of their tokens.

        Args:
          text: the source.
          target: an output to look at in place of the best.

        Raises UserError for a target that is none, e.g. of a parser no tree.
        """
        return self._analysis(text, target).translation

    def attention(self, text: str, target: str | None, kind: str, layer: int) -> bytes:
        """Return the weights of one layer, [head, query, key], as the module says."""
        if kind not in attending.KINDS:
            raise errors.UserError(f"kind is one of {', '.join(attending.KINDS)}, got {kind!r}")
        with self._lock:
            found = getattr(self._weights_of(text, target), kind)
            if not 0 <= layer < found.shape[1]:
                raise errors.UserError(f"there are layers 0 to {found.shape[1] - 1}, got {layer}")
            return document.weight_bytes(found[0, layer].numpy())

    def search(self, text: str) -> dict[str, Any]:
        """Return the tree of a text's search: see search_tree."""
        if self._search is None:
            raise errors.UserError("outputs drawn at random have no search tree")
        with self._lock:
            analysis = self._analysis(text, None)
            if not analysis.source_ids:
                raise errors.UserError("a blank text is not searched for")
            start = time.perf_counter()
            tree = self._search.run(list(analysis.source_ids))
        options, targets = self.model.options, self.model.vocabulary.targets
        return {
            "seconds": time.perf_counter() - start,
            "beam_size": options.beam_size,
            "alpha": options.alpha,
            "stopped": tree.stopped,
            "max_length": tree.max_length,
            "hypotheses": tree.hypotheses,
            "extensions": [
                {
                    **dataclasses.asdict(e),
                    "token": pieces.of_id(targets, e.token),
                    "text": targets.decode(tree.ids(e.number)),
                }
                for e in tree.extensions
                if search_tree.exists(e)
            ],
            "penalty": _effect_of_penalty(tree, self.model),
        }

    def _analysis(self, text: str, target: str | None) -> _Analysis:
        with self._lock:
            return _kept(self._analyses, (text, target), lambda: self._analyse(text, target))

    def _analyse(self, text: str, target: str | None) -> _Analysis:
        start = time.perf_counter()
        (translated,) = self.model.translate([text])
        seconds = time.perf_counter() - start
        source_ids, target_ids = translated.source_ids, translated.ids
        hypotheses = [self._hypothesis(each) for each in translated.hypotheses]
        given = None
        if target is not None and source_ids:
            source_ids, target_ids = attending.ids_of(self.model, text, target)
            given = self._given(source_ids, target_ids)
        output = given["text"] if given else translated.text
        result = {
            "text": text,
            "seconds": seconds,
            "is_blank": not source_ids,
            "truncated": translated.truncated,
            "source": pieces.of_ids(self.model.vocabulary, source_ids),
            "target": pieces.of_ids(self.model.vocabulary.targets, target_ids),
            "start": pieces.START,
            "hypotheses": hypotheses,
            "given": given,
            **beside_reference(text, output, self._references, is_parser=self._is_parser),
        }
        return _Analysis(source_ids, target_ids, result)

    def _hypothesis(self, hypothesis: translator.Hypothesis) -> dict[str, Any]:
        return {
            "text": hypothesis.text,
            "score": hypothesis.score,
            "finished": hypothesis.finished,
            "repairs": hypothesis.repairs,
            "tokens": pieces.of_ids(self.model.vocabulary.targets, hypothesis.ids),
            "token_scores": list(hypothesis.token_scores or ()),
            "alignment": list(hypothesis.alignment or ()),
        }

    def _given(self, source_ids: Sequence[int], target_ids: Sequence[int]) -> dict[str, Any]:
        """Return a given output as a hypothesis; text and score are those a search would give."""
        source = tasks.EncodedText(list(source_ids), truncated=False)
        text, repairs = self.model.task.decode(target_ids, source)
        told = self.model.force_ids(translator.pad([source_ids]), translator.pad([target_ids]))
        logs, places = (tensor.numpy()[0].tolist() for tensor in told)
        penalty = float(search_tree.length_penalty(len(target_ids), self.model.options))
        ends = target_ids[-1] == vocabularies.EOS_ID
        return self._hypothesis(
            translator.Hypothesis(
                text=text,
                score=sum(logs) / penalty,
                ids=tuple(target_ids),
                finished=ends,
                repairs=repairs,
                token_scores=tuple(logs),
                alignment=tuple(places),
            )
        )

    def _weights_of(self, text: str, target: str | None) -> attending.Weights:
        analysis = self._analysis(text, target)
        if not analysis.source_ids:
            raise errors.UserError("a blank text has no attention")

        def compute() -> attending.Weights:
            inputs, targets = ([ids] for ids in (analysis.source_ids, analysis.target_ids))
            return self._weights(translator.pad(inputs), translator.pad(targets))

        return _kept(self._attention, (text, target), compute)


def beside_reference(
    text: str, output: str, references: Mapping[str, str], *, is_parser: bool
) -> dict[str, Any]:
    """Return a text's reference, None where it has none, and the output compared with it."""
    reference = references.get(text, references.get(text.strip()))
    if is_parser:
        return {"reference": reference, "chrf": None, "parse": parses.compare(output, reference)}
    chrf = None if reference is None else sacrebleu.sentence_chrf(output, [reference]).score
    return {"reference": reference, "chrf": chrf, "parse": None}


def examples(references: Mapping[str, str]) -> list[str]:
    """Return the texts that the page offers."""
    return list(references)[:_EXAMPLES]


def _effect_of_penalty(tree: search_tree.Tree, model: translator.Translator) -> dict[str, Any]:
    """Return which of the finished outputs would be best by probability alone, without penalty."""
    finished = [tree.extensions[number] for number in tree.hypotheses]
    if not finished:
        return {"changed": False}
    by_probability = max(finished, key=lambda extension: extension.log_probability)
    best = finished[0]

    def described(extension: search_tree.Extension) -> dict[str, Any]:
        ids = tree.ids(extension.number)
        return {
            "number": extension.number,
            "text": model.vocabulary.targets.decode(ids),
            "length": len(ids),
            "log_probability": extension.log_probability,
            "score": extension.score,
        }

    return {
        "changed": by_probability is not best,
        "with": described(best),
        "without": described(by_probability),
    }


def _kept(cache: collections.OrderedDict, key: Any, compute) -> Any:
    """Return what a cache of the last few has under a key, computed if it has nothing."""
    if key not in cache:
        cache[key] = compute()
        while len(cache) > _KEPT:
            cache.popitem(last=False)
    cache.move_to_end(key)
    return cache[key]
