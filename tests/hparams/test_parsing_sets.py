"""The parsing sets: the paper's sizes, and what it leaves open as the docstrings say it."""

import pytest
import tiny_run

from t2t_lite import registry
from t2t_lite.model import transformer
from t2t_lite.tasks import parsing
from t2t_lite.train import schedule

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
    hparams, size = registry.hparams(name), registry.problem(problem).vocabulary_size
    attention = hparams.d_model * hparams.num_heads * 2 * (hparams.d_k + hparams.d_v)
    feed_forward = (2 * hparams.d_model + 1) * hparams.d_ff + hparams.d_model
    norm = 2 * hparams.d_model
    encoder = hparams.num_encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = hparams.num_decoder_layers * (2 * attention + feed_forward + 3 * norm)
    last = 2 * norm if hparams.pre_norm else 0
    # A bias of each head for every distance: of self-attention in both stacks, and of the other.
    biases = [(n > 0) * (2 * n + 1) for n in (hparams.relative_bias, hparams.next_word)]
    encoder += hparams.num_encoder_layers * hparams.num_heads * biases[0]
    decoder += hparams.num_decoder_layers * hparams.num_heads * sum(biases)
    assert (size * hparams.d_model + encoder + decoder + last) / 1e6 == pytest.approx(
        millions, abs=0.0005
    )


@pytest.mark.parametrize(
    ("name", "step", "peak"),
    [
        (PAPERS[0], 16_000, 0.5 * (1024 * 16_000) ** -0.5),
        (PAPERS[1], 4_000, 0.5 * (1024 * 4_000) ** -0.5),
        (SMALL[0], 1_000, 3e-3),
        (SMALL[1], 400, 3e-3),
    ],
)
def test_peak_learning_rate(name, step, peak):
    hparams = registry.hparams(name)

    def rate(at):
        return schedule.learning_rate(
            at,
            d_model=hparams.d_model,
            warmup_steps=hparams.warmup_steps,
            scale=hparams.learning_rate_scale,
        )

    assert rate(step) == pytest.approx(peak, rel=1e-6)
    assert rate(step) > max(rate(step - 1), rate(step + 1))
    assert hparams.train_steps > step


def test_the_small_model_is_what_is_counted():
    model = transformer.Transformer(
        registry.hparams(SMALL[0]), 4_000, words=tiny_run.tree_task().grammar
    )
    assert model.count_params() / 1e6 == pytest.approx(2.358, abs=0.0005)
