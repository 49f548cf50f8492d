"""The embedded default: sentences of a small synchronous grammar; needs no files."""

from collections.abc import Iterator

from t2t_lite import registry
from t2t_lite.data import problem


@registry.register_problem
class ToyEnde(problem.TranslationProblem):
    """Sentences of the built-in toy grammar, English to German; needs no files."""

    vocabulary_size = 2_000
    languages = ("en", "de")
    sizes = {"dev": 500, "test": 500, "train": 20_000}  # noqa: RUF012
    seed = 1

    def samples(
        self, split: str, *, raw_dir: problem.Directory = None, tmp_dir: problem.Directory = None
    ) -> Iterator[problem.Sample]:
        from .toy import grammar  # reads its tables, which a look at the problem's name need not

        for sentence in grammar.split(split, sizes=self.sizes, seed=self.seed):
            texts = {"de": sentence.german, "fr": sentence.french}
            yield {"inputs": sentence.english, "targets": texts[self.languages[1]]}


@registry.register_problem
class ToyEnfr(ToyEnde):
    """Sentences of the built-in toy grammar, English to French; needs no files."""

    languages = ("en", "fr")
