"""What the page shows of a text: translation, attention, search and parse, as plain objects.

An Explorer answers for one translator. Its objects can be written as JSON; attention weights, which
are many, are bytes: see document.weight_bytes.
"""

import dataclasses
import functools
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import sacrebleu
import tensorflow as tf

from t2t_lite import errors
from t2t_lite.decode import beam_search, translator
from t2t_lite.explore import attending, document, parses, pieces, search_tree
from t2t_lite.tasks import parsing
from t2t_lite.tasks import task as tasks
from t2t_lite.text import vocabulary as vocabularies

_CACHED_TEXTS = 2  # the text on the page, and the one before it
OPTIONS = ("beam_size", "alpha", "length_penalty")  # that the page names
_MAX_EXAMPLES = 200  # texts of a split that the page offers
# what the page opens with where no split is there, by the source's language
_SENTENCES = {"de": "Ein Hund rennt.", "fr": "Un chien court."}


@dataclasses.dataclass(frozen=True)
class _Analysis:
    """The ids of a text and of the output shown, and the translation as the page gets it."""

    source_ids: Sequence[int]
    target_ids: Sequence[int]
    translation: dict[str, Any]


class Explorer:
    """Answers the page's requests about a run; several threads may call its methods.

    Args:
      model: the translator; its option return_beams is the length of n-best lists.
      references: references by source text.
      language: the source's, such as "de"; "" if unknown.
    """

    def __init__(
        self,
        model: translator.Translator,
        *,
        references: Mapping[str, str] | None = None,
        language: str = "",
    ):
        # The page always shows the tokens' probabilities and alignment.
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
        self._language = language
        self._is_parser = isinstance(model.task, parsing.Parsing)
        self._search = None if options.sampling else search_tree.RecordedSearch(self.model)
        spec = tf.TensorSpec([None, None], tf.int32)
        self._weights = tf.function(
            lambda inputs, targets: attending.weights(model.models[0], inputs, targets),
            input_signature=[spec, spec],
            autograph=False,
        )
        self._lock = threading.RLock()
        self._analysis = functools.lru_cache(_CACHED_TEXTS)(self._analyse)
        self._weights_of = functools.lru_cache(_CACHED_TEXTS)(self._compute_weights)

    def warm_up(self) -> None:
        """Build the graphs, so that the first text is answered as fast as others."""
        # Two lengths: TensorFlow builds one graph for the first and one for all others.
        for text in ("a", "a a a"):
            if self._search:
                self.search(text)
            self.attention(text, None, "cross", 0)

    def about(self) -> dict[str, Any]:
        """Return what the page shows before any text: the model and example texts."""
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
            "options": {name: getattr(options, name) for name in OPTIONS},
            "max_source_length": options.max_source_length,
            "examples": examples(self._references, self._language),
        }

    def translation(self, text: str, target: str | None = None) -> dict[str, Any]:
        """Return the outputs of a text with their tokens, probabilities and alignments.

        Args:
          text: the source.
          target: an output to show instead of the model's best.

        Raises UserError for an invalid target, e.g. one of a parser that is not a tree.
        """
        with self._lock:
            return self._analysis(text, target).translation

    def attention(self, text: str, target: str | None, kind: str, layer: int) -> bytes:
        """Return the weights of one layer, [head, query, key], as document.weight_bytes."""
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
        """Return a given output as a hypothesis, with text and score as a search gives them."""
        source = tasks.EncodedText(list(source_ids), truncated=False)
        text, repairs = self.model.task.decode(target_ids, source)
        told = self.model.force_ids(translator.pad([source_ids]), translator.pad([target_ids]))
        logs, places = (tensor.numpy()[0].tolist() for tensor in told)
        penalty = float(beam_search.length_penalty(len(target_ids), self.model.options))
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

    def _compute_weights(self, text: str, target: str | None) -> attending.Weights:
        analysis = self._analysis(text, target)
        if not analysis.source_ids:
            raise errors.UserError("a blank text has no attention")
        inputs, targets = analysis.source_ids, analysis.target_ids
        return self._weights(translator.pad([inputs]), translator.pad([targets]))


def beside_reference(
    text: str, output: str, references: Mapping[str, str], *, is_parser: bool
) -> dict[str, Any]:
    """Return a text's reference, if any, and the output compared with it."""
    reference = references.get(text, references.get(text.strip()))
    if is_parser:
        return {"reference": reference, "chrf": None, "parse": parses.compare(output, reference)}
    chrf = None if reference is None else sacrebleu.sentence_chrf(output, [reference]).score
    return {"reference": reference, "chrf": chrf, "parse": None}


def examples(references: Mapping[str, str], language: str) -> list[str]:
    """Return the texts that the page offers; it opens with the first."""
    return list(references)[:_MAX_EXAMPLES] or [_SENTENCES.get(language, "A dog runs.")]


def _effect_of_penalty(tree: search_tree.Tree, model: translator.Translator) -> dict[str, Any]:
    """Return the best finished output with and without the length penalty."""
    finished = [tree.extensions[number] for number in tree.hypotheses]
    if not finished:
        return {"changed": False}
    by_probability = max(finished, key=lambda extension: extension.log_probability)
    best = finished[0]

    def described(extension: search_tree.Extension) -> dict[str, Any]:
        ids = tree.ids(extension.number)
        return {
            "text": model.vocabulary.targets.decode(ids),
            "length": len(ids),
            "log_probability": extension.log_probability,
        }

    return {
        "changed": by_probability is not best,
        "with": described(best),
        "without": described(by_probability),
    }
