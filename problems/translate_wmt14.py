"""WMT 2014, the paper's two translation tasks (Section 5.1).

newstest2013 is dev and newstest2014, in the form of 3,003 lines, is test.
"""

import functools
import pathlib
import tempfile
from collections.abc import Iterator

from t2t_lite import registry
from t2t_lite.data import problem, wmt_archives

_SPLITS = {"train": "train", "dev": "validation", "test": "test"}


@registry.register_problem
class Wmt14Ende(problem.ParallelTextProblem):
    """WMT 2014 English to German, 4.5 M pairs: downloaded, or from --raw_dir (archives, text).

    Text is {train,newstest2013,newstest2014}.{en,de}; archives are those that TFDS names.
    """

    vocabulary_size = 37_000
    sides = ("en", "de")
    stems = {  # noqa: RUF012
        "train": ("train",),
        "dev": ("newstest2013", "dev"),
        "test": ("newstest2014", "test"),
    }
    split_names = {"newstest2013": "dev", "newstest2014": "test"}  # noqa: RUF012
    tfds_config = "wmt14_translate/de-en"

    def raw_files(self, raw_dir: problem.Directory = None) -> list[pathlib.Path]:
        """Return the text files or else the archives in raw_dir; [] where all is downloaded."""
        if raw_dir is None:
            return []
        if not pathlib.Path(raw_dir).is_dir() or self.find("train", raw_dir):
            return super().raw_files(raw_dir)
        return self._archives.placed(raw_dir)

    def samples(
        self, split: str, *, raw_dir: problem.Directory = None, tmp_dir: problem.Directory = None
    ) -> Iterator[problem.Sample]:
        """Yield the pairs of the text files or of the archives."""
        if raw_dir is not None and self.find("train", raw_dir):
            yield from super().samples(split, raw_dir=raw_dir)
            return
        for source, target in self._archives.read(
            _SPLITS[split],
            languages=self.languages,
            raw_dir=raw_dir,
            tmp_dir=tmp_dir or tempfile.gettempdir(),
        ):
            yield {"inputs": source, "targets": target}

    @functools.cached_property
    def _archives(self) -> wmt_archives.Archives:
        return wmt_archives.Archives(self.tfds_config)


@registry.register_problem
class Wmt14Enfr(Wmt14Ende):
    """WMT 2014 English to French, 40.8 M pairs: downloaded, or from --raw_dir (archives, text).

    So many are in WMT's files, of which nothing is left out here; the paper counts 36 M. Text is
    {train,newstest2013,newstest2014}.{en,fr}; archives are those that TFDS names.
    """

    vocabulary_size = 32_000
    sides = ("en", "fr")
    tfds_config = "wmt14_translate/fr-en"
