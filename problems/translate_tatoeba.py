"""Tatoeba: everyday sentences with their translations.

https://tatoeba.org, as prepared by https://www.manythings.org/anki
"""

from t2t_lite import registry
from t2t_lite.data import problem


@registry.register_problem
class TatoebaEnde(problem.ParallelTextProblem):
    """Everyday sentences, English to German: {train,dev,test}.en-de.{en,de} in --raw_dir."""

    vocabulary_size = 16_000
    sides = ("en", "de")


@registry.register_problem
class TatoebaEnfr(TatoebaEnde):
    """Everyday sentences, English to French: {train,dev,test}.en-fr.{en,fr} in --raw_dir."""

    sides = ("en", "fr")
