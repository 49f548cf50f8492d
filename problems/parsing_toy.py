"""Parsing without any file: the trees of the embedded toy grammar."""

from collections.abc import Iterator

from t2t_lite import registry
from t2t_lite.data import problem
from t2t_lite.parsing import trees


@registry.register_problem
class ToyParsing(problem.ParsingProblem):
    """Trees of the built-in toy grammar's English sentences; needs no files."""

    vocabulary_size = 1_500
    sizes = {"dev": 500, "test": 500, "train": 20_000}  # noqa: RUF012
    seed = 1

    def trees(
        self, split: str, *, raw_dir: problem.Directory = None, tmp_dir: problem.Directory = None
    ) -> Iterator[trees.Tree | None]:
        """Yield the trees of the split's sentences."""
        from .toy import grammar  # reads its tables, which a look at the problem's name need not

        for sentence in grammar.split(split, sizes=self.sizes, seed=self.seed):
            yield trees.clean(trees.parse(sentence.tree))
