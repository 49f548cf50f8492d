"""A user's own corpus, without writing code."""

from t2t_lite import registry
from t2t_lite.data import problem
from t2t_lite.text import corpora


@registry.register_problem
class ParallelText(problem.ParallelTextProblem):
    """Your own corpus: train.*, dev.* and perhaps test.*; see t2t-lite-datagen --help."""

    sides = corpora.GENERIC
    optional_splits = ("test",)
