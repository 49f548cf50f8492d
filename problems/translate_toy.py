"""The embedded default: sentences of a small synchronous grammar; needs no files."""

import itertools
from collections.abc import Iterator

from t2t_lite import registry
from t2t_lite.data import problem

from . import toy_grammar


@registry.register_problem
class ToyEnde(problem.TranslationProblem):
    """Sentences of the embedded toy grammar, English to German; needs no files."""

    vocabulary_size = 2_000
    languages = ("en", "de")
    # Sentences are distinct, so consecutive ones make disjoint splits.
    sizes = {"dev": 500, "test": 500, "train": 20_000}  # noqa: RUF012
    seed = 1

    def samples(
        self, split: str, *, raw_dir: problem.Directory = None, tmp_dir: problem.Directory = None
    ) -> Iterator[problem.Sample]:
        names = list(self.sizes)
        start = sum(self.sizes[name] for name in names[: names.index(split)])
        sentences = toy_grammar.sentences(seed=self.seed)
        for sentence in itertools.islice(sentences, start, start + self.sizes[split]):
            yield {"inputs": sentence.english, "targets": self._target(sentence)}

    def _target(self, sentence: toy_grammar.Sentence) -> str:
        return sentence.german


@registry.register_problem
class ToyEnfr(ToyEnde):
    """Sentences of the embedded toy grammar, English to French; needs no files."""

    languages = ("en", "fr")

    def _target(self, sentence: toy_grammar.Sentence) -> str:
        return sentence.french
