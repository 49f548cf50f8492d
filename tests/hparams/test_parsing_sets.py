"""The parsing sets: the paper's sizes, and what it leaves open as the docstrings say it."""

import pytest

from t2t_lite import registry
from t2t_lite.tasks import parsing
from t2t_lite.train import describe

PAPERS = ["transformer_parsing_4layer", "transformer_parsing_4layer_semisupervised"]
SMALL = ["transformer_parsing_small", "transformer_parsing_toy"]


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_sizes(name):
    hparams = registry.hparams(name)
    layers = (hparams.num_encoder_layers, hparams.num_decoder_layers)
    assert (layers, hparams.d_model) == ((4, 4), 1024)
    assert hparams.num_heads * hparams.d_k == hparams.num_heads * hparams.d_v == 1024
    assert not hparams.pre_norm
    # the rest is the base model's, as in the row of Table 3 that has this d_model
    base = registry.hparams("transformer_base_c5")
    for kept in ("d_ff", "num_heads", "batch_tokens", "label_smoothing", "averaged_checkpoints"):
        assert getattr(hparams, kept) == getattr(base, kept)


@pytest.mark.parametrize("name", PAPERS + SMALL)
def test_decoding_is_that_of_the_problems(name):
    hparams = registry.hparams(name)
    defaults = parsing.Parsing.decoding_defaults
    assert defaults == {key: getattr(hparams, key) for key in defaults}


@pytest.mark.parametrize(
    ("name", "problem", "millions"),
    [
        (PAPERS[0], "wsj_parsing", 100.336),
        (PAPERS[1], "wsj_parsing_semisupervised", 116.720),
        (SMALL[0], "craft_parsing", 2.358),
        (SMALL[1], "toy_parsing", 1.115),
    ],
)
def test_parameters(name, problem, millions):
    size = registry.problem(problem).vocabulary_size
    count = describe.describe(registry.hparams(name), size).parameters  # the model's: test_describe
    assert count / 1e6 == pytest.approx(millions, abs=0.0005)
