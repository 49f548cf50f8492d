"""Data that tensor2tensor's t2t-datagen wrote: trained on as they lie in --data_dir, unchanged.

The class names are those of T2T's problems. For another one give a class of its name in
--t2t_usr_dir:

    @registry.register_problem
    class TranslateEndeWmtBpe32k(problem.TranslationProblem):
        \"""My old data.\"""

and its shards and its `.subwords` vocabulary are found by that name.
"""

import pathlib

from t2t_lite import errors, registry
from t2t_lite.data import problem


class T2tProblem(problem.TranslationProblem):
    """Has no raw text: its shards exist already."""

    def raw_files(self, raw_dir: problem.Directory = None) -> list[pathlib.Path]:
        """Raise UserError: there is nothing to generate."""
        raise errors.UserError(
            f"{self.base_name} has only data that tensor2tensor wrote: give its data_dir to the "
            "trainer as it is, or generate wmt14_ende"
        )


@registry.register_problem
class TranslateEndeWmt32k(T2tProblem):
    """Tensor2tensor's data of this name (WMT English to German, 32k subwords), as they are."""

    languages = ("en", "de")


@registry.register_problem
class TranslateEndeWmt8k(TranslateEndeWmt32k):
    """Tensor2tensor's data of this name (WMT English to German, 8k subwords), as they are."""

    vocabulary_size = 8_000


@registry.register_problem
class TranslateEnfrWmt32k(T2tProblem):
    """Tensor2tensor's data of this name (WMT English to French, 32k subwords), as they are."""

    languages = ("en", "fr")


@registry.register_problem
class TranslateEnfrWmt8k(TranslateEnfrWmt32k):
    """Tensor2tensor's data of this name (WMT English to French, 8k subwords), as they are."""

    vocabulary_size = 8_000
