"""Data that tensor2tensor's t2t-datagen wrote: trained on as they lie in --data_dir, unchanged.

The class names are those of T2T's problems. For another one give a class of its name in
--t2t_usr_dir:

    @registry.register_problem
    class TranslateEncsWmt32k(problem.TranslationProblem):
        \"""My old data.\"""

        languages = ("en", "cs")

and its shards translate_encs_wmt32k-train-* and -dev-* are found by that name. Its vocabulary is
vocab.translate_encs_wmt32k.*, or else the only one that is there: T2T called them otherwise before
1.9, and where several problems share a folder a `vocabulary_file` like those below says which.
"""

import pathlib

from t2t_lite import errors, registry
from t2t_lite.data import problem


class T2tProblem(problem.TranslationProblem):
    """Has no raw text: its shards exist already."""

    # the vocabulary's name before T2T 1.9
    old_vocabulary: str

    def vocabulary_file(self, size: int | None = None) -> str:
        """Return what the vocabulary may be called beside vocab.<problem>.*"""
        return self.old_vocabulary

    def raw_files(self, raw_dir: problem.Directory = None) -> list[pathlib.Path]:
        """Raise UserError: there is nothing to generate."""
        raise errors.UserError(
            f"{self.base_name} has only data that tensor2tensor wrote: give its data_dir to the "
            "trainer as it is, or generate wmt14_ende"
        )


@registry.register_problem
class TranslateEndeWmt32k(T2tProblem):
    """WMT English to German, 32k subwords: shards of t2t-datagen, ready to train on."""

    languages = ("en", "de")
    old_vocabulary = "vocab.ende.32768"


@registry.register_problem
class TranslateEndeWmt8k(TranslateEndeWmt32k):
    """WMT English to German, 8k subwords: shards of t2t-datagen, ready to train on."""

    vocabulary_size = 8_000
    old_vocabulary = "vocab.ende.8192"


@registry.register_problem
class TranslateEndeWmtBpe32k(TranslateEndeWmt32k):
    """WMT English to German, 32k BPE tokens: shards of t2t-datagen, ready to train on.

    Texts go in and come out as the tokens that it was made of ("Wel@@ t ."), cut by the same BPE.
    """

    old_vocabulary = "vocab.bpe.32000"


@registry.register_problem
class TranslateEnfrWmt32k(T2tProblem):
    """WMT English to French, 32k subwords: shards of t2t-datagen, ready to train on."""

    languages = ("en", "fr")
    old_vocabulary = "vocab.enfr.32768"


@registry.register_problem
class TranslateEnfrWmt8k(TranslateEnfrWmt32k):
    """WMT English to French, 8k subwords: shards of t2t-datagen, ready to train on."""

    vocabulary_size = 8_000
    old_vocabulary = "vocab.enfr.8192"
