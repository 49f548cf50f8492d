"""Parsing without any file: the trees of the embedded toy grammar."""

import itertools
from collections.abc import Iterator

from t2t_lite import registry
from t2t_lite.data import problem
from t2t_lite.parsing import trees

from . import toy_grammar


@registry.register_problem
class ToyParsing(problem.ParsingProblem):
    """Trees of the embedded toy grammar's English sentences; needs no files."""

    vocabulary_size = 1_500
    # Sentences are distinct, so consecutive ones make disjoint splits.
    sizes = {"dev": 500, "test": 500, "train": 20_000}  # noqa: RUF012
    seed = 1

    def trees(
        self, split: str, *, raw_dir: problem.Directory = None, tmp_dir: problem.Directory = None
    ) -> Iterator[trees.Tree | None]:
        """Yield the trees of the split's sentences."""
        names = list(self.sizes)
        start = sum(self.sizes[name] for name in names[: names.index(split)])
        sentences = toy_grammar.sentences(seed=self.seed)
        for sentence in itertools.islice(sentences, start, start + self.sizes[split]):
            yield trees.clean(trees.parse(sentence.tree))
