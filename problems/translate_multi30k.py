"""Multi30k: descriptions of images (task 1, raw text), 29,000 pairs.

https://github.com/multi30k/dataset
"""

from t2t_lite import registry
from t2t_lite.data import problem

_STEMS = {
    "train": ("train",),
    "dev": ("val",),
    "test": ("test_2016_flickr",),
    "test_2017_flickr": ("test_2017_flickr",),
}


@registry.register_problem
class Multi30kEnde(problem.ParallelTextProblem):
    """Image captions, English to German: {train,val,test_2016_flickr}.{en,de} in --raw_dir."""

    vocabulary_size = 8_000
    sides = ("en", "de")
    stems = _STEMS
    optional_splits = ("test_2017_flickr",)
    split_names = {"val": "dev", "test_2016_flickr": "test"}  # noqa: RUF012


@registry.register_problem
class Multi30kEnfr(Multi30kEnde):
    """Image captions, English to French: {train,val,test_2016_flickr}.{en,fr} in --raw_dir."""

    sides = ("en", "fr")
